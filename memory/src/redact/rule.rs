//! One shape of a secret: its pattern, compiled when it is first needed, and what of a match is no secret after all.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::{entropy, value};

/// Compiled patterns may take this much; the largest of ours takes a tenth.
const MAX_PATTERN_BYTES: usize = 8 * 1024 * 1024;
/// How far before the keyword `before` looks.
const BEFORE_BYTES: usize = 400;

/// Why the user's rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("cannot read the redaction rules in `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the redaction rules in `{path}` are not in gitleaks' format: {message}")]
    Format { path: PathBuf, message: String },
    #[error("the redaction rule `{rule}` in `{path}` cannot be used: {message}")]
    Rule { path: PathBuf, rule: String, message: String },
    #[error("the redaction rules in `{path}` come too late: text has been cleaned without them")]
    TooLate { path: PathBuf },
}

impl RulesError {
    /// What the user can do about it.
    pub const fn hint(&self) -> &'static str {
        "mend the file (`config/redact.toml` in the home folder, or the one that AGENT_MEMORY_REDACT_RULES names), or take it away to use the built-in rules alone"
    }
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) pattern: Pattern,
    pub(super) before: Option<Pattern>,
    pub(super) keywords: Vec<String>,
    pub(super) place: Place,
    pub(super) entropy: f64,
    pub(super) group: Group,
    pub(super) allow: Allow,
}

/// Where a match can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It begins with the keyword.
    AtKeyword { start: Start, case: Case, reach_bytes: usize },
    /// Anywhere in a text that holds a keyword, or in any text if there is no keyword.
    Anywhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Not within a word.
    Word,
    Anywhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Any,
}

/// Which part of a match is the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// The first that took part, else the whole.
    FirstUsed,
    Number(usize),
}

/// What is no secret though it matches.
#[derive(Debug, Default)]
pub(super) struct Allow {
    pub(super) lists: Vec<AllowList>,
}

/// One allow list. A secret is let through when one of its conditions holds, or all, as `mode` says.
#[derive(Debug)]
pub(super) struct AllowList {
    pub(super) patterns: Vec<Pattern>,
    pub(super) stopwords: Vec<String>,
    pub(super) target: Target,
    pub(super) mode: AllowMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowMode {
    One,
    All,
}

/// What an allow list's patterns are searched in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Secret,
    Match,
    Line,
}

/// A pattern that is compiled when it is first needed.
#[derive(Debug)]
pub(super) struct Pattern {
    source: String,
    unicode: Unicode,
    compiled: OnceLock<Regex>,
}

/// Whether classes such as `\w` mean ASCII. Ours do, which matches faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unicode {
    Ascii,
    Full,
}

/// A secret in a text, and the match that it was found by.
pub(super) struct Found<'t> {
    pub(super) text: &'t str,
    pub(super) secret: Range<usize>,
    pub(super) whole: Range<usize>,
}

impl Rule {
    /// Looks at one place where a keyword stands.
    pub(super) fn find_at(&self, text: &str, keyword: &Range<usize>) -> Option<Range<usize>> {
        let Place::AtKeyword { start, reach_bytes, .. } = self.place else { return None };
        if start == Start::Word && is_within_word(text.as_bytes(), keyword.start) {
            return None;
        }
        if let Some(before) = &self.before {
            let from = keyword.start.saturating_sub(BEFORE_BYTES);
            if !before.regex().is_match(&text.as_bytes()[from..keyword.start]) {
                return None;
            }
        }
        let rest = &text.as_bytes()[keyword.start..];
        let near = &rest[..rest.len().min(reach_bytes)];
        let mut captures = self.pattern.regex().captures(near)?;
        if captures.get(0).is_some_and(|whole| whole.end() == near.len()) && near.len() < rest.len() {
            captures = self.pattern.regex().captures(rest)?;
        }
        self.secret(text, &captures, keyword.start)
    }

    /// Looks through a whole text.
    pub(super) fn find_all(&self, text: &str) -> Vec<Range<usize>> {
        let captures = self.pattern.regex().captures_iter(text.as_bytes());
        captures.filter_map(|captures| self.secret(text, &captures, 0)).collect()
    }

    fn secret(&self, text: &str, captures: &Captures<'_>, offset: usize) -> Option<Range<usize>> {
        let whole = captures.get(0)?;
        let group = match self.group {
            Group::FirstUsed => captures.iter().skip(1).flatten().find(|group| !group.is_empty()).unwrap_or(whole),
            Group::Number(number) => captures.get(number)?,
        };
        let shift = |range: Range<usize>| whole_characters(text, range.start + offset..range.end + offset);
        let found = Found { text, secret: shift(group.range()), whole: shift(whole.range()) };
        let secret = found.secret();
        if secret.is_empty() || value::is_example(secret) || self.allow.lets_through(&found) {
            return None;
        }
        (self.entropy <= 0.0 || entropy::bits_per_byte(secret.as_bytes()) > self.entropy).then_some(found.secret)
    }
}

impl Found<'_> {
    fn secret(&self) -> &str {
        &self.text[self.secret.clone()]
    }

    fn line(&self) -> &str {
        let start = self.text[..self.whole.start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[self.whole.end..].find('\n').map_or(self.text.len(), |at| self.whole.end + at);
        &self.text[start..end]
    }
}

impl Allow {
    pub(super) fn lets_through(&self, found: &Found<'_>) -> bool {
        self.lists.iter().any(|list| list.lets_through(found))
    }
}

impl AllowList {
    fn lets_through(&self, found: &Found<'_>) -> bool {
        let searched = match self.target {
            Target::Secret => found.secret(),
            Target::Match => &found.text[found.whole.clone()],
            Target::Line => found.line(),
        };
        let by_pattern = || self.patterns.iter().any(|pattern| pattern.regex().is_match(searched.as_bytes()));
        let by_stopword = || {
            let secret = found.secret().to_lowercase();
            self.stopwords.iter().any(|word| secret.contains(word))
        };
        match self.mode {
            AllowMode::One => by_pattern() || by_stopword(),
            AllowMode::All => {
                (self.patterns.is_empty() || by_pattern())
                    && (self.stopwords.is_empty() || by_stopword())
                    && !(self.patterns.is_empty() && self.stopwords.is_empty())
            }
        }
    }
}

impl Pattern {
    /// A pattern that is known to compile: a test compiles all of the built-in ones.
    pub(super) fn built_in(source: String) -> Self {
        Self { source, unicode: Unicode::Ascii, compiled: OnceLock::new() }
    }

    /// Compiles at once, so that a mistake is seen at the start and not at a secret.
    pub(super) fn of_user(source: String) -> Result<Self, regex::Error> {
        let pattern = Self { source, unicode: Unicode::Full, compiled: OnceLock::new() };
        let compiled = pattern.compile()?;
        let _ = pattern.compiled.set(compiled);
        Ok(pattern)
    }

    pub(super) fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| self.compile().expect("built-in patterns compile, as a test checks"))
    }

    pub(super) fn compile(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.source)
            .unicode(self.unicode == Unicode::Full)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build()
    }
}

/// Whether a letter or digit stands before this place. The letter of an escape (`\n`), of a percent code (`%3D`) or at the end
/// of a terminal's colour code belongs to no word.
fn is_within_word(text: &[u8], at: usize) -> bool {
    let Some(last) = at.checked_sub(1).map(|last| text[last]) else { return false };
    if !last.is_ascii_alphanumeric() {
        return false;
    }
    let before = &text[at.saturating_sub(8)..at];
    let escaped = before.len() >= 2 && before[before.len() - 2] == b'\\' && matches!(last, b'n' | b'r' | b't');
    let percent = before.len() >= 3
        && before[before.len() - 3] == b'%'
        && before[before.len() - 2..].iter().all(u8::is_ascii_hexdigit);
    let unicode = before.len() >= 6
        && before[before.len() - 6..].starts_with(b"\\u")
        && before[before.len() - 4..].iter().all(u8::is_ascii_hexdigit);
    let colour = last == b'm'
        && before.iter().rposition(|byte| *byte == b'[').is_some_and(|open| {
            before[open + 1..before.len() - 1].iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
        });
    !(escaped || percent || unicode || colour)
}

/// Widens a range to whole characters: ASCII classes match single bytes of others.
fn whole_characters(text: &str, mut range: Range<usize>) -> Range<usize> {
    while !text.is_char_boundary(range.start) {
        range.start -= 1;
    }
    while !text.is_char_boundary(range.end) {
        range.end += 1;
    }
    range
}
