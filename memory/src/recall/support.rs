//! What speaks for a document by itself. A ranking only tells which is better: something is always first, also when nothing answers.

use std::collections::HashMap;

use super::bm25::Weights;
use super::nearby::{Order, Seen, together};
use crate::ids::DocumentId;

/// What is known of a document apart from how it compares with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Support {
    /// Of the query's words, by what they are worth, the share that the document holds: 0 to 1.
    pub own_coverage: f64,
    /// The share that it holds together with those around it.
    pub coverage: f64,
    /// Cosine similarity of its vector and the query's; `None` where one of them is not there.
    pub similarity: Option<f64>,
}

/// Less of the query than this around a document, and less similarity than that, is chance.
const MIN_COVERAGE: f64 = 0.1;
const MIN_SIMILARITY: f64 = 0.2;
/// Where no document has so much of either, nothing answers the query. On the recall set (`tests/recall-set`) with MiniLM this
/// silences 10 of 14 questions that nothing answers and 1 of 78 that were answered among the first five; 0.35 of similarity would
/// silence 12 and 5.
const ENOUGH_COVERAGE: f64 = 0.3;
const ENOUGH_SIMILARITY: f64 = 0.3;

/// The documents that something speaks for; none where nothing speaks enough for any that fits.
pub(super) fn of_all(
    seen: &HashMap<DocumentId, Seen>,
    order: &Order,
    weights: &Weights,
) -> HashMap<DocumentId, Support> {
    let supported: HashMap<_, _> = seen
        .values()
        .filter(|document| document.fits)
        .map(|document| (document.id, Support::of(document, seen, order, weights)))
        .filter(|(_, support)| support.is_at_least(MIN_COVERAGE, MIN_SIMILARITY))
        .collect();
    let is_enough = supported.values().any(|support| support.is_at_least(ENOUGH_COVERAGE, ENOUGH_SIMILARITY));
    if is_enough { supported } else { HashMap::new() }
}

impl Support {
    fn of(document: &Seen, seen: &HashMap<DocumentId, Seen>, order: &Order, weights: &Weights) -> Self {
        Self {
            own_coverage: weights.coverage(&document.counts),
            coverage: weights.coverage(&together(document, seen, order)),
            similarity: document.similarity,
        }
    }

    fn is_at_least(&self, coverage: f64, similarity: f64) -> bool {
        self.coverage >= coverage || self.similarity.is_some_and(|own| own >= similarity)
    }
}
