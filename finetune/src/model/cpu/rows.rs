//! What happens to each token by itself, on all cores: norm, gate and rotation, and their derivatives.

use rayon::iter::{IndexedParallelIterator as _, ParallelIterator as _};
use rayon::slice::{ParallelSlice as _, ParallelSliceMut as _};

/// Independent sums in a reduction, so that the processor adds many numbers at once.
const LANES: usize = 16;

#[inline]
pub(super) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left.iter().zip(right) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f32>() + rest
}

/// The natural exponential within 2e-7 of its value; 0 below -87. Without a branch, so that the processor computes many at once:
/// a power of two times a polynomial of what remains (the coefficients are those of Cephes' `expf`).
#[inline]
pub(super) fn exp(x: f32) -> f32 {
    /// Adding and taking away this number rounds to a whole one.
    const ROUND: f32 = 12_582_912.0;
    let bounded = x.clamp(-87.0, 88.0);
    let whole = (bounded * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let rest = (bounded - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let polynomial = [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let sum = polynomial.iter().fold(1.987_569_2e-4, |sum, coefficient| sum * rest + coefficient);
    let value = (sum * rest * rest + rest + 1.0) * f32::from_bits((((whole as i32) + 127) << 23) as u32);
    if x < -87.0 { 0.0 } else { value }
}

#[inline]
fn inverse_root(input: &[f32], epsilon: f32) -> f32 {
    (dot(input, input) / input.len() as f32 + epsilon).sqrt().recip()
}

/// Root mean square normalisation of each row, times `weight` (Zhang and Sennrich 2019).
pub(super) fn normalise(input: &[f32], weight: &[f32], epsilon: f32, result: &mut [f32]) {
    let rows = input.par_chunks(weight.len()).zip(result.par_chunks_mut(weight.len()));
    rows.with_min_len(16).for_each(|(input, result)| normalise_row(input, weight, epsilon, result));
}

#[inline]
pub(super) fn normalise_row(input: &[f32], weight: &[f32], epsilon: f32, result: &mut [f32]) {
    let inverse = inverse_root(input, epsilon);
    for ((result, input), weight) in result.iter_mut().zip(input).zip(weight) {
        *result = input * inverse * weight;
    }
}

/// Adds the gradient by the input to `sums`, given the gradient by the result.
pub(super) fn normalise_backward(input: &[f32], weight: &[f32], epsilon: f32, (gradient, sums): (&[f32], &mut [f32])) {
    let width = weight.len();
    let rows = input.par_chunks(width).zip(gradient.par_chunks(width)).zip(sums.par_chunks_mut(width));
    rows.with_min_len(16).for_each(|((input, gradient), sums)| {
        let (inverse, along) = along(input, weight, epsilon, gradient);
        for (((sum, gradient), weight), input) in sums.iter_mut().zip(gradient).zip(weight).zip(input) {
            *sum += inverse * (gradient * weight - input * along);
        }
    });
}

/// The same for one row, in place of the gradient by the result.
#[inline]
pub(super) fn normalise_backward_row(input: &[f32], weight: &[f32], epsilon: f32, gradient: &mut [f32]) {
    let (inverse, along) = along(input, weight, epsilon, gradient);
    for ((gradient, weight), input) in gradient.iter_mut().zip(weight).zip(input) {
        *gradient = inverse * (*gradient * weight - input * along);
    }
}

/// The inverse of the root, and what of the input is taken from the gradient: scaling the input changes nothing.
#[inline]
fn along(input: &[f32], weight: &[f32], epsilon: f32, gradient: &[f32]) -> (f32, f32) {
    let inverse = inverse_root(input, epsilon);
    let mut sums = [0.0; LANES];
    for ((input, weight), gradient) in input.chunks(LANES).zip(weight.chunks(LANES)).zip(gradient.chunks(LANES)) {
        for (lane, ((input, weight), gradient)) in input.iter().zip(weight).zip(gradient).enumerate() {
            sums[lane] += input * weight * gradient;
        }
    }
    (inverse, sums.iter().sum::<f32>() * inverse * inverse / input.len() as f32)
}

/// So many numbers are a task.
const TASK: usize = 32 * 1024;

/// `silu(gate) * up`
pub(super) fn gated(gate: &[f32], up: &[f32], result: &mut [f32]) {
    let parts = gate.par_chunks(TASK).zip(up.par_chunks(TASK)).zip(result.par_chunks_mut(TASK));
    parts.for_each(|((gate, up), result)| {
        for ((result, gate), up) in result.iter_mut().zip(gate).zip(up) {
            *result = gate / (1.0 + exp(-gate)) * up;
        }
    });
}

/// Turns `gate` and `up` into the gradients by them, given the gradient by the result.
pub(super) fn gated_backward(gate: &mut [f32], up: &mut [f32], gradient: &[f32]) {
    let parts = gate.par_chunks_mut(TASK).zip(up.par_chunks_mut(TASK)).zip(gradient.par_chunks(TASK));
    parts.for_each(|((gate, up), gradient)| {
        for ((gate, up), gradient) in gate.iter_mut().zip(up).zip(gradient) {
            let sigmoid = 1.0 / (1.0 + exp(-*gate));
            let silu = *gate * sigmoid;
            let by_gate = gradient * *up * (sigmoid + silu * (1.0 - sigmoid));
            *up = gradient * silu;
            *gate = by_gate;
        }
    });
}

pub(super) fn add(sums: &mut [f32], numbers: &[f32]) {
    let parts = sums.par_chunks_mut(TASK).zip(numbers.par_chunks(TASK));
    parts.for_each(|(sums, numbers)| sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number));
}

/// Rotates one head by the angles of its token, in the halves of NEOX (Su et al. 2021).
#[inline]
pub(super) fn rotate_row(numbers: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (first, second) = numbers.split_at_mut(cos.len());
    for (((first, second), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
        (*first, *second) = (*first * cos - *second * sin, *second * cos + *first * sin);
    }
}

/// The way back, which is the derivative: a rotation's transpose is its inverse.
#[inline]
pub(super) fn rotate_back_row(numbers: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (first, second) = numbers.split_at_mut(cos.len());
    for (((first, second), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
        (*first, *second) = (*first * cos + *second * sin, *second * cos - *first * sin);
    }
}
