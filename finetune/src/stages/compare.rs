//! Whether a file says what the weights say that it was made of: the logits of both over some texts.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use candle_core::{D, Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{ModelConfig, Weights};
use crate::dataset::Split;
use crate::dataset::render::Tokens;
use crate::gguf::{self, Gguf, Quantisation};
use crate::hint::hinted;
use crate::model::{Model, Sequence, Storage};

/// So many tokens of a text: the logits of more would say the same.
const MOST_TOKENS: usize = 64;
const MOST_TEXTS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    pub positions: usize,
    /// The share of positions at which both find the same token likeliest.
    pub top_1: f64,
    /// The mean Kullback-Leibler divergence of the file's distribution from the weights', in nats.
    pub divergence: f64,
}

impl Agreement {
    /// The bounds are those that llama.cpp's own reading of such files kept to (docs/finetune/failure-modes.md): what is beyond them is
    /// no rounding. Below eight bits small models change so much that their numbers prove nothing.
    pub fn check(&self, quantisation: Quantisation) -> Result<()> {
        let (least_top_1, most_divergence) = match quantisation {
            Quantisation::F32 | Quantisation::F16 => (0.95, 1e-3),
            Quantisation::Bf16 => (0.9, 1e-2),
            Quantisation::Q8_0 => (0.8, 1e-2),
            Quantisation::Q6K | Quantisation::Q5K | Quantisation::Q4K => return Ok(()),
        };
        if self.top_1 < least_top_1 || self.divergence.is_nan() || self.divergence > most_divergence {
            bail!(hinted(
                format!(
                    "the file does not say what the weights say: the likeliest token is the same at {:.3} of {} positions (at \
                     least {least_top_1}), and the divergence is {:.2e} (at most {most_divergence:.0e})",
                    self.top_1, self.positions, self.divergence
                ),
                "run it again with --quantisation f16; if that agrees, this base is too delicate for the smaller form",
            ));
        }
        Ok(())
    }
}

/// The first texts of the validation set, else of the training set.
pub(super) fn texts(dataset: &Path) -> Result<Vec<String>> {
    for split in [Split::Validation, Split::Train] {
        let path = dataset.join(crate::dataset::rendered(split));
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))?;
        let lines = text.lines().take(MOST_TEXTS).map(serde_json::from_str::<serde_json::Value>);
        let texts: Vec<_> = lines.filter_map(|line| Some(line.ok()?["text"].as_str()?.to_owned())).collect();
        if !texts.is_empty() {
            return Ok(texts);
        }
    }
    bail!("the dataset in `{}` has no text", dataset.display())
}

/// Holds a file against the folder it was made of.
pub fn compare(file: &Path, folder: &Path, tokens: &Tokens, texts: &[String]) -> Result<Agreement> {
    let weights = Weights::open(folder)?;
    let expected = Model::load(ModelConfig::read(folder)?, &weights, Storage::F32, &Device::Cpu)?;
    let found = Gguf::open(file).and_then(|gguf| gguf::load(&gguf, &Device::Cpu))?;
    let (mut positions, mut same, mut divergence) = (0, 0.0, 0.0);
    for text in texts {
        let ids = tokens.encode(text).map_err(anyhow::Error::msg)?.ids;
        // The end of a text is where the calls are.
        let sequence = Sequence::unlabelled(&ids[ids.len().saturating_sub(MOST_TOKENS)..]);
        let (expected, found) = (expected.logits(&sequence)?, found.logits(&sequence)?);
        positions += sequence.len();
        let likeliest = |logits: &Tensor| logits.argmax(D::Minus1);
        same += f64::from(
            likeliest(&expected)?
                .eq(&likeliest(&found)?)?
                .to_dtype(candle_core::DType::F32)?
                .sum_all()?
                .to_scalar::<f32>()?,
        );
        let log = |logits: &Tensor| candle_nn::ops::log_softmax(logits, D::Minus1);
        let (expected, found) = (log(&expected)?, log(&found)?);
        divergence += f64::from((expected.exp()? * (expected - found)?)?.sum_all()?.to_scalar::<f32>()?);
    }
    let count = positions.max(1) as f64;
    Ok(Agreement { positions, top_1: same / count, divergence: divergence / count })
}
