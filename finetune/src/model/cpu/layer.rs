//! One layer forwards and backwards.

use candle_core::{Result, Tensor};
use faer::Accum;

use super::attention::{Attention, Places, Placing};
use super::buffers::{Buffer, Buffers};
use super::linear::{AdapterGradients, numbers};
use super::rows::{add, gated, gated_backward, normalise, normalise_backward};
use crate::base::Linear;
use crate::model::layer::{Heads, Layer};
use crate::model::linear::LinearMap;

/// What the way back needs of the way there, besides the input: (tokens, width of each).
#[derive(Debug)]
pub(super) struct Kept {
    query: Buffer,
    key: Buffer,
    value: Buffer,
    middle: Buffer,
    gate: Buffer,
    up: Buffer,
}

/// The gradients by a layer's adapters, where it has them.
pub(super) type LayerGradients = [Option<AdapterGradients>; 7];

impl Layer {
    /// `input` is (tokens, hidden), and so is the result.
    pub(super) fn forward_by_hand(&self, input: &[f32], places: &Places) -> Result<(Buffer, Kept)> {
        let normal = self.normal(input, &self.input_norm, &places.buffers)?;
        let map = |linear: Linear, input: &[f32]| self.linear_map(linear).forward_by_hand(input, &places.buffers);
        let (query, key) = (map(Linear::Query, &normal)?, map(Linear::Key, &normal)?);
        let value = map(Linear::Value, &normal)?;
        let attended = self.attend(&query, &key, &value, places, |attention| attention.forward())?;
        let mut middle = map(Linear::Output, &attended)?;
        drop(attended);
        add(&mut middle, input);
        let normal = self.normal(&middle, &self.middle_norm, &places.buffers)?;
        let (gate, up) = (map(Linear::Gate, &normal)?, map(Linear::Up, &normal)?);
        let mut inner = places.buffers.take(gate.len());
        gated(&gate, &up, &mut inner);
        let mut result = map(Linear::Down, &inner)?;
        add(&mut result, &middle);
        Ok((result, Kept { query, key, value, middle, gate, up }))
    }

    /// Turns the gradient by the result into the gradient by the input.
    pub(super) fn backward_by_hand(
        &self,
        input: &[f32],
        kept: Kept,
        places: &Places,
        gradient: &mut [f32],
    ) -> Result<LayerGradients> {
        let mut found = LayerGradients::default();
        let epsilon = self.shape.epsilon as f32;
        let Kept { query, key, value, middle, gate, up } = kept;
        let normal = self.normal(&middle, &self.middle_norm, &places.buffers)?;
        let by_normal = self.gate_backward(&normal, (gate, up), places, (gradient, &mut found))?;
        numbers(&self.middle_norm, |norm| normalise_backward(&middle, norm, epsilon, (&by_normal, gradient)))?;
        let normal = self.normal(input, &self.input_norm, &places.buffers)?;
        let by_normal = self.attention_backward(&normal, (&query, &key, &value), places, (gradient, &mut found))?;
        numbers(&self.input_norm, |norm| normalise_backward(input, norm, epsilon, (&by_normal, gradient)))?;
        Ok(found)
    }

    /// Through the gated map: gives the gradient by `normal`, which went in.
    fn gate_backward(
        &self,
        normal: &[f32],
        (mut gate, mut up): (Buffer, Buffer),
        places: &Places,
        (gradient, found): (&[f32], &mut LayerGradients),
    ) -> Result<Buffer> {
        let mut inner = places.buffers.take(gate.len());
        gated(&gate, &up, &mut inner);
        found[Linear::Down as usize] = self.linear_map(Linear::Down).gradients_by_adapter(&inner, gradient)?;
        let mut by_inner = inner;
        self.linear_map(Linear::Down).gradient_by_input(gradient, &mut by_inner, Accum::Replace)?;
        gated_backward(&mut gate, &mut up, &by_inner);
        drop(by_inner);
        self.gradient_by_shared_input(normal, &[(Linear::Gate, &gate), (Linear::Up, &up)], places, found)
    }

    /// Through attention: gives the gradient by `normal`, which went in.
    fn attention_backward(
        &self,
        normal: &[f32],
        (query, key, value): (&[f32], &[f32], &[f32]),
        places: &Places,
        (gradient, found): (&[f32], &mut LayerGradients),
    ) -> Result<Buffer> {
        let output = self.linear_map(Linear::Output);
        let mut by_attended = places.buffers.take(query.len());
        output.gradient_by_input(gradient, &mut by_attended, Accum::Replace)?;
        let mut by = self.attend(query, key, value, places, |attention| attention.backward(&by_attended))?;
        drop(by_attended);
        // What attention gave is had with its derivative, so it is not computed twice.
        found[Linear::Output as usize] = output.gradients_by_adapter(&by.result, gradient)?;
        self.with_placings(places, |queries, keys| {
            queries.backward(query, &mut by.queries);
            keys.backward(key, &mut by.keys);
        })?;
        let gradients = [(Linear::Query, &by.queries), (Linear::Key, &by.keys), (Linear::Value, &by.values)];
        self.gradient_by_shared_input(normal, &gradients, places, found)
    }

    /// The gradient by the input of several maps, given those by their results.
    fn gradient_by_shared_input(
        &self,
        input: &[f32],
        gradients: &[(Linear, &Buffer)],
        places: &Places,
        found: &mut LayerGradients,
    ) -> Result<Buffer> {
        let mut by_input = places.buffers.take(input.len());
        for (number, (linear, gradient)) in gradients.iter().enumerate() {
            let map = self.linear_map(*linear);
            let mode = if number == 0 { Accum::Replace } else { Accum::Add };
            map.gradient_by_input(gradient, &mut by_input, mode)?;
            found[*linear as usize] = map.gradients_by_adapter(input, gradient)?;
        }
        Ok(by_input)
    }

    fn linear_map(&self, linear: Linear) -> &LinearMap {
        &self.maps[linear as usize]
    }

    fn normal(&self, input: &[f32], norm: &Tensor, buffers: &Buffers) -> Result<Buffer> {
        let mut normal = buffers.take(input.len());
        numbers(norm, |norm| normalise(input, norm, self.shape.epsilon as f32, &mut normal))?;
        Ok(normal)
    }

    fn attend<R>(
        &self,
        query: &[f32],
        key: &[f32],
        value: &[f32],
        places: &Places,
        then: impl FnOnce(Attention<'_>) -> R,
    ) -> Result<R> {
        let forward = |queries: Placing<'_>, keys: Placing<'_>| (queries.forward(query), keys.forward(key));
        let (queries, keys) = self.with_placings(places, forward)?;
        Ok(then(Attention { queries: &queries, keys: &keys, values: value, places, heads: self.shape }))
    }

    /// How queries and keys are normed and rotated.
    fn with_placings<R>(&self, places: &Places, then: impl FnOnce(Placing<'_>, Placing<'_>) -> R) -> Result<R> {
        let Heads { queries, keys, .. } = self.shape;
        match (&self.query_norm, &self.key_norm) {
            (Some(query_norm), Some(key_norm)) => numbers(query_norm, |query_norm| {
                numbers(key_norm, |key_norm| {
                    then(self.placing(places, Some(query_norm), queries), self.placing(places, Some(key_norm), keys))
                })
            })?,
            _ => Ok(then(self.placing(places, None, queries), self.placing(places, None, keys))),
        }
    }

    fn placing<'a>(&self, places: &'a Places, norm: Option<&'a [f32]>, heads: usize) -> Placing<'a> {
        Placing { places, norm, heads, epsilon: self.shape.epsilon as f32 }
    }
}
