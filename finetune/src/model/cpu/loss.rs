//! The head and the cross-entropy as one, of the positions that are learnt, with its gradient.

use candle_core::Result;
use faer::Accum;
use rayon::iter::{IndexedParallelIterator as _, ParallelIterator as _};
use rayon::slice::ParallelSliceMut as _;

use super::buffers::Buffers;
use super::rows::exp;
use super::weight::read;
use crate::model::frozen::Frozen;

/// So many positions at a time: their logits are the largest thing in memory besides the weights (78 MB with 151,936 tokens).
const POSITIONS: usize = 128;

/// The sum of the cross-entropies of `hidden` (positions, hidden) with `targets`, over `denominator`. `hidden` becomes its gradient.
pub(super) fn cross_entropy(
    hidden: &mut [f32],
    head: &Frozen,
    (targets, denominator): (&[u32], f64),
    buffers: &Buffers,
) -> Result<f64> {
    let width = hidden.len() / targets.len();
    read(head, |head| {
        let mut sum = 0.0;
        for (hidden, targets) in hidden.chunks_mut(POSITIONS * width).zip(targets.chunks(POSITIONS)) {
            let mut logits = buffers.take(targets.len() * head.rows());
            head.forward(hidden, &mut logits);
            let rows = logits.par_chunks_mut(head.rows()).zip(targets);
            let losses: Vec<_> = rows.map(|(row, target)| turn(row, *target as usize, denominator)).collect();
            sum += losses.iter().sum::<f64>();
            head.backward(&logits, hidden, Accum::Replace);
        }
        sum / denominator
    })
}

/// The cross-entropy of one row of logits, which become their gradient: softmax, minus one at the target.
fn turn(row: &mut [f32], target: usize, denominator: f64) -> f64 {
    let greatest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let chosen = f64::from(row[target] - greatest);
    let mut sum = 0.0;
    for part in row.chunks_mut(4096) {
        for number in part.iter_mut() {
            *number = exp(*number - greatest);
        }
        sum += f64::from(part.iter().sum::<f32>());
    }
    let scale = (1.0 / (sum * denominator)) as f32;
    for number in row.iter_mut() {
        *number *= scale;
    }
    row[target] -= (1.0 / denominator) as f32;
    sum.ln() - chosen
}
