//! One layer: attention and the gated map, each after a norm and added to what came in.

use candle_core::{Result, Tensor};

use super::linear::LinearMap;
use super::memo::Memo;
use super::ops::{Rotation, gated, rms_norm, rotate, softmax};
use crate::base::Linear;

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) input_norm: Tensor,
    pub(super) middle_norm: Tensor,
    /// Qwen3 only.
    pub(super) query_norm: Option<Tensor>,
    pub(super) key_norm: Option<Tensor>,
    pub(super) maps: [LinearMap; 7],
    pub(super) shape: Heads,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) width: usize,
    pub(super) epsilon: f64,
}

/// What all layers see of a sequence.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) rotation: Rotation,
    /// (tokens, tokens seen)
    pub(super) mask: Tensor,
}

/// Keys and values of the tokens before: (key heads, tokens, width) each.
#[derive(Debug, Clone, Default)]
pub(super) struct Past(Option<(Tensor, Tensor)>);

impl Past {
    fn extend(&mut self, keys: Tensor, values: Tensor) -> Result<(Tensor, Tensor)> {
        let all = match self.0.take() {
            None => (keys, values),
            Some((old_keys, old_values)) => {
                (Tensor::cat(&[old_keys, keys], 1)?, Tensor::cat(&[old_values, values], 1)?)
            }
        };
        self.0 = Some(all.clone());
        Ok(all)
    }
}

impl Layer {
    /// `input` is (tokens, hidden), and so is the result.
    pub(super) fn forward(&self, input: &Tensor, around: &Surroundings, memo: Memo<'_>) -> Result<Tensor> {
        self.run(input, around, memo, None)
    }

    /// The same for the next tokens of a text whose beginning is in `past`.
    pub(super) fn next(&self, input: &Tensor, around: &Surroundings, past: &mut Past) -> Result<Tensor> {
        self.run(input, around, Memo::Off, Some(past))
    }

    fn run(&self, input: &Tensor, around: &Surroundings, memo: Memo<'_>, past: Option<&mut Past>) -> Result<Tensor> {
        let epsilon = self.shape.epsilon;
        let attended = self.attention(&rms_norm(input, &self.input_norm, epsilon)?, around, memo, past)?;
        let middle = (input + self.map(Linear::Output, &attended, memo)?)?;
        let normal = rms_norm(&middle, &self.middle_norm, epsilon)?;
        let inner = gated(&self.map(Linear::Gate, &normal, memo)?, &self.map(Linear::Up, &normal, memo)?)?;
        middle + self.map(Linear::Down, &inner, memo)?
    }

    fn attention(
        &self,
        input: &Tensor,
        around: &Surroundings,
        memo: Memo<'_>,
        past: Option<&mut Past>,
    ) -> Result<Tensor> {
        let Heads { queries, keys: groups, width, epsilon } = self.shape;
        let tokens = input.dim(0)?;
        let split = |tensor: Tensor, heads: usize| tensor.reshape((tokens, heads, width));
        let mut query = split(self.map(Linear::Query, input, memo)?, queries)?;
        let mut key = split(self.map(Linear::Key, input, memo)?, groups)?;
        let value = split(self.map(Linear::Value, input, memo)?, groups)?.transpose(0, 1)?.contiguous()?;
        if let (Some(query_norm), Some(key_norm)) = (&self.query_norm, &self.key_norm) {
            query = rms_norm(&query, query_norm, epsilon)?;
            key = rms_norm(&key, key_norm, epsilon)?;
        }
        let query = rotate(&query.transpose(0, 1)?.contiguous()?, &around.rotation)?;
        let key = rotate(&key.transpose(0, 1)?.contiguous()?, &around.rotation)?;
        let (key, value) = match past {
            Some(past) => past.extend(key, value)?,
            None => (key, value),
        };
        // The queries that share a key are rows of one product: no key is copied.
        let (shared, seen) = (queries / groups, key.dim(1)?);
        let query = (query * (1.0 / (width as f64).sqrt()))?.reshape((groups, shared * tokens, width))?;
        let scores = query.matmul(&key.t()?)?.reshape((queries, tokens, seen))?.broadcast_add(&around.mask)?;
        let weights = softmax(&scores)?.reshape((groups, shared * tokens, seen))?;
        let mixed = weights.matmul(&value)?.reshape((queries, tokens, width))?;
        mixed.transpose(0, 1)?.contiguous()?.reshape((tokens, queries * width))
    }

    fn map(&self, linear: Linear, input: &Tensor, memo: Memo<'_>) -> Result<Tensor> {
        self.maps[linear as usize].forward(input, &memo)
    }
}
