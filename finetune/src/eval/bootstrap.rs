//! How sure a rate is: a paired bootstrap over rows. The turns of a row share their history and are not independent, so that whole rows
//! are drawn, for both sides the same ones.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// A mean and its 95 % percentile interval, which always holds the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// What one side scored in a row: the sum over the turns to which the metric applies, and their number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) sum: f64,
    pub(super) turns: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Pair {
    pub(super) base: Tally,
    pub(super) tuned: Tally,
}

/// None of a side that has no turn; none of the difference if either has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Compared {
    pub(super) base: Option<Estimate>,
    pub(super) tuned: Option<Estimate>,
    /// Tuned less base.
    pub(super) difference: Option<Estimate>,
}

impl Tally {
    pub(super) fn add(&mut self, score: f64) {
        self.sum += score;
        self.turns += 1;
    }

    fn mean(self) -> Option<f64> {
        (self.turns > 0).then(|| self.sum / self.turns as f64)
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sum += other.sum;
        self.turns += other.turns;
    }
}

/// The same rows, number of resamples and seed give the same numbers.
pub(super) fn compare(rows: &[Pair], resamples: usize, seed: u64) -> Compared {
    let mut draws = StdRng::seed_from_u64(seed);
    let (mut base, mut tuned, mut difference) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if rows.is_empty() { 0 } else { resamples } {
        let means = means((0..rows.len()).map(|_| rows[draws.random_range(0..rows.len())]));
        base.extend(means.0);
        tuned.extend(means.1);
        difference.extend(less(means));
    }
    let all = means(rows.iter().copied());
    Compared {
        base: all.0.map(|mean| estimate(mean, base)),
        tuned: all.1.map(|mean| estimate(mean, tuned)),
        difference: less(all).map(|mean| estimate(mean, difference)),
    }
}

fn means(rows: impl Iterator<Item = Pair>) -> (Option<f64>, Option<f64>) {
    let mut all = Pair::default();
    for row in rows {
        all.base += row.base;
        all.tuned += row.tuned;
    }
    (all.base.mean(), all.tuned.mean())
}

fn less((base, tuned): (Option<f64>, Option<f64>)) -> Option<f64> {
    Some(tuned? - base?)
}

fn estimate(mean: f64, mut drawn: Vec<f64>) -> Estimate {
    /// What is left out at each end.
    const TAIL: f64 = 0.025;
    drawn.sort_by(f64::total_cmp);
    let cut = (drawn.len() as f64 * TAIL) as usize;
    let low = drawn.get(cut).copied().unwrap_or(mean);
    let high = drawn.iter().rev().nth(cut).copied().unwrap_or(mean);
    Estimate { mean, low: low.min(mean), high: high.max(mean) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(scores: &[bool]) -> Tally {
        let mut tally = Tally::default();
        for score in scores {
            tally.add(f64::from(u8::from(*score)));
        }
        tally
    }

    fn pair(base: &[bool], tuned: &[bool]) -> Pair {
        Pair { base: tally(base), tuned: tally(tuned) }
    }

    #[test]
    fn gives_nothing_of_nothing() {
        let nothing = Compared { base: None, tuned: None, difference: None };
        assert_eq!(compare(&[], 100, 1), nothing);
        assert_eq!(compare(&[Pair::default(); 5], 100, 1), nothing);
        let one_sided = compare(&[pair(&[], &[true])], 100, 1);
        assert_eq!((one_sided.base, one_sided.difference), (None, None));
        assert_eq!(one_sided.tuned, Some(Estimate { mean: 1.0, low: 1.0, high: 1.0 }));
    }

    #[test]
    fn comes_near_the_interval_that_theory_gives() {
        // 100 rows, half of them right: 1.96 * sqrt(0.25 / 100) = 0.098.
        let rows: Vec<_> = (0..100).map(|row| pair(&[row % 2 == 0], &[row % 4 < 3])).collect();
        let compared = compare(&rows, 2_000, 7);
        let base = compared.base.unwrap();
        assert!((base.mean - 0.5).abs() < 1e-9);
        assert!((base.low - 0.402).abs() < 0.03 && (base.high - 0.598).abs() < 0.03, "{base:?}");
        assert_eq!(compared, compare(&rows, 2_000, 7));
        assert_ne!(compared, compare(&rows, 2_000, 8));
    }

    #[test]
    fn draws_rows_and_not_turns() {
        // Ten equal turns in each of ten rows are no more than ten observations.
        let rows: Vec<_> = (0..10).map(|row| pair(&[row % 2 == 0; 10], &[])).collect();
        let base = compare(&rows, 2_000, 7).base.unwrap();
        assert!(base.high - base.low > 0.4, "{base:?}");
    }

    #[test]
    fn draws_the_same_rows_for_both_sides() {
        // The tuned side is better by one turn of four in every row, however different the rows are.
        let rows: Vec<_> = (0..20)
            .map(|row| {
                if row % 2 == 0 {
                    pair(&[false; 4], &[true, false, false, false])
                } else {
                    pair(&[true, true, true, false], &[true; 4])
                }
            })
            .collect();
        let difference = compare(&rows, 500, 7).difference.unwrap();
        assert!((difference.low - 0.25).abs() < 1e-9 && (difference.high - 0.25).abs() < 1e-9, "{difference:?}");
    }

    proptest! {
        #[test]
        fn every_interval_holds_its_mean(
            rows in proptest::collection::vec((proptest::collection::vec(any::<bool>(), 0..5), proptest::collection::vec(any::<bool>(), 0..5)), 1..30),
            seed in any::<u64>(),
        ) {
            let rows: Vec<_> = rows.iter().map(|(base, tuned)| pair(base, tuned)).collect();
            let compared = compare(&rows, 100, seed);
            for estimate in [compared.base, compared.tuned, compared.difference].into_iter().flatten() {
                prop_assert!(estimate.low <= estimate.mean && estimate.mean <= estimate.high);
                prop_assert!(estimate.low >= -1.0 && estimate.high <= 1.0);
            }
        }

        #[test]
        fn equal_sides_do_not_differ(
            rows in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 1..5), 1..30), seed in any::<u64>(),
        ) {
            let rows: Vec<_> = rows.iter().map(|scores| pair(scores, scores)).collect();
            let difference = compare(&rows, 100, seed).difference;
            prop_assert_eq!(difference, Some(Estimate { mean: 0.0, low: 0.0, high: 0.0 }));
        }
    }
}
