//! Writing text, one token after the other, the most likely one each time.

use candle_core::{D, Result, Tensor};

use super::layer::{Past, Surroundings};
use super::ops::rms_norm;
use super::qwen::Model;

/// A text that grows.
#[derive(Debug)]
pub struct Generator<'a> {
    model: &'a Model,
    past: Vec<Past>,
    length: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Without the token that ended it.
    pub ids: Vec<u32>,
    /// Whether the model ended it, and not the limit.
    pub stopped: bool,
}

impl<'a> Generator<'a> {
    pub fn new(model: &'a Model) -> Self {
        Self { model, past: vec![Past::default(); model.layers.len()], length: 0 }
    }

    /// Continues `prompt` until one of `ends` or `limit` tokens.
    pub fn greedy(&mut self, prompt: &[u32], ends: &[u32], limit: usize) -> Result<Generated> {
        let mut ids = Vec::new();
        let mut logits = self.feed(prompt)?;
        while ids.len() < limit {
            let next = logits.argmax(D::Minus1)?.to_scalar::<u32>()?;
            if ends.contains(&next) {
                return Ok(Generated { ids, stopped: true });
            }
            ids.push(next);
            logits = self.feed(&[next])?;
        }
        Ok(Generated { ids, stopped: false })
    }

    /// The logits (vocabulary) after the last of these tokens, which follow those of before.
    pub fn feed(&mut self, ids: &[u32]) -> Result<Tensor> {
        let model = self.model;
        let positions: Vec<_> = (self.length..self.length + ids.len()).map(|position| position as u32).collect();
        let around = Surroundings { rotation: model.rotation(&positions)?, mask: self.mask(ids.len())? };
        let mut state = model.embed(ids)?;
        for (layer, past) in model.layers.iter().zip(&mut self.past) {
            state = layer.next(&state, &around, past)?.detach();
        }
        self.length += ids.len();
        let last = state.narrow(0, ids.len() - 1, 1)?;
        model.head().product(&rms_norm(&last, &model.norm, model.config.norm_epsilon)?)?.squeeze(0)
    }

    /// New tokens see all of the past, and of themselves what came before.
    fn mask(&self, count: usize) -> Result<Tensor> {
        let seen = self.length + count;
        let row =
            |at: usize| (0..seen).map(move |column| if column > self.length + at { f32::NEG_INFINITY } else { 0.0 });
        Tensor::from_iter((0..count).flat_map(row), &self.model.device)?.reshape((count, seen))
    }
}
