//! A base with weights drawn from a seed: of the right shape and of no use, for tests and for measuring.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use candle_core::{DType, Device, Tensor};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::{ModelConfig, TOKENIZER_FILES};
use crate::files;

/// How far the numbers of a kind of tensor spread.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub embedding: f32,
    pub maps: f32,
    /// Around one for norms, around zero for biases.
    pub vectors: f32,
}

impl Spread {
    /// What a small model learns from; narrower embeddings make every token alike to it.
    pub const SMALL: Self = Self { embedding: 0.3, maps: 0.08, vectors: 0.1 };
    /// As large models are initialised.
    pub const LARGE: Self = Self { embedding: 0.02, maps: 0.02, vectors: 0.02 };
}

/// Writes the folder of a base: `config.json`, weights of `dtype`, and the tokenizer's files out of `tokenizer` if that is given.
pub fn random(
    folder: &Path,
    config: &ModelConfig,
    tokenizer: Option<&Path>,
    (dtype, spread, seed): (DType, Spread, u64),
) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("creating `{}`", folder.display()))?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut tensors = HashMap::new();
    for (name, shape) in config.tensors() {
        let (around, width) = match shape.len() {
            1 if name.ends_with("bias") => (0.0, spread.vectors),
            1 => (1.0, spread.vectors),
            _ if name.contains("embed_tokens") || name.contains("lm_head") => (0.0, spread.embedding),
            _ => (0.0, spread.maps),
        };
        let count = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|_| around + width * normal(&mut random)).collect();
        tensors.insert(name, Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)?);
    }
    let path = folder.join("model.safetensors");
    files::replace(&path, |partial| anyhow::Ok(candle_core::safetensors::save(&tensors, partial)?))?;
    files::write(&folder.join("config.json"), &serde_json::to_vec_pretty(&config.to_json())?)?;
    for name in tokenizer.map_or(&[][..], |_| &TOKENIZER_FILES) {
        let from = tokenizer.map(|folder| folder.join(name)).filter(|path| path.exists());
        if let Some(from) = from {
            files::copy(&from, &folder.join(name)).with_context(|| format!("copying `{}`", from.display()))?;
        }
    }
    Ok(())
}

/// Twelve uniform numbers added up are as good as normal here, and need no logarithm.
fn normal(random: &mut StdRng) -> f32 {
    (0..12).map(|_| random.random::<f32>()).sum::<f32>() - 6.0
}
