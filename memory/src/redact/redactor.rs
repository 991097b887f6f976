//! Finds everything that must not be kept in a text, and replaces it.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::gitleaks::UserRules;
use super::names::Names;
use super::rule::{Allow, Case, Found, Place, Rule};
use super::taken::{self, Taken};
use super::{PRIVATE_MARK, SECRET_MARK, assignment, has_mark, private, rules, value};

/// A secret may only be seen once another is gone; more rounds than two have not been needed.
const MAX_ROUNDS: usize = 8;
const MARK_END: char = '›';

pub(super) struct Redactor {
    keywords: AhoCorasick,
    /// For each keyword: who looks at the places where it stands.
    seekers: Vec<Vec<Seeker>>,
    rules: Vec<Rule>,
    /// Rules of the user without any keyword.
    always: Vec<usize>,
    names: Names,
    allow: Allow,
    taken: Taken,
}

#[derive(Debug, Clone, Copy)]
enum Seeker {
    Rule(usize),
    Names,
    Private,
    Mark,
}

/// A keyword in a text.
pub(super) struct Hit {
    keyword: usize,
    range: Range<usize>,
}

/// Something that is to be replaced.
struct Finding<'r> {
    id: &'r str,
    range: Range<usize>,
}

pub(super) fn placeholder(id: &str) -> String {
    format!("{SECRET_MARK}{id}{MARK_END}")
}

impl Redactor {
    pub(super) fn with(user: UserRules) -> Self {
        let built_in = rules::read();
        let ids = built_in.rules.iter().map(|rule| rule.id.clone()).chain(built_in.names.ids().map(str::to_owned));
        let taken = Taken::by(ids);
        let mut keywords: Vec<String> = Vec::new();
        let mut seekers: Vec<Vec<Seeker>> = Vec::new();
        let mut seek = |keyword: &str, seeker| {
            let place = keywords.iter().position(|known| known == keyword).unwrap_or_else(|| {
                keywords.push(keyword.to_owned());
                seekers.push(Vec::new());
                keywords.len() - 1
            });
            seekers[place].push(seeker);
        };
        seek(private::OPEN, Seeker::Private);
        seek(SECRET_MARK, Seeker::Mark);
        seek(PRIVATE_MARK, Seeker::Mark);
        for keyword in built_in.names.keywords() {
            seek(keyword, Seeker::Names);
        }
        let rules: Vec<_> = built_in.rules.into_iter().chain(user.rules).collect();
        for (number, rule) in rules.iter().enumerate() {
            for keyword in &rule.keywords {
                seek(keyword, Seeker::Rule(number));
            }
        }
        let always = (0..rules.len()).filter(|number| rules[*number].keywords.is_empty()).collect();
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&keywords)
            .or_else(|_| AhoCorasick::builder().ascii_case_insensitive(true).build(&keywords))
            .expect("a list of keywords makes an automaton");
        Self { keywords, seekers, rules, always, names: built_in.names, allow: user.allow, taken }
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Every keyword in a text, those within others included.
    pub(super) fn hits(&self, text: &str) -> impl Iterator<Item = Hit> {
        self.keywords
            .find_overlapping_iter(text.as_bytes())
            .map(|found| Hit { keyword: found.pattern().as_usize(), range: found.range() })
    }

    pub(super) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut cleaned = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            match self.clean_once(&cleaned) {
                Some(next) => cleaned = Cow::Owned(next),
                None => break,
            }
        }
        cleaned
    }

    fn clean_once(&self, text: &str) -> Option<String> {
        let hits: Vec<_> = self.hits(text).collect();
        if hits.is_empty() && self.always.is_empty() {
            return None;
        }
        let of_kind = |wanted: fn(&Seeker) -> bool| {
            hits.iter().filter(move |hit| self.seekers[hit.keyword].iter().any(wanted)).map(|hit| &hit.range)
        };
        if of_kind(|seeker| matches!(seeker, Seeker::Private)).next().is_some() {
            self.taken.count(taken::PRIVATE);
            return Some(private::cut(text));
        }
        let marks: Vec<_> = of_kind(|seeker| matches!(seeker, Seeker::Mark)).map(|hit| mark_at(text, hit)).collect();
        let mut findings = self.by_rules(text, &hits, &marks);
        let known = findings.len();
        let mut last_name = 0;
        for hit in of_kind(|seeker| matches!(seeker, Seeker::Names)) {
            // One name may hold several keywords: the value is the same for all.
            if hit.start < last_name || overlaps(&marks, hit) {
                continue;
            }
            let Some(assignment) = assignment::around(text, hit) else { continue };
            last_name = hit.start + 1;
            if findings[known..].last().is_some_and(|last| last.range == assignment.value) {
                continue;
            }
            let Some(kind) = self.names.kind_of(assignment.name) else { continue };
            let said = &text[assignment.value.clone()];
            let is_secret = !has_mark(said) && value::is_secret(said, assignment.form, kind.value, assignment.name);
            if is_secret && !overlaps(&marks, &assignment.value) {
                findings.push(Finding { id: &kind.id, range: assignment.value });
            }
        }
        if !self.allow.lists.is_empty() {
            findings.retain(|finding| {
                !self.allow.lets_through(&Found { text, secret: finding.range.clone(), whole: finding.range.clone() })
            });
        }
        let merged = merge(findings);
        for finding in &merged {
            self.taken.count(finding.id);
        }
        replace(text, &merged)
    }

    fn by_rules<'r>(&'r self, text: &str, hits: &[Hit], marks: &[Range<usize>]) -> Vec<Finding<'r>> {
        let mut findings: Vec<Finding<'r>> = Vec::new();
        let mut whole_text = self.always.clone();
        for hit in hits {
            for seeker in &self.seekers[hit.keyword] {
                let Seeker::Rule(number) = *seeker else { continue };
                let rule = &self.rules[number];
                let Place::AtKeyword { case, .. } = rule.place else {
                    whole_text.push(number);
                    continue;
                };
                if case == Case::Exact
                    && !rule.keywords.iter().any(|word| text.as_bytes()[hit.range.clone()] == *word.as_bytes())
                {
                    continue;
                }
                if overlaps(marks, &hit.range) {
                    continue;
                }
                if let Some(range) = rule.find_at(text, &hit.range).filter(|range| !overlaps(marks, range)) {
                    findings.push(Finding { id: &rule.id, range });
                }
            }
        }
        whole_text.sort_unstable();
        whole_text.dedup();
        for number in whole_text {
            let rule = &self.rules[number];
            let found = rule.find_all(text).into_iter().filter(|range| !overlaps(marks, range));
            findings.extend(found.map(|range| Finding { id: &rule.id, range }));
        }
        findings
    }
}

/// The whole mark that begins here; what only begins like one is not protected beyond its beginning.
fn mark_at(text: &str, hit: &Range<usize>) -> Range<usize> {
    let rest = &text[hit.end..];
    let id = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)).count();
    if rest[id..].starts_with(MARK_END) { hit.start..hit.end + id + MARK_END.len_utf8() } else { hit.clone() }
}

fn overlaps(marks: &[Range<usize>], range: &Range<usize>) -> bool {
    // Marks stand in order and do not overlap.
    let next = marks.partition_point(|mark| mark.end <= range.start);
    marks.get(next).is_some_and(|mark| mark.start < range.end)
}

/// In the order of the text. Those that overlap become one, named after the first that was found.
fn merge(findings: Vec<Finding<'_>>) -> Vec<Finding<'_>> {
    let mut ordered: Vec<_> = findings.into_iter().enumerate().collect();
    ordered.sort_by_key(|(rank, finding)| (finding.range.start, *rank));
    let mut merged: Vec<(usize, Finding<'_>)> = Vec::with_capacity(ordered.len());
    for (rank, finding) in ordered {
        match merged.last_mut() {
            Some((best, last)) if finding.range.start < last.range.end => {
                last.range.end = last.range.end.max(finding.range.end);
                if rank < *best {
                    *best = rank;
                    last.id = finding.id;
                }
            }
            _ => merged.push((rank, finding)),
        }
    }
    merged.into_iter().map(|(_, finding)| finding).collect()
}

/// The text with a placeholder for each finding.
fn replace(text: &str, findings: &[Finding<'_>]) -> Option<String> {
    if findings.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len() + findings.len() * 16);
    let mut at = 0;
    for finding in findings {
        out.push_str(&text[at..finding.range.start]);
        out.push_str(&placeholder(finding.id));
        at = finding.range.end;
    }
    out.push_str(&text[at..]);
    Some(out)
}
