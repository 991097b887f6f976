//! The lexemes of a document, with their positions: what Postgres keeps in a `tsvector`.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::stems::{self, Stems};
use super::tokens::{Script, Token, tokens};

/// Postgres keeps no later position, and takes what comes after for the last.
const MAX_POSITION: usize = 16_383;
/// A path is found by so many of its last parts.
const MAX_TAILS: usize = 4;

/// A text as it is indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lexemes {
    /// In the text form of a `tsvector`.
    pub tsvector: String,
    /// How many words it has, stop words left out: by this its length is told from others'.
    pub length: i32,
}

/// One word of a text in all its forms, at its place.
pub(super) struct Word {
    pub(super) position: usize,
    pub(super) forms: Forms,
}

/// What one word is found by.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Forms {
    /// As it is written.
    pub(super) exact: String,
    /// The exact form itself is one of them where it has no other.
    pub(super) stems: Vec<String>,
    pub(super) without_accents: Option<String>,
    /// The identifiers, paths and flags that begin with this word.
    pub(super) wholes: Vec<String>,
    /// Whether it stands in one of them.
    pub(super) is_piece: bool,
}

impl Lexemes {
    /// Of a long text the beginning counts.
    pub fn of(text: &str) -> Self {
        let text = super::indexed(text);
        let mut index = Index { stems: Stems::of(text), numbers: HashMap::new(), pieces: HashMap::new() };
        // The output of a command says the same words over and over.
        let mut tokens_so_far: HashMap<&str, Vec<Part>> = HashMap::new();
        let mut positions: Vec<Vec<usize>> = Vec::new();
        let (mut position, mut length) = (0, 0);
        for token in tokens(text) {
            let parts = tokens_so_far.entry(token.text).or_insert_with(|| index.parts(&token));
            positions.resize_with(index.numbers.len(), Vec::new);
            for part in parts {
                position += 1;
                length += i32::from(part.counts);
                for number in &part.lexemes {
                    let all = &mut positions[*number];
                    if all.last() != Some(&position.min(MAX_POSITION)) {
                        all.push(position.min(MAX_POSITION));
                    }
                }
            }
        }
        Self { tsvector: written(index.numbers, &positions), length }
    }
}

/// The lexemes of a text so far, each with its number.
struct Index<'a> {
    stems: Stems,
    numbers: HashMap<String, usize>,
    pieces: HashMap<&'a str, Part>,
}

/// The lexemes that one word is found by.
#[derive(Clone, Default)]
struct Part {
    lexemes: Vec<usize>,
    /// Whether it is more than a stop word.
    counts: bool,
}

impl<'a> Index<'a> {
    fn parts(&mut self, token: &Token<'a>) -> Vec<Part> {
        let pieces = token.pieces();
        let mut wholes = wholes(token, &pieces);
        let parts = pieces.iter().map(|piece| {
            let mut part = self.part(piece, token.script);
            part.lexemes.splice(0..0, std::mem::take(&mut wholes).into_iter().map(|whole| self.number(whole)));
            part
        });
        parts.collect()
    }

    fn part(&mut self, piece: &'a str, script: Script) -> Part {
        if let Some(part) = self.pieces.get(piece) {
            return part.clone();
        }
        let Forms { exact, stems, without_accents, .. } = Forms::of(piece, script, &self.stems);
        let mut part = Part::default();
        if !stems::is_english_stop_word(&exact) {
            part.counts = true;
            part.lexemes =
                stems.into_iter().chain(without_accents).chain([exact]).map(|lexeme| self.number(lexeme)).collect();
        }
        self.pieces.insert(piece, part.clone());
        part
    }

    fn number(&mut self, lexeme: String) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(lexeme).or_insert(next)
    }
}

impl Forms {
    fn of(piece: &str, script: Script, stems: &Stems) -> Self {
        let exact = stems::normal(piece);
        let stems = match script {
            Script::Spaced => stems.of_word(&exact).into_iter().map(Into::into).collect(),
            Script::Unspaced => vec![exact.clone()],
        };
        let without_accents = stems::without_accents(&exact);
        Self { exact, stems, without_accents, wholes: Vec::new(), is_piece: false }
    }
}

/// The words of a text, one position each; stop words are among them.
pub(super) fn words(text: &str, stems: &Stems) -> impl Iterator<Item = Word> {
    let mut position = 0;
    tokens(text).flat_map(move |token| {
        let pieces = token.pieces();
        let mut wholes = wholes(&token, &pieces);
        let is_piece = !wholes.is_empty();
        let words: Vec<_> = pieces
            .iter()
            .map(|piece| {
                position += 1;
                let wholes = std::mem::take(&mut wholes);
                Word { position, forms: Forms { wholes, is_piece, ..Forms::of(piece, token.script, stems) } }
            })
            .collect();
        words
    })
}

/// What a token of several pieces is besides them: itself, and, where it is a path, its last parts.
fn wholes(token: &Token<'_>, pieces: &[&str]) -> Vec<String> {
    if token.script == Script::Unspaced || pieces == [token.text] {
        return Vec::new();
    }
    let whole = stems::normal(token.text);
    let mut wholes = vec![whole];
    let parts: Vec<_> = token.text.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let tails = (1..parts.len()).rev().take(MAX_TAILS).map(|from| stems::normal(&parts[from..].join("/")));
    wholes.extend(tails);
    // `fuse.rs:42` is in `fuse.rs`.
    if let Some((path, line)) = token.text.split_once(':')
        && line.starts_with(|c: char| c.is_ascii_digit())
        && path.contains('.')
    {
        wholes.push(stems::normal(path));
        wholes.extend(path.rsplit(['/', '\\']).next().filter(|name| *name != path).map(stems::normal));
    }
    wholes
}

/// The lexemes by their numbers' positions.
fn written(numbers: HashMap<String, usize>, positions: &[Vec<usize>]) -> String {
    // As many as Postgres keeps.
    const MAX_POSITIONS: usize = 255;
    let mut out = String::new();
    let mut lexemes: Vec<_> = numbers.into_iter().collect();
    lexemes.sort_unstable();
    for (lexeme, number) in lexemes {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&quoted(&lexeme));
        for (count, position) in positions[number].iter().take(MAX_POSITIONS).enumerate() {
            let mark = if count == 0 { ':' } else { ',' };
            let _ = write!(out, "{mark}{position}");
        }
    }
    out
}

/// A lexeme as both `tsvector` and `tsquery` write it.
pub(crate) fn quoted(lexeme: &str) -> String {
    format!("'{}'", lexeme.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str, length: i32) {
        let lexemes = Lexemes::of(text);
        assert_eq!((lexemes.tsvector.as_str(), lexemes.length), (expected, length), "{text}");
    }

    #[test]
    fn keeps_the_word_beside_its_stem_and_the_whole_beside_its_pieces() {
        check("running runs", "'run':1,2 'running':1 'runs':2", 2);
        check("call parseConfig", "'call':1 'config':3 'pars':2 'parse':2 'parseconfig':2", 3);
    }

    #[test]
    fn notes_every_place_of_a_word_and_of_an_identifier() {
        check("a.rs b a.rs b", "'a.rs':1,4 'b':3,6 'rs':2,5", 4);
    }

    #[test]
    fn drops_stop_words_but_keeps_their_places() {
        check("the lock of a table", "'lock':2 'tabl':5 'table':5", 2);
    }

    #[test]
    fn finds_a_path_by_its_last_parts() {
        let tsvector = Lexemes::of("src/recall/fuse.rs:42").tsvector;
        for whole in ["'src/recall/fuse.rs:42':1", "'fuse.rs':1", "'src/recall/fuse.rs':1", "'recall':2"] {
            assert!(tsvector.contains(whole), "{whole} in {tsvector}");
        }
    }

    #[test]
    fn writes_what_postgres_would_take_for_its_own_marks() {
        check(r"C:\dir", r"'c':1 'c:\\dir':1 'dir':1,2", 2);
        assert_eq!(quoted("it's"), "'it''s'");
    }

    #[test]
    fn finds_words_without_their_accents() {
        check("über", "'uber':1 'über':1", 1);
    }
}
