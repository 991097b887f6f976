//! Loss and gradients of one sequence.

use std::collections::{BTreeMap, VecDeque};

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var, bail};
use serde::{Deserialize, Serialize};

use super::loss::cross_entropy;
use super::memo::{Memo, Products};
use super::ops::rms_norm;
use super::qwen::Model;
use super::sequence::Sequence;

/// What a layer's second pass computes anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Recompute {
    /// Everything but the products with the frozen weights. For each token and layer it keeps as many
    /// numbers as queries, keys, values, gate, up and twice the hidden state are.
    #[default]
    Light,
    /// Everything: only the input of each layer is kept.
    All,
}

/// The sums of gradients over the sequences of a step, by the names of what is trained.
#[derive(Debug, Default)]
pub struct Gradients(BTreeMap<String, Tensor>);

impl Gradients {
    pub(super) fn add(&mut self, name: String, gradient: Tensor) -> Result<()> {
        let sum = match self.0.get(&name) {
            Some(sum) => (sum + gradient)?.detach(),
            None => gradient,
        };
        self.0.insert(name, sum);
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, gradient)| (name.as_str(), gradient))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The root of the sum of all squares.
    pub fn norm(&self) -> Result<f64> {
        let mut sum = 0.0;
        for gradient in self.0.values() {
            sum += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
        }
        Ok(sum.sqrt())
    }
}

impl Model {
    /// The mean cross-entropy per learnt token, without gradients.
    pub fn loss(&self, sequence: &Sequence) -> Result<f64> {
        let learnt = sequence.learnt();
        if learnt == 0 {
            return Ok(0.0);
        }
        if self.device.is_cpu() {
            return self.loss_by_hand(sequence, learnt as f64);
        }
        let around = self.around(sequence)?;
        let mut state = self.embed(sequence.ids())?;
        for layer in &self.layers {
            state = layer.forward(&state, &around, Memo::Off)?.detach();
        }
        Ok(f64::from(self.tail(&state, sequence, learnt as f64)?.to_scalar::<f32>()?))
    }

    /// Adds the gradients of a sequence's loss to `sums`, and gives that loss: the sum over its learnt tokens, over `denominator`.
    pub fn accumulate(
        &self,
        sequence: &Sequence,
        denominator: f64,
        recompute: Recompute,
        sums: &mut Gradients,
    ) -> Result<f64> {
        if sequence.learnt() == 0 {
            return Ok(0.0);
        }
        if self.device.is_cpu() {
            self.accumulate_by_hand(sequence, denominator, recompute, sums)
        } else {
            self.accumulate_in_graph(sequence, denominator, recompute, sums)
        }
    }

    /// The same from operations on tensors, on any device.
    pub(super) fn accumulate_in_graph(
        &self,
        sequence: &Sequence,
        denominator: f64,
        recompute: Recompute,
        sums: &mut Gradients,
    ) -> Result<f64> {
        let around = self.around(sequence)?;
        let mut state = self.embed(sequence.ids())?;
        let mut kept: Vec<(Tensor, Products)> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let products = Products::default();
            let memo = if recompute == Recompute::Light { Memo::Keep(&products) } else { Memo::Off };
            let output = layer.forward(&state, &around, memo)?.detach();
            kept.push((std::mem::replace(&mut state, output), products));
        }
        let top = Var::from_tensor(&state)?;
        let loss = self.tail(top.as_tensor(), sequence, denominator)?;
        let value = loss.to_scalar::<f32>()?;
        let mut gradient = gradient_by(&loss.backward()?, &top)?;
        let trained = self.trained_by_layer();
        drop((loss, top, state));
        for ((layer, trained), (input, products)) in self.layers.iter().zip(&trained).zip(kept).rev() {
            let input = Var::from_tensor(&input)?;
            let output = layer.forward(input.as_tensor(), &around, Memo::Use(&products))?;
            // The derivative of this sum by the output is the gradient that came from above.
            let found = (output * &gradient)?.sum_all()?.backward()?;
            for (name, variable) in trained {
                if let Some(gradient) = found.get(variable.as_tensor()) {
                    sums.add(name.clone(), gradient.detach())?;
                }
            }
            gradient = gradient_by(&found, &input)?;
        }
        Ok(f64::from(value))
    }

    fn tail(&self, state: &Tensor, sequence: &Sequence, denominator: f64) -> Result<Tensor> {
        let (positions, targets) = sequence.targets();
        let chosen = state.index_select(&Tensor::new(positions, &self.device)?, 0)?;
        let normal = rms_norm(&chosen, &self.norm, self.config.norm_epsilon)?;
        cross_entropy(&normal, self.head(), &targets, denominator)
    }

    fn trained_by_layer(&self) -> Vec<Vec<(String, Var)>> {
        let mut all: VecDeque<_> = self.trainable().into();
        let mut layers = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let count = layer.maps.iter().filter(|map| map.adapter.is_some()).count() * 2;
            layers.push(all.drain(..count).collect());
        }
        layers
    }
}

fn gradient_by(found: &GradStore, variable: &Var) -> Result<Tensor> {
    match found.get(variable.as_tensor()) {
        Some(gradient) => Ok(gradient.detach()),
        None => bail!("the gradient was lost on the way down: an operation without a derivative is in the path"),
    }
}
