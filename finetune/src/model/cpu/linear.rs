//! A linear map with its adapter, and their derivatives.

use candle_core::{CpuStorage, Result, Storage, Tensor, bail};
use faer::Accum;

use super::buffers::{Buffer, Buffers};
use super::matrix::{matrix, matrix_mut, multiply};
use super::weight::read;
use crate::model::linear::{Adapter, LinearMap};

/// The gradients by the two halves of an adapter, shaped as they are.
#[derive(Debug)]
pub(super) struct AdapterGradients {
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
}

/// Calls `then` with the numbers of a tensor.
pub(super) fn numbers<R>(tensor: &Tensor, then: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    match (&*storage, layout.contiguous_offsets()) {
        (Storage::Cpu(CpuStorage::F32(numbers)), Some((from, to))) => Ok(then(&numbers[from..to])),
        _ => bail!("{:?} of {:?} on {:?} is not f32 side by side", tensor.shape(), tensor.dtype(), tensor.device()),
    }
}

impl Adapter {
    /// Calls `then` with the numbers of both halves, and the rank.
    fn read<R>(&self, then: impl FnOnce(&[f32], &[f32], usize) -> R) -> Result<R> {
        let rank = self.a.dim(0)?;
        numbers(self.a.as_tensor(), |a| numbers(self.b.as_tensor(), |b| then(a, b, rank)))?
    }
}

impl LinearMap {
    /// `input` is (tokens, columns); the result (tokens, rows).
    pub(super) fn forward_by_hand(&self, input: &[f32], buffers: &Buffers) -> Result<Buffer> {
        let mut result = read(&self.weight, |weight| {
            let mut result = buffers.take(input.len() / weight.columns() * weight.rows());
            weight.forward(input, &mut result);
            result
        })?;
        if let Some(bias) = &self.bias {
            numbers(bias, |bias| {
                for row in result.chunks_mut(bias.len()) {
                    row.iter_mut().zip(bias).for_each(|(number, bias)| *number += bias);
                }
            })?;
        }
        if let Some(adapter) = &self.adapter {
            adapter.read(|a, b, rank| {
                let (rows, columns) = (b.len() / rank, a.len() / rank);
                let inner = inner(input, a, columns);
                let (inner, b) = (matrix(&inner, rank), matrix(b, rank));
                multiply(matrix_mut(&mut result, rows), Accum::Add, (inner, b.transpose()), adapter.scale as f32);
            })?;
        }
        Ok(result)
    }

    /// The gradient by the input, given that by the result: `by_input` (tokens, columns) becomes it, or gets it added.
    pub(super) fn gradient_by_input(&self, gradient: &[f32], by_input: &mut [f32], mode: Accum) -> Result<()> {
        read(&self.weight, |weight| weight.backward(gradient, by_input, mode))?;
        let Some(adapter) = &self.adapter else { return Ok(()) };
        adapter.read(|a, b, rank| {
            let through = through(gradient, b, (rank, adapter.scale));
            let columns = a.len() / rank;
            multiply(matrix_mut(by_input, columns), Accum::Add, (matrix(&through, rank), matrix(a, columns)), 1.0);
        })
    }

    /// The gradients by the adapter, where there is one.
    pub(super) fn gradients_by_adapter(&self, input: &[f32], gradient: &[f32]) -> Result<Option<AdapterGradients>> {
        let Some(adapter) = &self.adapter else { return Ok(None) };
        let found = adapter.read(|a, b, rank| {
            let (rows, columns) = (b.len() / rank, a.len() / rank);
            let mut found = AdapterGradients { a: vec![0.0; a.len()], b: vec![0.0; b.len()] };
            let through = through(gradient, b, (rank, adapter.scale));
            let factors = (matrix(&through, rank).transpose(), matrix(input, columns));
            multiply(matrix_mut(&mut found.a, columns), Accum::Replace, factors, 1.0);
            let inner = inner(input, a, columns);
            let factors = (matrix(gradient, rows).transpose(), matrix(&inner, rank));
            multiply(matrix_mut(&mut found.b, rank), Accum::Replace, factors, adapter.scale as f32);
            found
        })?;
        Ok(Some(found))
    }
}

/// The gradient by what lies between the halves of an adapter: (tokens, rank).
fn through(gradient: &[f32], b: &[f32], (rank, scale): (usize, f64)) -> Vec<f32> {
    let gradient = matrix(gradient, b.len() / rank);
    let mut through = vec![0.0; gradient.nrows() * rank];
    multiply(matrix_mut(&mut through, rank), Accum::Replace, (gradient, matrix(b, rank)), scale as f32);
    through
}

/// `input` times the transposed `a`: (tokens, rank).
fn inner(input: &[f32], a: &[f32], columns: usize) -> Vec<f32> {
    let (input, a) = (matrix(input, columns), matrix(a, columns));
    let mut inner = vec![0.0; input.nrows() * a.nrows()];
    multiply(matrix_mut(&mut inner, a.nrows()), Accum::Replace, (input, a.transpose()), 1.0);
    inner
}
