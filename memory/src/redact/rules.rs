//! Reads `rules.toml`, which is part of the program.

use serde::Deserialize;

use super::names::Names;
use super::rule::{Allow, AllowList, AllowMode, Case, Group, Pattern, Place, Rule, Start, Target};

const SOURCE: &str = include_str!("rules.toml");
const DEFAULT_REACH_BYTES: usize = 2048;

/// What the program knows by itself.
pub(super) struct BuiltIn {
    pub(super) rules: Vec<Rule>,
    pub(super) names: Names,
}

#[derive(Deserialize)]
struct Document {
    rules: Vec<Definition>,
    #[serde(flatten)]
    names: Names,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    id: String,
    /// For the reader of the file.
    #[allow(dead_code, reason = "each rule must have one")]
    description: String,
    pattern: String,
    keywords: Vec<String>,
    before: Option<String>,
    #[serde(default)]
    entropy: f64,
    #[serde(default)]
    allow: Vec<String>,
    start: Option<AnyStart>,
    reach: Option<usize>,
    #[serde(default)]
    scan: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum AnyStart {
    Anywhere,
}

pub(super) fn read() -> BuiltIn {
    let document: Document = toml::from_str(SOURCE).expect("rules.toml is well formed, as a test checks");
    BuiltIn { rules: document.rules.into_iter().map(Definition::into_rule).collect(), names: document.names }
}

impl Definition {
    fn into_rule(self) -> Rule {
        let place = if self.scan {
            Place::Anywhere
        } else {
            Place::AtKeyword {
                start: if self.start.is_some() { Start::Anywhere } else { Start::Word },
                case: if self.pattern.contains("(?i") { Case::Any } else { Case::Exact },
                reach_bytes: self.reach.unwrap_or(DEFAULT_REACH_BYTES),
            }
        };
        let pattern = if self.scan { self.pattern } else { format!("^(?:{})", self.pattern) };
        let patterns: Vec<_> = self.allow.into_iter().map(Pattern::built_in).collect();
        let list = AllowList { patterns, stopwords: Vec::new(), target: Target::Secret, mode: AllowMode::One };
        Rule {
            id: self.id,
            pattern: Pattern::built_in(pattern),
            before: self.before.map(Pattern::built_in),
            keywords: self.keywords,
            place,
            entropy: self.entropy,
            group: Group::FirstUsed,
            allow: Allow { lists: vec![list] },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_more_than_forty_and_every_pattern_compiles() {
        let rules = read().rules;
        let ids: BTreeSet<_> = rules.iter().map(|rule| rule.id.as_str()).collect();
        assert!(ids.len() > 40, "{}", ids.len());
        for rule in &rules {
            let patterns = [Some(&rule.pattern), rule.before.as_ref()].into_iter().flatten();
            for pattern in patterns.chain(rule.allow.lists.iter().flat_map(|list| &list.patterns)) {
                pattern.compile().unwrap_or_else(|error| panic!("{}: {error}", rule.id));
            }
        }
    }

    #[test]
    fn every_rule_is_named_as_a_placeholder_can_be_and_has_a_keyword() {
        for rule in read().rules {
            assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
            assert!(rule.keywords.iter().all(|word| word.len() > 1) && !rule.keywords.is_empty(), "{}", rule.id);
        }
    }
}
