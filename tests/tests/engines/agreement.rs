//! How far what two programs make of the same tokens is apart.

use std::fmt;

use anyhow::{Result, ensure};
use candle_core::{D, Tensor};
use candle_nn::ops::{log_softmax, softmax};

/// The likeliest tokens after each token, the likeliest first, with their probabilities among all.
pub(super) type Distributions = Vec<Vec<(u32, f64)>>;

/// Less likely tokens are far apart in logarithms, and never written.
const LIKELY: f64 = 1e-4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Agreement {
    pub(super) positions: usize,
    /// Positions at which both find the same token most likely.
    pub(super) same: usize,
    /// The largest difference of logarithms over what is likely.
    pub(super) worst: f64,
    /// The mean Kullback-Leibler divergence from the expected distributions, in nats.
    pub(super) divergence: f64,
}

impl Agreement {
    /// Of what an engine said with the logits (tokens, vocabulary) that were expected.
    pub(super) fn of(found: &Distributions, expected: &Tensor) -> Result<Self> {
        let expected = log_softmax(expected, D::Minus1)?.to_vec2::<f32>()?;
        ensure!(found.len() == expected.len(), "{} positions, and {} expected", found.len(), expected.len());
        let mut agreement = Self { positions: found.len(), same: 0, worst: 0.0, divergence: 0.0 };
        for (found, expected) in found.iter().zip(&expected) {
            let likeliest = (0u32..).zip(expected).max_by(|one, other| one.1.total_cmp(other.1)).map(|(id, _)| id);
            agreement.same += usize::from(found.first().map(|(id, _)| *id) == likeliest);
            for (id, probability) in found {
                let expected = f64::from(expected[*id as usize]);
                let difference = probability.max(f64::MIN_POSITIVE).ln() - expected;
                if *probability > LIKELY {
                    agreement.worst = agreement.worst.max(difference.abs());
                }
                agreement.divergence -= expected.exp() * difference / agreement.positions as f64;
            }
        }
        Ok(agreement)
    }

    pub(super) fn same_share(self) -> f64 {
        self.same as f64 / self.positions as f64
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { positions, same, worst, divergence } = self;
        write!(to, "likeliest token {same}/{positions}, worst difference {worst:.3}, divergence {divergence:.1e}")
    }
}

/// What logits (tokens, vocabulary) say.
pub(super) fn distributions(logits: &Tensor, most: usize) -> Result<Distributions> {
    let rows = softmax(logits, D::Minus1)?.to_vec2::<f32>()?;
    let likeliest = |row: Vec<f32>| {
        let mut row: Vec<_> = (0u32..).zip(row.into_iter().map(f64::from)).collect();
        row.sort_by(|one, other| other.1.total_cmp(&one.1));
        row.truncate(most);
        row
    };
    Ok(rows.into_iter().map(likeliest).collect())
}
