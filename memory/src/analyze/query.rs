//! A query as it is looked for: the lexemes that may match, each with its weight, and what must or must not be there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::lexemes::{Forms, quoted, words};
use super::stems::Stems;
use super::tokens::{Script, tokens};

/// Of what a word as it is written counts beside its stem. On the development half of LoCoMo 0.1 to 0.4 did as well, and none at all
/// a little worse.
const EXACT: f64 = 0.2;
/// A piece of an identifier counts less than a word, for the identifier counts too.
const PIECE: f64 = 0.5;
/// Shorter than this after its dash is a flag, not a word to leave out.
const MIN_EXCLUDED_CHARS: usize = 3;
/// More words than this are a text, of which the first say what is wanted.
const MAX_WORDS: usize = 40;

/// What a query asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Any of them may match; no lexeme is there twice.
    pub terms: Vec<Term>,
    /// What must match besides, in the text form of a `tsquery`: phrases in quotes, and not the words after a `-`.
    pub condition: Option<String>,
    /// Whether it is asked in another language than English, in which code, its tools and their errors speak.
    pub is_foreign: bool,
}

/// A lexeme and how much it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Which of the query's words it is a form of, by its place among them.
    pub word: usize,
    pub lexeme: String,
    pub weight: f64,
}

impl Query {
    pub fn parse(text: &str) -> Self {
        let stems = Stems::of(text);
        let mut terms = BTreeMap::new();
        let mut conditions = Vec::new();
        let mut count = 0;
        let mut add = |text: &str| {
            for word in words(text, &stems).take(MAX_WORDS) {
                weigh(&word.forms, count, &stems, &mut terms);
                count += 1;
            }
        };
        for part in parts(text) {
            match part {
                Part::Words(text) => add(text),
                Part::Phrase(text) => {
                    add(text);
                    conditions.extend(phrase(text, &stems));
                }
                Part::Excluded(text) => conditions.extend(phrase(text, &stems).map(|phrase| format!("!({phrase})"))),
            }
        }
        let mut terms: Vec<Term> = terms.into_values().filter(|term: &Term| term.word < MAX_WORDS).collect();
        terms.sort_by(|one, two| (one.word, &one.lexeme).cmp(&(two.word, &two.lexeme)));
        let is_foreign = stems.is_of_another_language() || tokens(text).any(|token| token.script == Script::Unspaced);
        Self { terms, condition: (!conditions.is_empty()).then(|| conditions.join(" & ")), is_foreign }
    }

    /// Whether there is anything to be looked for by words.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

fn weigh(forms: &Forms, word: usize, stems: &Stems, terms: &mut BTreeMap<String, Term>) {
    let mut add = |lexeme: &str, weight: f64| {
        let new = || Term { word, lexeme: lexeme.to_owned(), weight };
        let term = terms.entry(lexeme.to_owned()).or_insert_with(new);
        term.weight = term.weight.max(weight);
    };
    let scale = if forms.is_piece { PIECE } else { 1.0 };
    // The whole is looked for, and nothing shorter than itself: its tails are other files' too.
    if let Some(whole) = forms.wholes.first() {
        add(whole, 1.0);
    }
    if stems.is_stop_word(&forms.exact) {
        return;
    }
    let share = scale / forms.stems.len() as f64;
    forms.stems.iter().for_each(|stem| add(stem, share));
    add(&forms.exact, EXACT * scale);
    if let Some(plain) = &forms.without_accents {
        add(plain, EXACT * scale);
    }
}

/// The words one after the other, as a `tsquery`. Stop words are not in the index; their places are.
pub(super) fn phrase(text: &str, stems: &Stems) -> Option<String> {
    let mut phrase = String::new();
    let mut last = 0;
    for word in words(text, stems) {
        if super::stems::is_english_stop_word(&word.forms.exact) {
            continue;
        }
        if !phrase.is_empty() {
            let _ = write!(phrase, " <{}> ", word.position - last);
        }
        phrase.push_str(&quoted(&word.forms.exact));
        last = word.position;
    }
    (!phrase.is_empty()).then_some(phrase)
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Words(&'a str),
    Phrase(&'a str),
    Excluded(&'a str),
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    // What stands between quotes is every second piece; an open quote at the end is none.
    let pieces: Vec<_> = text.split(['"', '“', '”', '„']).collect();
    for (number, piece) in pieces.iter().enumerate() {
        let is_quoted = !number.is_multiple_of(2) && number + 1 < pieces.len();
        if is_quoted {
            parts.push(Part::Phrase(piece));
            continue;
        }
        parts.extend(piece.split_whitespace().map(|word| match word.strip_prefix('-') {
            Some(rest) if rest.starts_with(char::is_alphanumeric) && rest.chars().count() >= MIN_EXCLUDED_CHARS => {
                Part::Excluded(rest)
            }
            _ => Part::Words(word),
        }));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<(String, f64)> {
        Query::parse(text).terms.into_iter().map(|term| (term.lexeme, term.weight)).collect()
    }

    #[test]
    fn looks_for_stems_and_prefers_the_word_itself() {
        assert_eq!(terms("the migrations"), [("migrat".into(), 1.0), ("migrations".into(), 0.2)]);
    }

    #[test]
    fn looks_for_an_identifier_and_its_pieces() {
        let terms = terms("parseConfig");
        assert!(terms.contains(&("parseconfig".into(), 1.0)) && terms.contains(&("pars".into(), 0.5)), "{terms:?}");
    }

    #[test]
    fn takes_what_is_in_quotes_for_a_phrase_and_a_dash_for_without() {
        let condition = |text| Query::parse(text).condition;
        assert_eq!(condition("\"fix the test\" now").as_deref(), Some("'fix' <2> 'test'"));
        assert_eq!(condition("lock -timeout").as_deref(), Some("!('timeout')"));
        assert_eq!(condition("tail -n 5 \"open"), None);
    }

    #[test]
    fn has_nothing_to_look_for_in_stop_words_alone() {
        assert!(Query::parse("what is this?").is_empty());
        assert!(!Query::parse("what is E0308?").is_empty());
    }
}
