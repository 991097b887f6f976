//! How well a document answers a query's words: Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009),
//! over a document alone or over it and its neighbours.

/// How soon further occurrences of a word count no more.
const K1: f64 = 1.2;
/// How much a long document's words count less.
const B: f64 = 0.75;

/// What a query's words are worth among all documents.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    /// Of each term: its rarity times what it counts in the query.
    pub(super) terms: Vec<f64>,
    pub(super) average_length: f64,
}

/// What BM25 needs of one document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counts {
    /// How often each term of the query occurs.
    pub(super) occurrences: Vec<f64>,
    pub(super) length: f64,
}

impl Counts {
    /// Adds a neighbour, as so much of one document.
    pub(super) fn add(&mut self, other: &Self, share: f64) {
        self.length += share * other.length;
        for (here, there) in self.occurrences.iter_mut().zip(&other.occurrences) {
            *here += share * there;
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.occurrences.iter().all(|occurrences| *occurrences == 0.0)
    }
}

impl Weights {
    /// The share of the weights whose terms occur.
    pub(super) fn coverage(&self, counts: &Counts) -> f64 {
        let all: f64 = self.terms.iter().sum();
        let there = self.terms.iter().zip(&counts.occurrences).filter(|(_, occurrences)| **occurrences > 0.0);
        if all > 0.0 { there.map(|(weight, _)| weight).fold(0.0, |sum, weight| sum + weight) / all } else { 0.0 }
    }

    /// The score of what is `documents` long on the average.
    pub(super) fn score(&self, counts: &Counts, documents: f64) -> f64 {
        let relative_length =
            if self.average_length > 0.0 { counts.length / (self.average_length * documents) } else { 1.0 };
        let norm = K1 * (1.0 - B + B * relative_length);
        let of_term = |(weight, occurrences): (&f64, &f64)| weight * occurrences * (K1 + 1.0) / (occurrences + norm);
        self.terms.iter().zip(&counts.occurrences).map(of_term).sum()
    }
}

/// A small journal says little about how rare a word is: it is counted as if so many documents more held nothing of the query. Without
/// them a word that half of the first twenty documents hold would count for nothing beside one that nobody has used yet.
const BACKGROUND_DOCUMENTS: f64 = 1_000.0;

/// How much a term tells that so many of all documents hold.
pub(super) fn rarity(holding: f64, documents: f64) -> f64 {
    let holding = holding.min(documents);
    let documents = documents + BACKGROUND_DOCUMENTS;
    ((documents - holding + 0.5) / (holding + 0.5)).ln_1p()
}

/// How often a lexeme occurs, told from its `ts_rank` with all weights 1, which is the sum of 1/n² over its occurrences divided by
/// the limit of that sum. Postgres has no other function that tells it without unpacking all lexemes of a document.
pub(super) fn occurrences(ts_rank: f32) -> f64 {
    /// More count for no more.
    const MOST: u32 = 32;
    const LIMIT: f64 = std::f64::consts::PI * std::f64::consts::PI / 6.0;
    let sum = f64::from(ts_rank) * LIMIT;
    let mut left = sum;
    for number in 1..=MOST {
        let step = 1.0 / f64::from(number * number);
        if left < step / 2.0 {
            return f64::from(number - 1);
        }
        left -= step;
    }
    f64::from(MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tells_occurrences_from_what_postgres_gives() {
        // `select ts_rank('{1,1,1,1}', 'a:1,2,3', 'a')`, PostgreSQL 18
        for (rank, expected) in [(0.0, 0.0), (0.607_927_1, 1.0), (0.759_908_9, 2.0), (0.827_456_4, 3.0)] {
            assert!((occurrences(rank) - expected).abs() < 1e-9, "{rank}");
        }
    }

    #[test]
    fn scores_a_rare_word_above_a_common_one_and_a_short_document_above_a_long_one() {
        let terms = vec![rarity(1.0, 1000.0), rarity(900.0, 1000.0)];
        let weights = Weights { terms, average_length: 10.0 };
        let score =
            |occurrences: [f64; 2], length| weights.score(&Counts { occurrences: occurrences.to_vec(), length }, 1.0);
        assert!(score([1.0, 0.0], 10.0) > score([0.0, 3.0], 10.0));
        assert!(score([1.0, 0.0], 5.0) > score([1.0, 0.0], 50.0));
        assert!(score([0.0, 0.0], 5.0).abs() < 1e-9);
    }

    #[test]
    fn takes_what_a_small_journal_holds_often_for_a_word_that_tells_something() {
        assert!(rarity(10.0, 20.0) > 0.6 * rarity(1.0, 20.0));
        assert!(rarity(500_000.0, 1_000_000.0) < 0.1 * rarity(1.0, 1_000_000.0));
    }

    proptest! {
        #[test]
        fn more_occurrences_never_score_less(few in 0u32..50, more in 0u32..50, length in 0.0..1000.0f64) {
            let weights = Weights { terms: vec![1.5], average_length: 80.0 };
            let score = |occurrences: u32| {
                weights.score(&Counts { occurrences: vec![f64::from(occurrences)], length }, 1.0)
            };
            prop_assert!(score(few) <= score(few + more) + 1e-12);
        }

        #[test]
        fn decodes_any_number_of_occurrences(number in 1u32..32) {
            let sum: f64 = (1..=number).map(|n| 1.0 / f64::from(n * n)).sum();
            let rank = (sum / 1.644_934_066_85) as f32;
            prop_assert!((occurrences(rank) - f64::from(number)).abs() < 1e-9);
        }
    }
}
