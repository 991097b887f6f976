//! The head and the cross-entropy as one: of the positions that are learnt only, and without keeping the logits.
//!
//! The head is frozen, so the gradient by its input is known as soon as the loss is: softmax minus one at the target, times the head.

use candle_core::{DType, Result, Tensor};

use super::attach::attach;
use super::frozen::{Frozen, multiply};

/// So many positions at a time: their logits are the largest thing in memory besides the weights (152 MB with 151,936 tokens).
const POSITIONS: usize = 256;
/// The head is read in blocks of so many rows, so that a head in bf16 is never in memory as f32.
const BLOCK_ROWS: usize = 16_384;

/// The sum of the cross-entropies of `hidden` (positions, hidden) with `targets`, over `denominator`. The result is a scalar.
pub(super) fn cross_entropy(hidden: &Tensor, head: &Frozen, targets: &[u32], denominator: f64) -> Result<Tensor> {
    let rows = hidden.detach();
    let mut loss = 0.0;
    let mut gradients = Vec::new();
    for from in (0..targets.len()).step_by(POSITIONS) {
        let count = POSITIONS.min(targets.len() - from);
        let wants_gradient = hidden.track_op();
        let part = of_some(&rows.narrow(0, from, count)?, head, &targets[from..from + count], wants_gradient)?;
        loss += part.loss;
        gradients.extend(part.gradient);
    }
    let result = Tensor::new((loss / denominator) as f32, hidden.device())?;
    if gradients.is_empty() {
        return Ok(result);
    }
    let gradient = (Tensor::cat(&gradients, 0)? / denominator)?;
    attach("cross-entropy", hidden, result, move |_, _, outer| gradient.broadcast_mul(outer))
}

struct Part {
    loss: f64,
    gradient: Option<Tensor>,
}

fn of_some(hidden: &Tensor, head: &Frozen, targets: &[u32], wants_gradient: bool) -> Result<Part> {
    let blocks = blocks(head)?;
    let logits = blocks.iter().map(|(from, count)| multiply(hidden, &head.dense_rows(*from, *count)?.t()?));
    let logits = logits.collect::<Result<Vec<_>>>()?;
    let maxima = logits.iter().map(|block| block.max_keepdim(1)).collect::<Result<Vec<_>>>()?;
    let maximum = Tensor::cat(&maxima, 1)?.max_keepdim(1)?;
    let powers = logits.iter().map(|block| block.broadcast_sub(&maximum)?.exp()).collect::<Result<Vec<_>>>()?;
    let sums = powers.iter().map(|block| block.sum_keepdim(1)).collect::<Result<Vec<_>>>()?;
    let sum = Tensor::cat(&sums, 1)?.sum_keepdim(1)?;
    let chosen = chosen(&logits, &blocks, targets)?;
    let log = ((chosen - maximum)? - sum.log()?)?;
    let loss = -f64::from(log.to_dtype(DType::F32)?.sum_all()?.to_scalar::<f32>()?);
    drop(logits);
    if !wants_gradient {
        return Ok(Part { loss, gradient: None });
    }
    // The weights of the tokens, times the head, minus the rows of the targets.
    let mut gradient = hidden.zeros_like()?;
    for (block, (from, count)) in powers.iter().zip(&blocks) {
        gradient = (gradient + multiply(&block.broadcast_div(&sum)?, &head.dense_rows(*from, *count)?)?)?;
    }
    let targets = Tensor::new(targets, hidden.device())?;
    Ok(Part { loss, gradient: Some((gradient - head.rows(&targets)?)?) })
}

/// The logits of the targets: (positions, 1).
fn chosen(logits: &[Tensor], blocks: &[(usize, usize)], targets: &[u32]) -> Result<Tensor> {
    let device = logits[0].device();
    let mut sum = Tensor::zeros((targets.len(), 1), logits[0].dtype(), device)?;
    for (block, (from, count)) in logits.iter().zip(blocks) {
        let within = |target: &u32| (*target as usize).checked_sub(*from).filter(|at| at < count);
        let index: Vec<_> = targets.iter().map(|target| within(target).unwrap_or(0) as u32).collect();
        let is_here: Vec<_> = targets.iter().map(|target| f32::from(u8::from(within(target).is_some()))).collect();
        let index = Tensor::new(index, device)?.unsqueeze(1)?;
        let is_here = Tensor::new(is_here, device)?.unsqueeze(1)?;
        sum = (sum + (block.gather(&index, 1)? * is_here)?)?;
    }
    Ok(sum)
}

fn blocks(head: &Frozen) -> Result<Vec<(usize, usize)>> {
    let rows = head.row_count()?;
    Ok((0..rows).step_by(BLOCK_ROWS).map(|from| (from, BLOCK_ROWS.min(rows - from))).collect())
}
