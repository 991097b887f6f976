//! The model on a processor, forwards and backwards, written out by hand.
//!
//! A graph of tensors makes a new tensor for each operation and adds gradients one by one; on a processor that took longer than the
//! products. Here each layer is a function and its derivative on plain numbers: the products are faer's, frozen weights stay as they are
//! stored, and everything else happens in place, on all cores. The graph in the files beside this folder does the same on any device; the
//! tests hold both against a plain model.

mod attention;
mod buffers;
mod layer;
mod linear;
mod loss;
mod matrix;
mod rows;
#[cfg(test)]
mod tests;
mod weight;

use candle_core::{Device, Result, Tensor, bail};

use self::attention::Places;
use self::buffers::Buffer;
pub(super) use self::buffers::Buffers;
use self::layer::{Kept, LayerGradients};
use self::linear::numbers;
use self::loss::cross_entropy;
use self::rows::{normalise, normalise_backward};
use super::gradients::{Gradients, Recompute};
use super::qwen::Model;
use super::sequence::Sequence;
use crate::base::Linear;

impl Model {
    /// The loss of a sequence: the sum over its learnt tokens, over `denominator`.
    pub(super) fn loss_by_hand(&self, sequence: &Sequence, denominator: f64) -> Result<f64> {
        let places = self.places(sequence)?;
        let mut state = self.embedded(sequence)?;
        for layer in &self.layers {
            state = layer.forward_by_hand(&state, &places)?.0;
        }
        Ok(self.tail_by_hand(&state, sequence, denominator)?.0)
    }

    /// The same, and adds the gradients to `sums`.
    pub(super) fn accumulate_by_hand(
        &self,
        sequence: &Sequence,
        denominator: f64,
        recompute: Recompute,
        sums: &mut Gradients,
    ) -> Result<f64> {
        let places = self.places(sequence)?;
        let mut state = self.embedded(sequence)?;
        let mut inputs: Vec<(Buffer, Option<Kept>)> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let (output, kept) = layer.forward_by_hand(&state, &places)?;
            let kept = (recompute == Recompute::Light).then_some(kept);
            inputs.push((std::mem::replace(&mut state, output), kept));
        }
        let (loss, mut gradient) = self.tail_by_hand(&state, sequence, denominator)?;
        drop(state);
        for (number, (layer, (input, kept))) in self.layers.iter().zip(inputs).enumerate().rev() {
            let kept = match kept {
                Some(kept) => kept,
                None => layer.forward_by_hand(&input, &places)?.1,
            };
            let found = layer.backward_by_hand(&input, kept, &places, &mut gradient)?;
            self.add_gradients(number, found, sums)?;
        }
        Ok(loss)
    }

    fn places(&self, sequence: &Sequence) -> Result<Places> {
        if !self.device.is_cpu() {
            bail!("only a processor computes by hand");
        }
        let rotation = self.rotation(sequence.positions())?;
        let flat = |tensor: &Tensor| tensor.flatten_all()?.to_vec1();
        let starts = sequence.positions().iter().enumerate().map(|(token, position)| token - *position as usize);
        let (cos, sin) = (flat(&rotation.cos)?, flat(&rotation.sin)?);
        Ok(Places { cos, sin, starts: starts.collect(), buffers: self.buffers.clone() })
    }

    fn embedded(&self, sequence: &Sequence) -> Result<Buffer> {
        let embedded = self.embed(sequence.ids())?.flatten_all()?;
        let mut state = self.buffers.take(embedded.elem_count());
        numbers(&embedded, |embedded| state.copy_from_slice(embedded))?;
        Ok(state)
    }

    /// From the last layer's result to the loss, and the gradient by that result.
    fn tail_by_hand(&self, state: &[f32], sequence: &Sequence, denominator: f64) -> Result<(f64, Buffer)> {
        let (width, epsilon) = (self.config.hidden, self.config.norm_epsilon as f32);
        let (positions, targets) = sequence.targets();
        let rows = || positions.iter().map(|position| *position as usize * width..(*position as usize + 1) * width);
        let chosen: Vec<f32> = rows().flat_map(|row| &state[row]).copied().collect();
        let mut normal = vec![0.0; chosen.len()];
        numbers(&self.norm, |norm| normalise(&chosen, norm, epsilon, &mut normal))?;
        let loss = cross_entropy(&mut normal, self.head(), (&targets, denominator), &self.buffers)?;
        let mut by_chosen = vec![0.0; chosen.len()];
        numbers(&self.norm, |norm| normalise_backward(&chosen, norm, epsilon, (&normal, &mut by_chosen)))?;
        let mut gradient = self.buffers.zeros(state.len());
        for (row, by_row) in rows().zip(by_chosen.chunks(width)) {
            gradient[row].copy_from_slice(by_row);
        }
        Ok((loss, gradient))
    }

    fn add_gradients(&self, layer: usize, found: LayerGradients, sums: &mut Gradients) -> Result<()> {
        for (linear, found) in Linear::ALL.into_iter().zip(found) {
            let (Some(found), Some(adapter)) = (found, &self.layers[layer].maps[linear as usize].adapter) else {
                continue;
            };
            let [a, b] = Self::adapter_names(layer, linear);
            sums.add(a, Tensor::from_vec(found.a, adapter.a.shape(), &Device::Cpu)?)?;
            sums.add(b, Tensor::from_vec(found.b, adapter.b.shape(), &Device::Cpu)?)?;
        }
        Ok(())
    }
}
