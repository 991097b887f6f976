//! A document and what stood around it in its session, scored together: an answer seldom repeats the words of its question, and a
//! command's output not those of the prompt that asked for it.
//!
//! Nothing of this is stored: the counts of a document and of its neighbours add up when a query is scored. On the development half
//! of LoCoMo this found more than an index of each document with its predecessor's text (`docs/recall.md`).

use std::collections::HashMap;

use super::bm25::{Counts, Weights};
use crate::ids::DocumentId;

/// Of what the words count that stand so many documents before (negative) or after.
const WORDS: [(isize, f64); 6] = [(-3, 0.216), (-2, 0.36), (-1, 0.6), (1, 0.4), (2, 0.16), (3, 0.064)];
/// Of what the meaning counts there.
const MEANING: [(isize, f64); 4] = [(-2, 0.25), (-1, 0.5), (1, 0.4), (2, 0.2)];
/// How far a document's neighbours reach.
pub(super) const REACH: i64 = 3;

/// A document that is looked at, with what is known of it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) id: DocumentId,
    pub(super) counts: Counts,
    /// Cosine similarity to the query; `None` without a vector.
    pub(super) similarity: Option<f64>,
    /// Whether the search may give it; others only stand around.
    pub(super) fits: bool,
}

/// Who stands next to whom.
#[derive(Debug, Default)]
pub(super) struct Order {
    next: HashMap<DocumentId, DocumentId>,
    previous: HashMap<DocumentId, DocumentId>,
}

impl Order {
    /// Notes documents that stand one after the other.
    pub(super) fn add(&mut self, run: &[DocumentId]) {
        for pair in run.windows(2) {
            self.next.insert(pair[0], pair[1]);
            self.previous.insert(pair[1], pair[0]);
        }
    }

    /// Everyone who stands next to someone.
    pub(super) fn documents(&self) -> impl Iterator<Item = DocumentId> {
        self.next.iter().flat_map(|(one, two)| [*one, *two])
    }

    /// The document so many places away.
    fn at(&self, mut id: DocumentId, offset: isize) -> Option<DocumentId> {
        let steps = if offset < 0 { &self.previous } else { &self.next };
        for _ in 0..offset.unsigned_abs() {
            id = *steps.get(&id)?;
        }
        Some(id)
    }
}

/// Documents that fit, by the words in and around them, best first; where no word is, no document. All are held against the average of
/// one that has neighbours on both sides, so a note, which stands alone, counts as short: somebody thought it worth writing.
pub(super) fn by_words(seen: &HashMap<DocumentId, Seen>, order: &Order, weights: &Weights) -> Vec<DocumentId> {
    let documents = 1.0 + WORDS.iter().map(|(_, share)| share).sum::<f64>();
    ranked(seen, |document| {
        let mut counts = document.counts.clone();
        for (offset, share) in WORDS {
            if let Some(other) = order.at(document.id, offset).and_then(|id| seen.get(&id)) {
                counts.add(&other.counts, share);
            }
        }
        (!counts.is_nothing()).then(|| weights.score(&counts, documents))
    })
}

/// Documents that fit, by their own similarity.
pub(super) fn by_meaning(seen: &HashMap<DocumentId, Seen>) -> Vec<DocumentId> {
    ranked(seen, |document| document.similarity)
}

/// Documents that fit, by the similarity of them and of those around them.
pub(super) fn by_meaning_nearby(seen: &HashMap<DocumentId, Seen>, order: &Order) -> Vec<DocumentId> {
    ranked(seen, |document| {
        let around = MEANING.iter().filter_map(|(offset, share)| {
            let other = seen.get(&order.at(document.id, *offset)?)?;
            Some(share * other.similarity?)
        });
        Some(document.similarity? + around.sum::<f64>())
    })
}

/// The counts of a document together with those of everyone around it.
pub(super) fn together(document: &Seen, seen: &HashMap<DocumentId, Seen>, order: &Order) -> Counts {
    let mut counts = document.counts.clone();
    WORDS
        .iter()
        .filter_map(|(offset, _)| seen.get(&order.at(document.id, *offset)?))
        .for_each(|other| counts.add(&other.counts, 1.0));
    counts
}

fn ranked(seen: &HashMap<DocumentId, Seen>, score: impl Fn(&Seen) -> Option<f64>) -> Vec<DocumentId> {
    let mut scored: Vec<_> = seen
        .values()
        .filter(|document| document.fits)
        .filter_map(|document| Some((score(document)?, document.id)))
        .collect();
    scored.sort_by(|one, two| two.0.total_cmp(&one.0).then(two.1.row.cmp(&one.1.row)).then(one.1.cmp(&two.1)));
    scored.into_iter().map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::Lexemes;
    use crate::ids::DocumentKind;

    fn id(row: i64) -> DocumentId {
        DocumentId { kind: DocumentKind::Call, row }
    }

    /// Documents one after the other, with how often each holds the query's one term.
    fn session(occurrences: &[f64]) -> (HashMap<DocumentId, Seen>, Order) {
        let ids: Vec<_> = (1..=occurrences.len() as i64).map(id).collect();
        let mut order = Order::default();
        order.add(&ids);
        let seen = ids.iter().zip(occurrences).map(|(id, occurrences)| {
            let counts = Counts { occurrences: vec![*occurrences], length: 10.0 };
            (*id, Seen { id: *id, counts, similarity: Some(occurrences / 10.0), fits: true })
        });
        (seen.collect(), order)
    }

    fn weights() -> Weights {
        Weights { terms: vec![2.0], average_length: 10.0 }
    }

    #[test]
    fn finds_what_stands_next_to_the_words() {
        let (seen, order) = session(&[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let found: Vec<_> = by_words(&seen, &order, &weights()).into_iter().map(|id| id.row).collect();
        assert_eq!(found, [3, 4, 2, 5, 1, 6], "itself, then those around it, the nearer first");
    }

    /// The example in docs/recall.md.
    #[test]
    fn finds_the_command_that_fixed_what_was_asked_about() {
        let words = ["fix", "flaki", "migrat"];
        let counts = |text: &str| {
            let lexemes = Lexemes::of(text);
            let holds = |word: &&str| f64::from(u8::from(lexemes.tsvector.contains(&format!("'{word}':"))));
            Counts { occurrences: words.iter().map(holds).collect(), length: f64::from(lexemes.length) }
        };
        let texts =
            ["the migration test is flaky", "Bash\ncargo test migration\nfailed", "Bash\nsed -i s/5432/0/ tests/db.rs"];
        let mut order = Order::default();
        order.add(&[id(1), id(2), id(3)]);
        let seen: HashMap<_, _> = texts
            .iter()
            .zip(1..)
            .map(|(text, row)| (id(row), Seen { id: id(row), counts: counts(text), similarity: None, fits: true }))
            .collect();
        assert!(seen[&id(3)].counts.is_nothing());
        let weights = Weights { terms: vec![5.0, 3.0, 2.0], average_length: 6.0 };
        assert_eq!(by_words(&seen, &order, &weights), [id(1), id(2), id(3)]);
    }

    #[test]
    fn prefers_words_that_stand_close_together() {
        let (seen, order) = session(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
        let found = by_words(&seen, &order, &weights());
        assert_eq!(found[0], id(9), "{found:?}");
    }

    #[test]
    fn gives_nothing_that_does_not_fit() {
        let (mut seen, order) = session(&[1.0, 0.0]);
        for document in seen.values_mut() {
            document.fits = document.id == id(2);
        }
        assert_eq!(by_words(&seen, &order, &weights()), [id(2)]);
        assert_eq!(by_meaning(&seen), [id(2)]);
        assert_eq!(by_meaning_nearby(&seen, &order), [id(2)]);
    }
}
