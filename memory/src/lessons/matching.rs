//! The lessons that an action fires, among thousands: one pass over the action finds the patterns whose beginning occurs in it, and only
//! those are tried; those without a fixed beginning are tried each time.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex_syntax::hir::literal::Extractor;

use super::Lesson;
use super::action::Action;
use super::trigger::{Field, Pattern, from_start, texts};

/// A beginning that is shorter occurs everywhere.
const MIN_BEGINNING_BYTES: usize = 3;
/// A pattern of more beginnings than this is tried each time.
const MAX_BEGINNINGS: usize = 32;

/// The active lessons, ready to be asked.
#[derive(Default)]
pub struct LessonSet {
    lessons: Vec<Ready>,
    beginnings: Option<AhoCorasick>,
    /// Which lessons begin like that, by beginning.
    beginning_of: Vec<Vec<usize>>,
    /// Those that have no fixed beginning.
    others: Vec<usize>,
    /// Those that a meaning fires.
    by_meaning: Vec<usize>,
}

struct Ready {
    lesson: Lesson,
    /// Compiled when it is first tried: most never are.
    pattern: OnceLock<Option<Pattern>>,
    /// Of the meaning; length 1.
    vector: Option<Vec<f32>>,
}

/// A lesson that an action fires, and what of it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Match<'a> {
    pub lesson: &'a Lesson,
    /// What its pattern was found in, or how near the meaning is.
    pub found: Found<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found<'a> {
    Pattern { field: Field, text: &'a str },
    Meaning { similarity: f64 },
}

impl LessonSet {
    /// Lessons with the vectors of their meanings, as far as they are known.
    pub fn new(lessons: impl IntoIterator<Item = (Lesson, Option<Vec<f32>>)>) -> Self {
        let mut set = Self::default();
        let mut beginnings: Vec<String> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (lesson, vector) in lessons {
            let at = set.lessons.len();
            let Some(trigger) = &lesson.trigger else { continue };
            if let Some(pattern) = &trigger.pattern {
                match beginnings_of(pattern) {
                    Some(literals) => {
                        for literal in literals {
                            let number = *known.entry(literal.clone()).or_insert_with(|| {
                                beginnings.push(literal);
                                set.beginning_of.push(Vec::new());
                                beginnings.len() - 1
                            });
                            set.beginning_of[number].push(at);
                        }
                    }
                    None => set.others.push(at),
                }
            }
            if vector.is_some() {
                set.by_meaning.push(at);
            }
            set.lessons.push(Ready { lesson, pattern: OnceLock::new(), vector });
        }
        // Without an automaton, which only a set of gigabytes would lack, every pattern is tried.
        match AhoCorasick::builder().match_kind(MatchKind::Standard).build(&beginnings) {
            Ok(automaton) => set.beginnings = Some(automaton),
            Err(_) => set.others = (0..set.lessons.len()).collect(),
        }
        set
    }

    pub fn len(&self) -> usize {
        self.lessons.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty()
    }

    /// Whether some lesson is fired by a meaning.
    pub fn has_meanings(&self) -> bool {
        !self.by_meaning.is_empty()
    }

    /// The lessons whose pattern is found in the action, the most severe and most specific first.
    pub fn matching<'a>(&'a self, action: &'a Action) -> Vec<Match<'a>> {
        let mut tried: Vec<usize> = self.others.clone();
        if let Some(beginnings) = &self.beginnings {
            for (_, text) in texts(action) {
                for found in beginnings.find_overlapping_iter(text) {
                    tried.extend(&self.beginning_of[found.pattern().as_usize()]);
                }
            }
        }
        tried.sort_unstable();
        tried.dedup();
        let mut matches: Vec<_> = tried.into_iter().filter_map(|at| self.lessons[at].found_in(action)).collect();
        sort(&mut matches);
        matches
    }

    /// The lessons whose meaning is as near to the vector as they ask, the nearest of the most severe first.
    pub fn near(&self, action: &Action, vector: &[f32]) -> Vec<Match<'_>> {
        let near = self.by_meaning.iter().filter_map(|at| {
            let Ready { lesson, vector: own, .. } = &self.lessons[*at];
            let trigger = lesson.trigger.as_ref().filter(|trigger| trigger.is_about(&action.tool))?;
            let similarity = cosine(own.as_deref()?, vector);
            (similarity >= trigger.threshold).then_some(Match { lesson, found: Found::Meaning { similarity } })
        });
        let mut matches: Vec<_> = near.collect();
        sort(&mut matches);
        matches
    }
}

impl Ready {
    fn found_in<'a>(&'a self, action: &'a Action) -> Option<Match<'a>> {
        let trigger = self.lesson.trigger.as_ref().filter(|trigger| trigger.is_about(&action.tool))?;
        // It was looked at when it was made; whoever wrote another by hand has a lesson that fires nothing.
        let compiled = || Pattern::compile(trigger.pattern.as_deref()?).ok();
        let pattern = self.pattern.get_or_init(compiled).as_ref()?;
        let (field, text) = trigger.texts(action).find(|(field, text)| pattern.is_in(*field, text))?;
        Some(Match { lesson: &self.lesson, found: Found::Pattern { field, text } })
    }
}

/// What may stop the call first: what only tells must not stand before it. Then the most severe, of these what a project has of its own,
/// then the longer pattern, then the nearer meaning, then the older.
fn sort(matches: &mut [Match<'_>]) {
    let rank = |found: &Match<'_>| {
        let length = found.lesson.trigger.as_ref().and_then(|trigger| trigger.pattern.as_ref()).map_or(0, String::len);
        (found.lesson.stops(), found.lesson.severity, found.lesson.project.is_some(), length)
    };
    let near = |found: &Match<'_>| match found.found {
        Found::Meaning { similarity } => similarity,
        Found::Pattern { .. } => 1.0,
    };
    matches.sort_by(|one, two| {
        let by_rank = rank(two).cmp(&rank(one));
        by_rank.then(near(two).total_cmp(&near(one))).then(one.lesson.id.cmp(&two.lesson.id))
    });
}

/// What every text that the pattern matches begins with, or holds at the match: one of these. `None` where that says too little.
fn beginnings_of(pattern: &str) -> Option<Vec<String>> {
    let hir = regex_syntax::parse(&from_start(pattern)).ok()?;
    let mut extractor = Extractor::new();
    extractor.limit_total(MAX_BEGINNINGS);
    let literals = extractor.extract(&hir);
    let literals = literals.literals()?;
    let texts: Option<Vec<_>> = literals
        .iter()
        .map(|literal| std::str::from_utf8(literal.as_bytes()).ok().filter(|text| text.len() >= MIN_BEGINNING_BYTES))
        .map(|text| text.map(str::to_owned))
        .collect();
    texts.filter(|texts| !texts.is_empty() && texts.len() <= MAX_BEGINNINGS)
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (product(one, one) * product(other, other)).sqrt();
    if lengths > 0.0 { product(one, other) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Severity;
    use super::super::testing::lesson;
    use super::*;

    fn action(command: &str) -> Action {
        Action::of("Bash", &json!({ "command": command }), None)
    }

    fn ids(set: &LessonSet, command: &str) -> Vec<i64> {
        set.matching(&action(command)).iter().map(|found| found.lesson.id.0).collect()
    }

    #[test]
    fn finds_the_most_severe_and_most_specific_first() {
        let set = LessonSet::new([
            (lesson(1, Severity::Warning, "git push"), None),
            (lesson(2, Severity::Critical, "git push( .*)? --force( |$)"), None),
            (lesson(3, Severity::Critical, "git"), None),
            (lesson(4, Severity::Critical, "[a-z]+ push"), None),
        ]);
        assert_eq!(ids(&set, "cd /w && git push -f"), [2, 4, 3, 1]);
        assert_eq!(ids(&set, "git push --force-with-lease"), [4, 3, 1]);
        assert_eq!(ids(&set, "echo git push --force"), Vec::<i64>::new());
    }

    #[test]
    fn tries_no_pattern_whose_beginning_is_not_there() {
        let many = (0..5_000).map(|n| (lesson(n, Severity::Info, &format!("program{n} run")), None));
        let set = LessonSet::new(many);
        assert!(set.others.is_empty());
        assert_eq!(ids(&set, "program42 run --fast"), [42]);
        let compiled = set.lessons.iter().filter(|ready| ready.pattern.get().is_some()).count();
        assert!(compiled <= 2, "{compiled}");
    }

    #[test]
    fn compares_meanings() {
        let mut near = lesson(1, Severity::Info, "never");
        near.trigger.as_mut().unwrap().threshold = 0.9;
        let set = LessonSet::new([(near, Some(vec![1.0, 0.0]))]);
        assert_eq!(set.near(&action("x"), &[2.0, 0.1]).len(), 1);
        assert!(set.near(&action("x"), &[1.0, 1.0]).is_empty());
    }
}
