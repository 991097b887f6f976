//! Weights in safetensors files, one tensor at a time: a model is never in memory twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata};
use serde_json::Value;

use super::{ModelConfig, ModelError};

/// Which names stand in which file.
const INDEX_FILE: &str = "model.safetensors.index.json";
/// Safetensors begin with the length of their header, as eight bytes; no header of a model is as long as this.
const LENGTH_BYTES: u64 = 8;
const LONGEST_HEADER_BYTES: u64 = 100 << 20;

#[derive(Debug)]
pub struct Weights {
    folder: PathBuf,
    files: Vec<PathBuf>,
    tensors: BTreeMap<String, Place>,
}

/// Where a tensor lies.
#[derive(Debug, Clone)]
struct Place {
    file: usize,
    offset: u64,
    bytes: usize,
    dtype: Dtype,
    shape: Vec<usize>,
}

impl Weights {
    /// Reads the headers of all files of a folder and checks that each file is as long as its header says.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let files = files(folder)?;
        let mut tensors = BTreeMap::new();
        for (number, path) in files.iter().enumerate() {
            let (header, start) = header(path)?;
            for (name, info) in header.tensors() {
                let (from, to) = info.data_offsets;
                let place = Place {
                    file: number,
                    offset: start + from as u64,
                    bytes: to - from,
                    dtype: info.dtype,
                    shape: info.shape.clone(),
                };
                tensors.insert(name, place);
            }
        }
        Ok(Self { folder: folder.to_owned(), files, tensors })
    }

    /// Fails unless there is every tensor that the config asks for, in its shape, and none besides.
    pub fn check(&self, config: &ModelConfig) -> Result<(), ModelError> {
        let expected = config.tensors();
        for (name, shape) in &expected {
            let place = self.place(name)?;
            if place.shape != *shape {
                return Err(ModelError::Shape {
                    folder: self.folder.clone(),
                    name: name.clone(),
                    found: place.shape.clone(),
                    expected: shape.clone(),
                });
            }
        }
        // A tied model may bring its head all the same; it is the embedding.
        let is_known = |name: &String| expected.iter().any(|(known, _)| known == name) || name == "lm_head.weight";
        match self.tensors.keys().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => Err(ModelError::UnknownTensor {
                folder: self.folder.clone(),
                name: name.clone(),
                architecture: config.architecture.as_str(),
            }),
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    pub fn bytes(&self) -> u64 {
        self.tensors.values().map(|place| place.bytes as u64).sum()
    }

    /// The precision that a tensor is stored in.
    pub fn dtype(&self, name: &str) -> Result<DType, ModelError> {
        match self.place(name)?.dtype {
            Dtype::F32 => Ok(DType::F32),
            Dtype::F16 => Ok(DType::F16),
            Dtype::BF16 => Ok(DType::BF16),
            other => Err(ModelError::Type {
                folder: self.folder.clone(),
                name: name.to_owned(),
                dtype: format!("{other:?}"),
            }),
        }
    }

    /// A tensor as it is stored.
    pub fn tensor(&self, name: &str, device: &Device) -> Result<Tensor, ModelError> {
        let (place, dtype) = (self.place(name)?, self.dtype(name)?);
        let bytes = self.bytes_at(place, 0..place.bytes)?;
        Tensor::from_raw_buffer(&bytes, dtype, &place.shape, device)
            .map_err(|source| ModelError::Tensor { name: name.to_owned(), source })
    }

    /// Some numbers of a tensor, in the order they are stored in: what is larger than memory is read in parts.
    pub fn numbers(&self, name: &str, range: Range<usize>) -> Result<Vec<f32>, ModelError> {
        let (place, dtype) = (self.place(name)?, self.dtype(name)?);
        let width = dtype.size_in_bytes();
        let bytes = self.bytes_at(place, range.start * width..range.end * width)?;
        let pairs = bytes.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
        Ok(match dtype {
            DType::F16 => pairs.map(|pair| f16::from_le_bytes(pair).to_f32()).collect(),
            DType::BF16 => pairs.map(|pair| bf16::from_le_bytes(pair).to_f32()).collect(),
            _ => bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect(),
        })
    }

    fn bytes_at(&self, place: &Place, range: Range<usize>) -> Result<Vec<u8>, ModelError> {
        let path = &self.files[place.file];
        let mut bytes = vec![0; range.len()];
        let read = File::open(path).and_then(|mut file| {
            file.seek(SeekFrom::Start(place.offset + range.start as u64))?;
            file.read_exact(&mut bytes)
        });
        read.map_err(|source| ModelError::Unreadable { path: path.clone(), source })?;
        Ok(bytes)
    }

    fn place(&self, name: &str) -> Result<&Place, ModelError> {
        let missing = || ModelError::MissingTensor { folder: self.folder.clone(), name: name.to_owned() };
        self.tensors.get(name).ok_or_else(missing)
    }
}

/// What the index names; without one, every safetensors file of the folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| ModelError::Unreadable { path, source }
    };
    let index = folder.join(INDEX_FILE);
    let mut files: Vec<_> = if index.exists() {
        let bytes = std::fs::read(&index).map_err(unreadable(&index))?;
        let json: Value =
            serde_json::from_slice(&bytes).map_err(|source| ModelError::Json { path: index.clone(), source })?;
        let named = json["weight_map"].as_object().into_iter().flat_map(|map| map.values());
        named.filter_map(Value::as_str).map(|name| folder.join(name)).collect()
    } else {
        let entries = std::fs::read_dir(folder).map_err(unreadable(folder))?;
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "safetensors")).collect()
    };
    files.sort();
    files.dedup();
    if files.is_empty() { Err(ModelError::NoWeights(folder.to_owned())) } else { Ok(files) }
}

/// A file's header, and where its data begins.
fn header(path: &Path) -> Result<(Metadata, u64), ModelError> {
    let unreadable = |source| ModelError::Unreadable { path: path.to_owned(), source };
    let no_header = |reason: String| ModelError::NotSafetensors { path: path.to_owned(), reason };
    let mut file = File::open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?.len();
    let mut length = [0; LENGTH_BYTES as usize];
    if found < LENGTH_BYTES {
        return Err(ModelError::Truncated { path: path.to_owned(), found, expected: LENGTH_BYTES });
    }
    file.read_exact(&mut length).map_err(unreadable)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER_BYTES {
        return Err(no_header(format!("its header would be {length} bytes long")));
    }
    let start = LENGTH_BYTES + length;
    if found < start {
        return Err(ModelError::Truncated { path: path.to_owned(), found, expected: start });
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes).map_err(unreadable)?;
    let header: Metadata = serde_json::from_slice(&bytes).map_err(|error| no_header(error.to_string()))?;
    let end = header.tensors().values().map(|info| info.data_offsets.1 as u64).max().unwrap_or(0);
    let expected = start + end;
    if found == expected {
        Ok((header, start))
    } else {
        Err(ModelError::Truncated { path: path.to_owned(), found, expected })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn saved(name: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let tensor = Tensor::arange(0f32, 6.0, &Device::Cpu).unwrap().reshape((2, 3)).unwrap();
        candle_core::safetensors::save(&HashMap::from([("a".to_owned(), tensor)]), &path).unwrap();
        (folder, path)
    }

    #[test]
    fn reads_a_tensor_as_it_was_saved() {
        let (folder, _) = saved("model.safetensors");
        let weights = Weights::open(folder.path()).unwrap();
        let tensor = weights.tensor("a", &Device::Cpu).unwrap();
        assert_eq!(tensor.to_vec2::<f32>().unwrap(), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
        assert_eq!(weights.numbers("a", 2..5).unwrap(), [2.0, 3.0, 4.0]);
        assert!(matches!(weights.tensor("b", &Device::Cpu), Err(ModelError::MissingTensor { .. })));
    }

    #[test]
    fn refuses_a_file_that_was_cut_short_or_grew() {
        let (folder, path) = saved("model.safetensors");
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 4, 20, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(Weights::open(folder.path()), Err(ModelError::Truncated { .. })), "{length} bytes");
        }
        std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert!(matches!(Weights::open(folder.path()), Err(ModelError::Truncated { .. })));
        std::fs::write(&path, vec![0xff; 64]).unwrap();
        assert!(matches!(Weights::open(folder.path()), Err(ModelError::NotSafetensors { .. })));
    }

    #[test]
    fn misses_a_file_that_the_index_names() {
        let (folder, _) = saved("model-00001-of-00002.safetensors");
        let index =
            r#"{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}"#;
        std::fs::write(folder.path().join(INDEX_FILE), index).unwrap();
        let error = Weights::open(folder.path()).unwrap_err();
        assert!(
            matches!(error, ModelError::Unreadable { path, .. } if path.ends_with("model-00002-of-00002.safetensors"))
        );
    }
}
