//! A base with weights drawn from a seed: of the right shape and of no use, for tests and for measuring.

use std::path::Path;

use anyhow::Context as _;
use candle_core::{DType, Device, Tensor};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::{Architecture, ModelConfig, TOKENIZER_FILES, tensor_file};
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

/// A shape in which a run takes seconds, with heads of a width of their own as Qwen3 has them.
pub const fn tiny(architecture: Architecture, vocabulary: usize) -> ModelConfig {
    ModelConfig {
        architecture,
        vocabulary,
        hidden: 64,
        intermediate: 128,
        layers: 2,
        heads: 4,
        key_value_heads: 2,
        head_width: 32,
        states_head_width: true,
        rope_theta: 1e6,
        norm_epsilon: 1e-6,
        tied: true,
        context_length: 4096,
    }
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
    let planned: Vec<_> = config.tensors().into_iter().map(|(name, shape)| (name, dtype, shape)).collect();
    let mut shapes = planned.iter().map(|(_, _, shape)| shape.clone());
    let path = folder.join("model.safetensors");
    files::replace(&path, |partial| {
        tensor_file::write(partial, &planned, |name, output| {
            let shape = shapes.next().unwrap_or_default();
            let numbers = numbers(name, &shape, spread, &mut random);
            let tensor = Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)?;
            anyhow::Ok(output.tensor(&tensor)?)
        })
    })?;
    files::write(&folder.join("config.json"), &serde_json::to_vec_pretty(&config.to_json())?)?;
    for name in tokenizer.map_or(&[][..], |_| &TOKENIZER_FILES) {
        let from = tokenizer.map(|folder| folder.join(name)).filter(|path| path.exists());
        if let Some(from) = from {
            files::copy(&from, &folder.join(name)).with_context(|| format!("copying `{}`", from.display()))?;
        }
    }
    Ok(())
}

fn numbers(name: &str, shape: &[usize], spread: Spread, random: &mut StdRng) -> Vec<f32> {
    let (around, width) = match shape.len() {
        1 if name.ends_with("bias") => (0.0, spread.vectors),
        1 => (1.0, spread.vectors),
        _ if name.contains("embed_tokens") || name.contains("lm_head") => (0.0, spread.embedding),
        _ => (0.0, spread.maps),
    };
    (0..shape.iter().product()).map(|_| around + width * normal(random)).collect()
}

/// Twelve uniform numbers added up are as good as normal here, and need no logarithm.
fn normal(random: &mut StdRng) -> f32 {
    (0..12).map(|_| random.random::<f32>()).sum::<f32>() - 6.0
}
