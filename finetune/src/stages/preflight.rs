//! What a run will take, before anything long begins.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use candle_core::Device;
use serde::{Deserialize, Serialize};

use super::record::Done;
use super::run::Run;
use super::special;
use crate::base::ModelConfig;
use crate::dataset::Split;
use crate::gguf::Quantisation;
use crate::hint::hinted;
use crate::model::{Gradients, Model, Recompute, Sequence, Storage};
use crate::train::{Plan, TrainSettings, read_examples};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub train_samples: usize,
    pub validation_samples: usize,
    /// Longer than a sequence, or without anything to learn.
    pub left_out: usize,
    pub steps: usize,
    /// That all steps read.
    pub tokens: usize,
    /// As measured on the first tokens of the dataset.
    pub tokens_per_second: f64,
    pub seconds: f64,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

impl Estimate {
    /// Fails where the disk cannot hold what is made.
    pub(super) fn check_room(&self, root: &Path) -> Result<()> {
        std::fs::create_dir_all(root).with_context(|| format!("creating `{}`", root.display()))?;
        let free =
            fs4::available_space(root).with_context(|| format!("asking how much room `{}` has", root.display()))?;
        if free < self.disk_bytes {
            bail!(hinted(
                format!(
                    "a run needs {} on the disk, and {} are free at `{}`",
                    gib(self.disk_bytes),
                    gib(free),
                    root.display()
                ),
                "free some, or name another disk with --models-dir",
            ));
        }
        if let Some(available) = available_memory()
            && available < self.memory_bytes
        {
            bail!(hinted(
                format!(
                    "training needs about {} of memory, and {} are available",
                    gib(self.memory_bytes),
                    gib(available)
                ),
                "a smaller base, sequence_tokens below what it is, storage = \"q8_0\" or recompute = \"all\" in --config need less",
            ));
        }
        Ok(())
    }
}

/// Bytes as people read them.
fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / (1_u64 << 30) as f64)
}

pub(super) fn check(run: &mut Run<'_>) -> Result<Done> {
    let (start, settings) = (run.start, &run.start.config.train);
    let train = read_examples(start.dataset, Split::Train, &run.base)?;
    let validation = read_examples(start.dataset, Split::Validation, &run.base)?;
    if let Some(found) = special::untrained(&train, &run.base, &run.model, &run.weights)? {
        bail!(hinted(
            format!(
                "the base never learnt to tell `{}` from `{}`: their rows are alike, and adapters beside frozen embeddings cannot \
                 mend that",
                found.token, found.like
            ),
            "use a base that was trained to call tools, as Qwen3 and Qwen2.5-Instruct are",
        ));
    }
    let plan = Plan::new(&train, settings);
    let tokens = plan.tokens(&train);
    let tokens_per_second = if start.config.adapter.is_some() { f64::INFINITY } else { measure(run, &train)? };
    let estimate = Estimate {
        train_samples: train.len(),
        validation_samples: validation.len(),
        left_out: plan.left_out,
        steps: plan.len(),
        tokens,
        tokens_per_second: if tokens_per_second.is_finite() { tokens_per_second } else { 0.0 },
        seconds: tokens as f64 / tokens_per_second,
        memory_bytes: memory(&run.model, run.weights.bytes(), settings),
        disk_bytes: disk(&run.model, run.weights.bytes(), start.config.gguf.quantisation),
    };
    Ok(Done { outputs: Vec::new(), figures: serde_json::to_value(estimate)? })
}

/// How fast this machine learns the first samples.
fn measure(run: &Run<'_>, examples: &[crate::train::Example]) -> Result<f64> {
    const ENOUGH_TOKENS: usize = 128;
    let settings = &run.start.config.train;
    let mut model = Model::load(run.model.clone(), &run.weights, settings.storage, &Device::Cpu)?;
    model.adapt(settings.adapter(), settings.seed)?;
    let mut sequence = Sequence::default();
    for example in examples {
        let count = example.ids.len().min(settings.sequence_tokens - sequence.len());
        sequence.append(&example.ids[..count], &example.carries_loss[..count]);
        if sequence.len() >= ENOUGH_TOKENS.min(settings.sequence_tokens) {
            break;
        }
    }
    let begun = Instant::now();
    model.accumulate(&sequence, 1.0, settings.recompute, &mut Gradients::default())?;
    Ok(sequence.len().max(1) as f64 / begun.elapsed().as_secs_f64())
}

/// The weights, what a pass keeps, and the largest things that live for a moment.
fn memory(config: &ModelConfig, weights: u64, settings: &TrainSettings) -> u64 {
    const F32: usize = 4;
    let tokens = settings.sequence_tokens;
    let parameters = config.parameters() as u64;
    let stored = match settings.storage {
        Storage::AsStored => weights,
        Storage::F32 => parameters * F32 as u64,
        // Maps take 34 bytes for 32 numbers; the embedding stays as it is, counted in full here.
        Storage::Q8_0 => (parameters * 34 / 32).max(weights / 2),
    };
    let maps =
        2 * config.hidden + (config.heads + 2 * config.key_value_heads) * config.head_width + 2 * config.intermediate;
    let kept = match settings.recompute {
        Recompute::Light => config.layers * tokens * maps,
        Recompute::All => config.layers * tokens * config.hidden,
    };
    let layer = tokens * (2 * maps + config.intermediate);
    // So many positions at a time.
    let logits = 128 * config.vocabulary;
    // With their gradients and both moments.
    let adapters = config.layers * settings.rank * (maps + 3 * config.hidden) * 4;
    stored + ((kept + layer + logits + adapters) * F32) as u64
}

/// More than adapters and their moments take on a disk.
const ADAPTER_BYTES: u64 = 64 << 20;

/// The merged model, both files, and adapters with their moments.
fn disk(config: &ModelConfig, weights: u64, quantisation: Quantisation) -> u64 {
    let parameters = config.parameters() as u64;
    let file = match quantisation {
        Quantisation::F32 => parameters * 4,
        Quantisation::F16 | Quantisation::Bf16 => parameters * 2,
        _ => parameters * 34 / 32,
    };
    weights + 3 * file + ADAPTER_BYTES
}

/// What the system could still give; nothing where it does not tell.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(memory_bytes: u64, disk_bytes: u64) -> Estimate {
        Estimate {
            train_samples: 1,
            validation_samples: 1,
            left_out: 0,
            steps: 1,
            tokens: 1,
            tokens_per_second: 1.0,
            seconds: 1.0,
            memory_bytes,
            disk_bytes,
        }
    }

    #[test]
    fn refuses_what_no_disk_and_no_memory_can_hold() {
        let folder = tempfile::tempdir().unwrap();
        assert!(estimate(0, 0).check_room(folder.path()).is_ok());
        let error = estimate(0, u64::MAX).check_room(folder.path()).unwrap_err();
        assert!(error.to_string().contains("are free at"), "{error}");
        if available_memory().is_some() {
            let error = estimate(u64::MAX, 0).check_room(folder.path()).unwrap_err();
            assert!(error.to_string().contains("of memory"), "{error}");
        }
    }
}
