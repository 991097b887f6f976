//! Attention of a packed sequence, head by head: each token sees itself and what came before it in its sample.
//!
//! The weights of a head are computed anew for the derivative, a strip of tokens at a time, and never leave the cache. Queries, keys and
//! values are (tokens, heads * width); neighbouring heads of queries share a head of keys.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::iter::{IndexedParallelIterator as _, ParallelIterator as _};
use rayon::slice::ParallelSliceMut as _;

use super::buffers::{Buffer, Buffers};
use super::matrix::{matrix, matrix_mut};
use super::rows::{dot, exp, normalise_backward_row, normalise_row, rotate_back_row, rotate_row};
use crate::model::layer::Heads;

/// So many tokens' weights are in work at a time.
const STRIP: usize = 128;

/// Where the tokens of a sequence stand.
#[derive(Debug)]
pub(super) struct Places {
    /// (tokens, width / 2) each.
    pub(super) cos: Vec<f32>,
    pub(super) sin: Vec<f32>,
    /// Of each token, the first that it sees.
    pub(super) starts: Vec<usize>,
    pub(super) buffers: Buffers,
}

/// The norm of each head of queries or keys, where there is one, and its rotation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placing<'a> {
    pub(super) places: &'a Places,
    pub(super) norm: Option<&'a [f32]>,
    pub(super) heads: usize,
    pub(super) epsilon: f32,
}

impl Placing<'_> {
    fn angles(&self, token: usize, width: usize) -> (&[f32], &[f32]) {
        let at = token * width / 2..(token + 1) * width / 2;
        (&self.places.cos[at.clone()], &self.places.sin[at])
    }

    /// `input` (tokens, heads * width), normed and rotated.
    pub(super) fn forward(&self, input: &[f32]) -> Buffer {
        let row = input.len() / self.places.starts.len();
        let width = row / self.heads;
        let mut result = self.places.buffers.take(input.len());
        result.copy_from_slice(input);
        result.par_chunks_mut(row).with_min_len(16).enumerate().for_each(|(token, result)| {
            let (cos, sin) = self.angles(token, width);
            let heads = input[token * row..(token + 1) * row].chunks(width);
            for (result, input) in result.chunks_mut(width).zip(heads) {
                if let Some(norm) = self.norm {
                    normalise_row(input, norm, self.epsilon, result);
                }
                rotate_row(result, cos, sin);
            }
        });
        result
    }

    /// Turns the gradient by the result into the gradient by the input.
    pub(super) fn backward(&self, input: &[f32], gradient: &mut [f32]) {
        let row = input.len() / self.places.starts.len();
        let width = row / self.heads;
        gradient.par_chunks_mut(row).with_min_len(16).enumerate().for_each(|(token, gradient)| {
            let (cos, sin) = self.angles(token, width);
            let heads = input[token * row..(token + 1) * row].chunks(width);
            for (gradient, input) in gradient.chunks_mut(width).zip(heads) {
                rotate_back_row(gradient, cos, sin);
                if let Some(norm) = self.norm {
                    normalise_backward_row(input, norm, self.epsilon, gradient);
                }
            }
        });
    }
}

/// Placed queries and keys, and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention<'a> {
    pub(super) queries: &'a [f32],
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
    pub(super) places: &'a Places,
    pub(super) heads: Heads,
}

/// What attention gives back from the gradient by its result; the result is had on the way.
#[derive(Debug)]
pub(super) struct Derivative {
    pub(super) result: Buffer,
    pub(super) queries: Buffer,
    pub(super) keys: Buffer,
    pub(super) values: Buffer,
}

impl<'a> Attention<'a> {
    fn tokens(&self) -> usize {
        self.places.starts.len()
    }

    fn head(&self, numbers: &'a [f32], heads: usize, number: usize) -> MatRef<'a, f32> {
        matrix(numbers, heads * self.heads.width).subcols(number * self.heads.width, self.heads.width)
    }

    /// Strips of tokens, each with the tokens that any of them sees.
    fn strips(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        (0..self.tokens()).step_by(STRIP).map(|from| {
            let to = (from + STRIP).min(self.tokens());
            (from..to, self.places.starts[from]..to)
        })
    }

    pub(super) fn forward(&self) -> Buffer {
        let Heads { queries, keys, width, .. } = self.heads;
        let mut result = self.places.buffers.take(self.tokens() * queries * width);
        let heads = matrix_mut(&mut result, queries * width).par_col_chunks_mut(width);
        heads.enumerate().for_each(|(number, mut result)| {
            let shared = number / (queries / keys);
            let (query, key) = (self.head(self.queries, queries, number), self.head(self.keys, keys, shared));
            let value = self.head(self.values, keys, shared);
            let mut weights = Vec::new();
            for (rows, seen) in self.strips() {
                self.weights((query, key), (&rows, &seen), &mut weights);
                let result = result.as_mut().subrows_mut(rows.start, rows.len());
                let value = value.subrows(seen.start, seen.len());
                matmul(result, Accum::Replace, matrix(&weights, seen.len()), value, 1.0, Par::Seq);
            }
        });
        result
    }

    /// The weights (rows, seen) of one head.
    fn weights(
        &self,
        (query, key): (MatRef<'_, f32>, MatRef<'_, f32>),
        (rows, seen): (&Range<usize>, &Range<usize>),
        weights: &mut Vec<f32>,
    ) {
        weights.resize(rows.len() * seen.len(), 0.0);
        let scale = 1.0 / (self.heads.width as f32).sqrt();
        let (query, key) = (query.subrows(rows.start, rows.len()), key.subrows(seen.start, seen.len()));
        matmul(matrix_mut(weights, seen.len()), Accum::Replace, query, key.transpose(), scale, Par::Seq);
        for (token, row) in rows.clone().zip(weights.chunks_mut(seen.len())) {
            let (from, to) = (self.places.starts[token] - seen.start, token + 1 - seen.start);
            row[..from].fill(0.0);
            row[to..].fill(0.0);
            softmax(&mut row[from..to]);
        }
    }

    pub(super) fn backward(&self, gradient: &'a [f32]) -> Derivative {
        let Heads { queries, keys, width, .. } = self.heads;
        let shared = queries / keys;
        let take = || self.places.buffers.take(self.tokens() * queries * width);
        let zeros = || self.places.buffers.zeros(self.tokens() * keys * width);
        let (mut result, mut by_queries) = (take(), take());
        let (mut by_keys, mut by_values) = (zeros(), zeros());
        matrix_mut(&mut result, queries * width)
            .par_col_chunks_mut(shared * width)
            .zip(matrix_mut(&mut by_queries, queries * width).par_col_chunks_mut(shared * width))
            .zip(matrix_mut(&mut by_keys, keys * width).par_col_chunks_mut(width))
            .zip(matrix_mut(&mut by_values, keys * width).par_col_chunks_mut(width))
            .enumerate()
            .for_each(|(group, (((mut result, mut by_queries), mut by_keys), mut by_values))| {
                for head in 0..shared {
                    let columns = head * width;
                    self.head_backward(
                        (group, group * shared + head),
                        gradient,
                        HeadDerivative {
                            result: result.as_mut().subcols_mut(columns, width),
                            queries: by_queries.as_mut().subcols_mut(columns, width),
                            keys: by_keys.as_mut(),
                            values: by_values.as_mut(),
                        },
                    );
                }
            });
        Derivative { result, queries: by_queries, keys: by_keys, values: by_values }
    }

    fn head_backward(&self, (group, number): (usize, usize), gradient: &'a [f32], mut to: HeadDerivative<'_>) {
        let Heads { queries, keys, width, .. } = self.heads;
        let (query, key) = (self.head(self.queries, queries, number), self.head(self.keys, keys, group));
        let (value, gradient) = (self.head(self.values, keys, group), self.head(gradient, queries, number));
        let scale = 1.0 / (width as f32).sqrt();
        let (mut weights, mut scores) = (Vec::new(), Vec::new());
        for (rows, seen) in self.strips() {
            self.weights((query, key), (&rows, &seen), &mut weights);
            let value = value.subrows(seen.start, seen.len());
            let (query, gradient) = (query.subrows(rows.start, rows.len()), gradient.subrows(rows.start, rows.len()));
            let result = to.result.as_mut().subrows_mut(rows.start, rows.len());
            matmul(result, Accum::Replace, matrix(&weights, seen.len()), value, 1.0, Par::Seq);
            scores.resize(weights.len(), 0.0);
            matmul(matrix_mut(&mut scores, seen.len()), Accum::Replace, gradient, value.transpose(), 1.0, Par::Seq);
            let by_values = to.values.as_mut().subrows_mut(seen.start, seen.len());
            matmul(by_values, Accum::Add, matrix(&weights, seen.len()).transpose(), gradient, 1.0, Par::Seq);
            for (scores, weights) in scores.chunks_mut(seen.len()).zip(weights.chunks(seen.len())) {
                let mean = dot(scores, weights);
                scores.iter_mut().zip(weights).for_each(|(score, weight)| *score = weight * (*score - mean));
            }
            let scores = matrix(&scores, seen.len());
            let by_queries = to.queries.as_mut().subrows_mut(rows.start, rows.len());
            matmul(by_queries, Accum::Replace, scores, key.subrows(seen.start, seen.len()), scale, Par::Seq);
            let by_keys = to.keys.as_mut().subrows_mut(seen.start, seen.len());
            matmul(by_keys, Accum::Add, scores.transpose(), query, scale, Par::Seq);
        }
    }
}

/// Where one head of queries puts what it gives back; it adds to keys and values, which it shares.
struct HeadDerivative<'a> {
    result: MatMut<'a, f32>,
    queries: MatMut<'a, f32>,
    keys: MatMut<'a, f32>,
    values: MatMut<'a, f32>,
}

fn softmax(row: &mut [f32]) {
    let greatest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for number in row.iter_mut() {
        *number = exp(*number - greatest);
    }
    let scale = 1.0 / row.iter().sum::<f32>();
    for number in row {
        *number *= scale;
    }
}
