//! A file as a model that answers: the very numbers that other engines would load, quantised as they are.

use candle_core::{DType, Device};

use super::verify::config_of;
use super::{Gguf, GgufError, names};
use crate::model::{Frozen, Model};

const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// Reads qwen2 and qwen3 files. Quantised maps stay so; everything else becomes f32.
pub fn load(gguf: &Gguf, device: &Device) -> Result<Model, GgufError> {
    let mut config = config_of(gguf)?;
    // One row of the embedding is read at a time, and all of the head: the two are kept in different forms, even where they are one.
    config.tied = false;
    let mut source = |name: &str, _: bool| {
        let stored = names::to_gguf(name).ok_or_else(|| GgufError::Unnamed(name.to_owned()))?;
        let shared = name == HEAD && gguf.tensor(&stored).is_none();
        let stored = if shared { names::to_gguf(EMBEDDING).unwrap_or_default() } else { stored };
        let info = gguf.tensor(&stored);
        let info = info.ok_or_else(|| GgufError::MissingTensor { path: gguf.path.clone(), name: stored.clone() })?;
        let tensor = gguf.stored(info, device)?;
        let made = if name == EMBEDDING {
            // Half the memory of f32; what f16 loses is far less than quantising did, and f32 files are for small models.
            let half = if info.kind.name == "F32" || info.kind.name == "BF16" { DType::F32 } else { DType::F16 };
            tensor.dequantize(device).and_then(|rows| rows.to_dtype(half)).map(Frozen::Dense)
        } else {
            Frozen::quantised(tensor)
        };
        made.map_err(|source| GgufError::Decode { name: stored, source })
    };
    Model::assemble::<GgufError>(config, device, &mut source)
}
