//! The base with the adapter in it, as a base of its own.

use std::io;
use std::path::Path;

use candle_core::{DType, Device, Tensor};

use super::AdapterError;
use super::peft::AdapterFolder;
use crate::base::{ModelConfig, TOKENIZER_FILES, Weights, tensor_file};
use crate::files;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// How many weights the adapter changed.
    pub changed: usize,
    pub tensors: usize,
}

/// Writes base and adapter as one model into `out`, which is whole or not there. Sums are made in f32 and rounded once, to the
/// precision of the base. `base_sha256` is the base's fingerprint: an adapter of another base is refused.
pub fn merge(base: &Path, base_sha256: &str, adapter: &AdapterFolder, out: &Path) -> Result<Merged, AdapterError> {
    adapter.check_base(base_sha256)?;
    let config = ModelConfig::read(base)?;
    let weights = Weights::open(base)?;
    weights.check(&config)?;
    let unwritable = |source| AdapterError::Unwritable { path: out.to_owned(), source };
    let partial = files::partial(out);
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(unwritable)?;
    }
    std::fs::create_dir_all(&partial).map_err(unwritable)?;
    let merged = fill(&partial, base, &weights, adapter, &config).inspect_err(|_| {
        // The error that is reported is the one that matters; the next run removes what is left.
        let _ = std::fs::remove_dir_all(&partial);
    })?;
    if out.exists() {
        std::fs::remove_dir_all(out).map_err(unwritable)?;
    }
    std::fs::rename(&partial, out).map_err(unwritable)?;
    Ok(merged)
}

fn fill(
    partial: &Path,
    base: &Path,
    weights: &Weights,
    adapter: &AdapterFolder,
    config: &ModelConfig,
) -> Result<Merged, AdapterError> {
    let mut planned = Vec::new();
    for (name, shape) in config.tensors() {
        planned.push((name.clone(), weights.dtype(&name)?, shape));
    }
    let mut changed = 0;
    let path = partial.join("model.safetensors");
    let fill = |name: &str, output: &mut tensor_file::Output<'_>| {
        let mut weight = weights.tensor(name, &Device::Cpu)?;
        if let Some(delta) = adapter.delta(name)? {
            changed += 1;
            weight = added(&weight, &delta).map_err(AdapterError::tensor(name))?;
        }
        Ok(output.tensor(&weight)?)
    };
    tensor_file::write(&path, &planned, fill).map_err(|failed| match failed {
        Failed::Adapter(error) => error,
        Failed::Io(source) => AdapterError::Unwritable { path: path.clone(), source },
    })?;
    for name in TOKENIZER_FILES.iter().chain(&["config.json"]) {
        let from = base.join(name);
        if from.exists() {
            let to = partial.join(name);
            files::copy(&from, &to).map_err(|source| AdapterError::Unwritable { path: to, source })?;
        }
    }
    Ok(Merged { changed, tensors: planned.len() })
}

fn added(weight: &Tensor, delta: &Tensor) -> candle_core::Result<Tensor> {
    (weight.to_dtype(DType::F32)? + delta)?.to_dtype(weight.dtype())
}

/// Either kind of failure while the weights are written.
enum Failed {
    Adapter(AdapterError),
    Io(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<AdapterError> for Failed {
    fn from(error: AdapterError) -> Self {
        Self::Adapter(error)
    }
}

impl From<crate::base::ModelError> for Failed {
    fn from(error: crate::base::ModelError) -> Self {
        Self::Adapter(error.into())
    }
}
