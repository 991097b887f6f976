//! Products of matrices in f32, on all cores. A matrix lies row by row.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::iter::{IndexedParallelIterator as _, ParallelIterator as _};

/// A core takes so many rows or columns of a result at a time: enough for a product to be near its best speed, and few enough that no
/// core waits long for another.
pub(super) const STRIP: usize = 96;

pub(super) fn matrix(numbers: &[f32], columns: usize) -> MatRef<'_, f32> {
    MatRef::from_row_major_slice(numbers, numbers.len() / columns, columns)
}

pub(super) fn matrix_mut(numbers: &mut [f32], columns: usize) -> MatMut<'_, f32> {
    MatMut::from_row_major_slice_mut(numbers, numbers.len() / columns, columns)
}

/// `result` becomes (or gets added) `left` times `right` times `factor`.
pub(super) fn multiply(
    result: MatMut<'_, f32>,
    mode: Accum,
    (left, right): (MatRef<'_, f32>, MatRef<'_, f32>),
    factor: f32,
) {
    let is_tall = result.nrows() > result.ncols();
    if is_tall {
        let parts = result.par_row_chunks_mut(STRIP).zip(left.par_row_chunks(STRIP));
        parts.for_each(|(result, left)| matmul(result, mode, left, right, factor, Par::Seq));
    } else {
        let parts = result.par_col_chunks_mut(STRIP).zip(right.par_col_chunks(STRIP));
        parts.for_each(|(result, right)| matmul(result, mode, left, right, factor, Par::Seq));
    }
}
