//! Models of two layers, for tests: the folders in `tests/gguf-reference`, with the weights that its `make.py` gives them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use tempfile::TempDir;

use crate::base::{Architecture, ModelConfig};

pub(super) fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/gguf-reference")
}

/// A model's folder with its weights in the type.
pub(super) fn folder(architecture: Architecture, stored: DType) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(reference().join(architecture.as_str())).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    write_weights(folder.path(), stored);
    folder
}

/// Weights as the folder's config asks for them.
pub(super) fn write_weights(folder: &Path, stored: DType) {
    let mut shapes = ModelConfig::read(folder).unwrap().tensors();
    shapes.sort();
    let tensors = shapes.into_iter().enumerate().map(|(index, (name, shape))| {
        let numbers = numbers(index as u64, &shape);
        let tensor = Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap().to_dtype(stored).unwrap();
        (name, tensor)
    });
    let tensors: HashMap<_, _> = tensors.collect();
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
}

/// SplitMix64 of the tensor's place and the number's: exact in every language.
fn numbers(index: u64, shape: &[usize]) -> Vec<f32> {
    let number = |place: u64| {
        let mut x = ((index << 32) + place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
        let unit = (x >> 40) as f32 / (1 << 24) as f32 - 0.5;
        if shape.len() == 2 { unit * 0.25 } else { unit * 0.25 + 1.0 }
    };
    (0..shape.iter().product::<usize>() as u64).map(number).collect()
}
