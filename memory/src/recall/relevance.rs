//! Whether a document is worth telling an agent that has not asked: what of the prompt it holds itself, in words and in meaning. A rank
//! does not say that: the best of all hits may still have nothing to do with the prompt.

use std::collections::{BTreeMap, HashMap};

use sqlx::PgConnection;

use super::bm25::rarity;
use super::lookup::{self, Meaning};
use super::{Filter, RecallError};
use crate::analyze::Query;
use crate::ids::DocumentId;

/// What a document holds of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// The part of the prompt's words that the document holds, each counted by how rare it is; 0 to 1.
    pub share: f64,
    /// How many of the prompt's words it holds.
    pub words: usize,
    /// Cosine similarity; `None` without vectors.
    pub similarity: Option<f64>,
}

// Chosen on two sets, with MiniLM int8 and ranks of the whole search. Coding: 9 published transcripts, 18 prompts that go on with their work
// and 24 that have nothing to do with it, asked in each of 3 projects. LoCoMo's development half: 40 questions a conversation,
// each asked in its own and in another conversation. With these values a hit was told to 17 of the 18 prompts and to none of the 72
// others; to 84 % of the questions in their own conversation (40 % got their evidence among the two) and to 1.5 % in another. Words
// alone, as without a model, spoke to all 18 and to 3 of the 72, to 65 % and to 1.5 %.

/// Words alone must hold this much of the prompt, and so many of its words: fewer are often those of any prompt, as in `please review
/// my request`.
const SHARE: f64 = 0.5;
const WORDS: usize = 3;
/// Where the meaning is farther than this, the words are the same by chance. With 0.2, 2 of the 72 others were answered.
const FAR: f64 = 0.3;
/// With a meaning as near as [`SIMILARITY`] this much is enough. With 0.45, 3.5 % of the questions were answered in another conversation.
const SHARE_OF_SIMILAR: f64 = 0.25;
const WORDS_OF_SIMILAR: usize = 2;
const SIMILARITY: f64 = 0.5;
/// As near as this it may use other words altogether.
const SAME_MEANING: f64 = 0.65;

/// Whether the evidence is enough to speak unasked.
pub fn is_relevant(evidence: &Evidence) -> bool {
    let Evidence { share, words, similarity } = *evidence;
    let near = |limit| similarity.is_some_and(|similarity| similarity >= limit);
    let by_words = share >= SHARE && words >= WORDS && (similarity.is_none() || near(FAR));
    let by_both = share >= SHARE_OF_SIMILAR && words >= WORDS_OF_SIMILAR && near(SIMILARITY);
    by_words || by_both || near(SAME_MEANING)
}

/// What each of these documents holds of the query; one that is gone or does not fit the filter is left out.
pub(super) async fn evidence(
    connection: &mut PgConnection,
    query: &Query,
    meaning: Option<&Meaning>,
    filter: &Filter,
    ids: &[DocumentId],
) -> Result<HashMap<DocumentId, Evidence>, RecallError> {
    let statistics = lookup::statistics(connection, query, filter).await?;
    let weigh = |counted: &super::plan::Counted| Term {
        word: counted.term.word,
        weight: counted.term.weight * rarity(counted.documents, statistics.documents),
    };
    let terms: Vec<_> = statistics.terms.iter().map(weigh).collect();
    let seen = lookup::seen(connection, ids, query, meaning, filter).await?;
    let evidence = seen.into_values().filter(|document| document.fits).map(|document| {
        let (share, words) = held(&terms, &document.counts.occurrences);
        (document.id, Evidence { share, words, similarity: document.similarity })
    });
    Ok(evidence.collect())
}

/// One form of one of the query's words.
struct Term {
    word: usize,
    weight: f64,
}

/// The part of all words that is held, by weight, and how many words that are. A word counts by the best of its forms that is there.
fn held(terms: &[Term], occurrences: &[f64]) -> (f64, usize) {
    let mut words: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for (term, occurrences) in terms.iter().zip(occurrences) {
        let (all, held) = words.entry(term.word).or_default();
        *all = all.max(term.weight);
        if *occurrences > 0.0 {
            *held = held.max(term.weight);
        }
    }
    let all: f64 = words.values().map(|(all, _)| all).sum();
    let held: f64 = words.values().map(|(_, held)| held).sum();
    let count = words.values().filter(|(_, held)| *held > 0.0).count();
    (if all > 0.0 { held / all } else { 0.0 }, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_word_once_and_by_how_rare_it_is() {
        let term = |word, weight| Term { word, weight };
        let terms = [term(0, 4.0), term(0, 0.8), term(1, 1.0), term(2, 3.0)];
        assert_eq!(held(&terms, &[1.0, 2.0, 0.0, 0.0]), (0.5, 1));
        assert_eq!(held(&terms, &[0.0, 0.0, 1.0, 5.0]), (0.5, 2));
        assert_eq!(held(&[], &[]), (0.0, 0));
    }

    #[test]
    fn few_words_are_chance_and_a_near_meaning_needs_fewer() {
        let relevant = |share, words, similarity| is_relevant(&Evidence { share, words, similarity });
        assert!(relevant(0.6, 3, None));
        assert!(!relevant(0.9, 2, None));
        assert!(!relevant(0.4, 3, None));
        assert!(relevant(0.6, 3, Some(0.4)));
        assert!(!relevant(0.9, 5, Some(0.2)), "the same words in another sense");
        assert!(relevant(0.3, 2, Some(0.55)));
        assert!(!relevant(0.3, 1, Some(0.55)));
        assert!(relevant(0.0, 0, Some(0.7)));
    }
}
