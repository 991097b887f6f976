//! What `cargo xtask bench train` and `bench gguf` need of this program: a base of random numbers, some steps with the clock running, and a
//! file.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use candle_core::{DType, Device};
use finetune::base::random::{Spread, random};
use finetune::base::{Architecture, ModelConfig, Weights};
use finetune::gguf;
use finetune::model::{AdapterShape, Gradients, Model, Sequence};
use serde_json::json;

use crate::cli::{MeasureArgs, RandomBaseArgs, WriteArgs};
use crate::make::print;

/// The shape of Qwen3-0.6B, with as many layers as wanted.
fn large(layers: usize) -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Qwen3,
        vocabulary: 151_936,
        hidden: 1024,
        intermediate: 3072,
        layers,
        heads: 16,
        key_value_heads: 8,
        head_width: 128,
        states_head_width: true,
        rope_theta: 1e6,
        norm_epsilon: 1e-6,
        tied: true,
        context_length: 40_960,
    }
}

pub(crate) fn random_base(arguments: &RandomBaseArgs) -> anyhow::Result<ExitCode> {
    random(&arguments.out, &large(arguments.layers), arguments.tokenizer.as_deref(), (DType::BF16, Spread::LARGE, 3))?;
    Ok(ExitCode::SUCCESS)
}

/// Steps of one sequence each, a quarter of whose tokens carry loss; the same as `pytorch.py` beside the bench does.
pub(crate) fn training(arguments: &MeasureArgs) -> anyhow::Result<ExitCode> {
    let mut model = load(&arguments.base, arguments)?;
    model.adapt(AdapterShape { rank: 16, alpha: 32.0 }, 5)?;
    let ids: Vec<_> = (0..arguments.tokens as u32).map(|at| at * 7919 % 150_000).collect();
    let carries_loss: Vec<_> = (0..arguments.tokens).map(|at| at % 4 == 0).collect();
    let sequence = Sequence::of(&ids, &carries_loss);
    let mut steps = Vec::new();
    for _ in 0..arguments.steps {
        let start = Instant::now();
        let mut gradients = Gradients::default();
        let loss = model.accumulate(&sequence, sequence.learnt() as f64, arguments.recompute, &mut gradients)?;
        // Plain descent in place of the optimiser: what that costs is nothing beside the rest.
        for (name, variable) in model.trainable() {
            if let Some(gradient) = gradients.get(&name) {
                variable.set(&(variable.as_detached_tensor() - (gradient * 1e-4)?)?)?;
            }
        }
        steps.push(json!({ "loss": loss, "seconds": start.elapsed().as_secs_f64() }));
    }
    let measured = json!({ "tokens": arguments.tokens, "steps": steps, "peak_bytes": memory::process::peak_bytes() });
    print(&format!("{measured}\n"))
}

/// The file that the stage `gguf` writes.
pub(crate) fn writing(arguments: &WriteArgs) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let written = gguf::write(&arguments.base, &arguments.out, arguments.quantisation, "measured")?;
    let (seconds, peak_bytes) = (start.elapsed().as_secs_f64(), memory::process::peak_bytes());
    let measured = json!({ "seconds": seconds, "bytes": written.bytes, "peak_bytes": peak_bytes });
    print(&format!("{measured}\n"))
}

fn load(base: &Path, arguments: &MeasureArgs) -> anyhow::Result<Model> {
    let config = ModelConfig::read(base)?;
    Ok(Model::load(config, &Weights::open(base)?, arguments.storage, &Device::Cpu)?)
}
