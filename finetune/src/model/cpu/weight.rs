//! Products with a frozen weight that stays as it is stored. It is made f32 in pieces that stay in a core's cache.

use std::ops::Range;

use candle_core::quantized::GgmlDType;
use candle_core::{CpuStorage, Result, Storage, Tensor, bail};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatRef, Par};
use half::{bf16, f16};
use rayon::iter::{IndexedParallelIterator as _, ParallelIterator as _};

use super::matrix::{STRIP, matrix, matrix_mut};
use crate::model::frozen::Frozen;

/// So many numbers of a weight are made f32 at a time: half a megabyte, which leaves room beside it in a second-level cache.
const PIECE: usize = 128 * 1024;
/// Of rows that are no longer, twice as many are made f32 at a time.
const SHORT: usize = 1024;
/// Q8_0: a scale in f16, then so many numbers of eight bits.
const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 2 + BLOCK;

#[derive(Debug, Clone, Copy)]
enum Numbers<'a> {
    F32(&'a [f32]),
    Bf16(&'a [bf16]),
    F16(&'a [f16]),
    Q8_0(&'a [u8]),
}

/// (rows, columns), row by row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight<'a> {
    numbers: Numbers<'a>,
    rows: usize,
    columns: usize,
}

/// Calls `then` with the numbers of a frozen weight.
pub(super) fn read<R>(frozen: &Frozen, then: impl FnOnce(Weight<'_>) -> R) -> Result<R> {
    match frozen {
        Frozen::Dense(tensor) => read_tensor(tensor, then),
        Frozen::Quantised { weight, .. } if weight.dtype() == GgmlDType::Q8_0 => {
            let (rows, columns) = weight.shape().dims2()?;
            let bytes = weight.data()?;
            Ok(then(Weight { numbers: Numbers::Q8_0(&bytes), rows, columns }))
        }
        Frozen::Quantised { weight, .. } => read_tensor(&weight.dequantize(&weight.device())?, then),
    }
}

fn read_tensor<R>(tensor: &Tensor, then: impl FnOnce(Weight<'_>) -> R) -> Result<R> {
    let (rows, columns) = tensor.dims2()?;
    let (storage, layout) = tensor.storage_and_layout();
    let Some((from, to)) = layout.contiguous_offsets() else { bail!("a frozen weight is not contiguous") };
    let numbers = match &*storage {
        Storage::Cpu(CpuStorage::F32(numbers)) => Numbers::F32(&numbers[from..to]),
        Storage::Cpu(CpuStorage::BF16(numbers)) => Numbers::Bf16(&numbers[from..to]),
        Storage::Cpu(CpuStorage::F16(numbers)) => Numbers::F16(&numbers[from..to]),
        _ => bail!("a frozen weight is {:?} on {:?}", tensor.dtype(), tensor.device()),
    };
    Ok(then(Weight { numbers, rows, columns }))
}

impl Weight<'_> {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// `input` (any, columns) times the transposed weight: `result` is (any, rows).
    pub(super) fn forward(&self, input: &[f32], result: &mut [f32]) {
        let (input, result) = (matrix(input, self.columns), matrix_mut(result, self.rows));
        let strip = if self.columns <= SHORT { 2 * STRIP } else { STRIP };
        result.par_col_chunks_mut(strip).enumerate().for_each(|(number, result)| {
            let rows = number * strip..number * strip + result.ncols();
            let mut piece = Vec::new();
            let weight = self.piece(rows, 0..self.columns, &mut piece);
            matmul(result, Accum::Replace, input, weight.transpose(), 1.0, Par::Seq);
        });
    }

    /// `gradient` (any, rows) times the weight: `result` (any, columns) becomes it, or gets it added.
    pub(super) fn backward(&self, gradient: &[f32], result: &mut [f32], mode: Accum) {
        let (gradient, result) = (matrix(gradient, self.rows), matrix_mut(result, self.columns));
        result.par_col_chunks_mut(STRIP).enumerate().for_each(|(number, mut result)| {
            let columns = number * STRIP..number * STRIP + result.ncols();
            let mut piece = Vec::new();
            for from in (0..self.rows).step_by(PIECE / STRIP) {
                let rows = from..(from + PIECE / STRIP).min(self.rows);
                let gradient = gradient.subcols(from, rows.len());
                let weight = self.piece(rows, columns.clone(), &mut piece);
                let mode = if from == 0 { mode } else { Accum::Add };
                matmul(result.as_mut(), mode, gradient, weight, 1.0, Par::Seq);
            }
        });
    }

    /// Some rows and columns in f32: in place where they are, else made in `piece`. A range of columns of Q8_0 begins and ends with a block.
    fn piece<'b>(&'b self, rows: Range<usize>, columns: Range<usize>, piece: &'b mut Vec<f32>) -> MatRef<'b, f32> {
        let width = columns.len();
        piece.clear();
        piece.reserve(rows.len() * width);
        let begins = rows.clone().map(|row| row * self.columns + columns.start);
        match self.numbers {
            Numbers::F32(numbers) => {
                let all = matrix(numbers, self.columns);
                return all.submatrix(rows.start, columns.start, rows.len(), width);
            }
            Numbers::Bf16(numbers) => {
                begins.for_each(|from| piece.extend(numbers[from..from + width].iter().copied().map(widened)));
            }
            Numbers::F16(numbers) => {
                begins.for_each(|from| piece.extend(numbers[from..from + width].iter().map(|number| number.to_f32())));
            }
            Numbers::Q8_0(bytes) => begins.for_each(|from| {
                let blocks = &bytes[from / BLOCK * BLOCK_BYTES..(from + width) / BLOCK * BLOCK_BYTES];
                for block in blocks.chunks_exact(BLOCK_BYTES) {
                    let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
                    piece.extend(block[2..].iter().map(|number| scale * f32::from(*number as i8)));
                }
            }),
        }
        matrix(piece, width)
    }
}

/// bf16 is the upper half of an f32.
#[inline]
fn widened(number: bf16) -> f32 {
    f32::from_bits(u32::from(number.to_bits()) << 16)
}
