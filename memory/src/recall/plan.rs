//! Which of a query's words are looked up in the index: the rare ones decide, and the common ones, which half of all documents hold,
//! only count where a document has come in by a rare one.

use std::collections::BTreeMap;

use crate::analyze::{Term, quoted};

/// So many documents may come in by their words: finding each costs a look into the table.
pub(super) const BUDGET: f64 = 600.0;

/// A scan of the index of words goes through the documents of the rarest word, if all are wanted, and of every word, if any is. In 600,000
/// synthetic rows of forty words, three words that a third of all hold took 38 ms, where the rarest was held by 34,000 10 ms. Beyond
/// this the first that are found are also as good as any.
const MANY_ENTRIES: f64 = 40_000.0;

/// A term and how many documents hold it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counted {
    pub(super) term: Term,
    pub(super) documents: f64,
    /// Whether no document has ever held it, as far as was counted.
    pub(super) is_unknown: bool,
}

/// What lets documents in, by the places of terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any of these.
    Any(Vec<usize>),
    /// All of these together.
    All(Vec<usize>),
}

impl Wanted {
    pub(super) fn places(&self) -> &[usize] {
        let (Self::Any(places) | Self::All(places)) = self;
        places
    }

    /// Whether the index tells them in little time, however many documents there are.
    pub(super) fn is_quick(&self, terms: &[Counted]) -> bool {
        let documents = self.places().iter().map(|place| terms[*place].documents);
        let entries = match self {
            Self::Any(_) => documents.sum(),
            Self::All(_) => documents.fold(f64::INFINITY, f64::min),
        };
        entries <= MANY_ENTRIES
    }

    /// In the text form of a `tsquery`.
    pub(super) fn tsquery(&self, terms: &[Counted]) -> String {
        let lexemes: Vec<_> = self.places().iter().map(|place| quoted(&terms[*place].term.lexeme)).collect();
        lexemes.join(if matches!(self, Self::Any(_)) { " | " } else { " & " })
    }
}

/// What comes in; `share` of all documents can. `None`: there is nothing to look for.
pub(super) fn lookup(terms: &[Counted], share: f64) -> Option<Wanted> {
    let mut rarest: Vec<_> = (0..terms.len()).collect();
    rarest.sort_by(|one, two| terms[*one].documents.total_cmp(&terms[*two].documents));
    let mut expected = 0.0;
    let fitting: Vec<_> = rarest
        .iter()
        .copied()
        .take_while(|place| {
            expected += terms[*place].documents * share;
            expected <= BUDGET
        })
        .collect();
    if !fitting.is_empty() {
        return Some(Wanted::Any(fitting));
    }
    all_of(terms, &rarest)
}

/// Every word is common: those documents come in that hold several, the rarest first.
fn all_of(terms: &[Counted], rarest: &[usize]) -> Option<Wanted> {
    /// More would leave out what says it in other words.
    const MOST: usize = 3;
    // Of a word's forms the one that most documents hold: its stem.
    let mut words: BTreeMap<usize, usize> = BTreeMap::new();
    for place in rarest {
        words.insert(terms[*place].term.word, *place);
    }
    let mut places: Vec<_> = words.into_values().collect();
    places.sort_by(|one, two| terms[*one].documents.total_cmp(&terms[*two].documents));
    places.truncate(MOST);
    (!places.is_empty()).then_some(Wanted::All(places))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(word: usize, lexeme: &str, documents: f64) -> Counted {
        Counted { term: Term { word, lexeme: lexeme.to_owned(), weight: 1.0 }, documents, is_unknown: false }
    }

    fn tsquery(terms: &[Counted], share: f64) -> Option<String> {
        lookup(terms, share).map(|wanted| wanted.tsquery(terms))
    }

    #[test]
    fn lets_everything_in_by_any_word_where_documents_are_few() {
        let terms = [counted(0, "lock", 40.0), counted(1, "table", 10.0)];
        assert_eq!(tsquery(&terms, 1.0).as_deref(), Some("'table' | 'lock'"));
        assert_eq!(lookup(&[], 1.0), None);
    }

    #[test]
    fn leaves_the_common_words_to_the_score() {
        let terms = [counted(0, "error", 400_000.0), counted(1, "e0308", 90.0)];
        assert_eq!(tsquery(&terms, 1.0).as_deref(), Some("'e0308'"));
        // In a small project even a common word is rare.
        assert_eq!(tsquery(&terms, 0.001).as_deref(), Some("'e0308' | 'error'"));
    }

    #[test]
    fn wants_several_words_where_all_are_common() {
        let terms = [counted(0, "run", 500_000.0), counted(0, "running", 200_000.0), counted(1, "test", 300_000.0)];
        assert_eq!(tsquery(&terms, 1.0).as_deref(), Some("'test' & 'run'"));
        assert!(!lookup(&terms, 1.0).unwrap().is_quick(&terms));
        let rarer = [&terms[..], &[counted(2, "ledger", 900.0)]].concat();
        assert!(lookup(&rarer, 1.0).unwrap().is_quick(&rarer));
    }
}
