//! A model's folder into a GGUF, a part of a tensor at a time: the model is never in memory as a whole. Reading and quantising are spread
//! over all cores, while what is done is written and hashed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::metadata::{self, Metadata};
use super::read::{ALIGNMENT, MAGIC, TensorInfo, VERSION};
use super::value::write_text;
use super::{GgufError, Quantisation, names, quantise};
use crate::base::{ModelConfig, Weights};
use crate::dataset::row::hex;
use crate::files;

/// How many numbers are quantised at once by one core: 4 MB of them, and a multiple of every block.
const PART_ELEMENTS: usize = 1 << 20;

/// What was written.
#[derive(Debug, Clone, Serialize)]
pub struct Written {
    pub path: PathBuf,
    pub bytes: u64,
    /// In hexadecimal; it stands in a file beside it too.
    pub sha256: String,
    pub parameters: u64,
    /// How many tensors there are of each type.
    pub types: BTreeMap<&'static str, usize>,
}

/// A tensor of the folder, and what it is in the file.
struct Planned {
    source: String,
    info: TensorInfo,
}

/// Writes a folder's model under a name. Beside the file comes its hash, as sha256sum writes and checks it.
pub fn write(folder: &Path, out: &Path, quantisation: Quantisation, name: &str) -> Result<Written, GgufError> {
    let config = ModelConfig::read(folder)?;
    let weights = Weights::open(folder)?;
    weights.check(&config)?;
    let plan = plan(&config, quantisation)?;
    let header = header(&metadata::of(folder, &config, quantisation, name)?, &plan);
    let hash_file = sha256_file(out);
    // The hash of another file must not outlive it.
    match fs::remove_file(&hash_file) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(GgufError::Unwritable { path: hash_file, source });
        }
        _ => {}
    }
    let mut done = None;
    files::replace(out, |partial| {
        let file = File::create(partial).map_err(|source| GgufError::Unwritable { path: out.to_owned(), source })?;
        let mut output = Output { file, hasher: Sha256::new(), bytes: 0 };
        output.write(&header)?;
        write_tensors(&weights, &plan, &mut output)?;
        done = Some((output.bytes, hex(&output.hasher.finalize())));
        Ok::<_, GgufError>(())
    })
    .map_err(|error| error.while_writing(out))?;
    let (bytes, sha256) = done.expect("it was filled");
    let file_name = out.file_name().unwrap_or_default().to_string_lossy();
    files::write(&hash_file, format!("{sha256}  {file_name}\n").as_bytes())
        .map_err(|source| GgufError::Unwritable { path: hash_file, source })?;
    let mut types = BTreeMap::new();
    for tensor in &plan {
        *types.entry(tensor.info.kind.name).or_default() += 1;
    }
    Ok(Written { path: out.to_owned(), bytes, sha256, parameters: config.parameters() as u64, types })
}

/// Where the hash of a file stands.
pub fn sha256_file(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".sha256");
    path.with_file_name(name)
}

/// By the names in the folder, as llama.cpp's converter orders them.
fn plan(config: &ModelConfig, quantisation: Quantisation) -> Result<Vec<Planned>, GgufError> {
    let mut tensors = config.tensors();
    tensors.sort();
    let mut offset = 0;
    let place = |(source, shape): (String, Vec<usize>)| {
        let name = names::to_gguf(&source).ok_or_else(|| GgufError::Unnamed(source.clone()))?;
        let kind = quantisation.of(&name, &shape, config.layers);
        let elements: usize = shape.iter().product();
        let bytes = kind.bytes(elements as u64).expect("the type was chosen so that its blocks divide the row");
        let info = TensorInfo { name, shape, kind, offset, bytes };
        offset = (offset + bytes).next_multiple_of(ALIGNMENT);
        Ok(Planned { source, info })
    };
    tensors.into_iter().map(place).collect()
}

fn header(metadata: &Metadata, plan: &[Planned]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((plan.len() as u64).to_le_bytes());
    bytes.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        write_text(key, &mut bytes);
        bytes.extend(value.kind().to_le_bytes());
        value.write(&mut bytes);
    }
    for Planned { info, .. } in plan {
        write_text(&info.name, &mut bytes);
        bytes.extend((info.shape.len() as u32).to_le_bytes());
        // The format counts from the dimension that lies together in memory.
        for size in info.shape.iter().rev() {
            bytes.extend((*size as u64).to_le_bytes());
        }
        bytes.extend(info.kind.id.to_le_bytes());
        bytes.extend(info.offset.to_le_bytes());
    }
    pad(&mut bytes);
    bytes
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
}

fn write_tensors(weights: &Weights, plan: &[Planned], output: &mut Output) -> Result<(), GgufError> {
    let parts: Vec<_> = plan.iter().flat_map(parts).collect();
    let mut ready: Vec<Vec<u8>> = Vec::new();
    // Twice the cores, so that none waits for the slowest for long.
    for batch in parts.chunks(2 * rayon::current_num_threads()) {
        let encode = || batch.par_iter().map(|part| encode(weights, part)).collect::<Result<Vec<_>, _>>();
        let (encoded, written) = rayon::join(encode, || ready.iter().try_for_each(|bytes| output.write(bytes)));
        written?;
        ready = encoded?;
    }
    ready.iter().try_for_each(|bytes| output.write(bytes))
}

fn parts(tensor: &Planned) -> impl Iterator<Item = (&Planned, Range<usize>)> {
    let elements: usize = tensor.info.shape.iter().product();
    (0..elements).step_by(PART_ELEMENTS).map(move |start| (tensor, start..elements.min(start + PART_ELEMENTS)))
}

fn encode(weights: &Weights, (tensor, range): &(&Planned, Range<usize>)) -> Result<Vec<u8>, GgufError> {
    let numbers = weights.numbers(&tensor.source, range.clone())?;
    let mut bytes = quantise::encode(&tensor.source, &numbers, tensor.info.kind)?;
    // A part that is not the last fills whole blocks of every type, and whole alignments.
    pad(&mut bytes);
    Ok(bytes)
}

struct Output {
    file: File,
    hasher: Sha256,
    bytes: u64,
}

impl Output {
    fn write(&mut self, bytes: &[u8]) -> Result<(), GgufError> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}
