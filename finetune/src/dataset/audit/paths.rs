//! Which paths the calls use, and what a call does to the world.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::dataset::clean::any_string;
use crate::dataset::row::{Call, Row};

static ABSOLUTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|[\s"'=:(,\[`])((?:/[A-Za-z0-9._@+-]+){2,})"#).expect("the pattern is constant")
});

/// Folders that every machine has.
const SYSTEM: [&str; 9] = ["dev", "tmp", "etc", "usr", "proc", "sys", "bin", "var", "lib"];

/// The absolute paths in the trained calls of a project, by where they begin.
#[derive(Debug, Default)]
pub(super) struct PathUse {
    prefixes: BTreeMap<String, usize>,
}

impl PathUse {
    pub(super) fn add(&mut self, text: &str) {
        for path in absolute_paths(text) {
            *self.prefixes.entry(prefix(path)).or_default() += 1;
        }
    }

    /// The share of the commonest beginning; nothing is said of a few.
    pub(super) fn largest_share(&self) -> Option<f64> {
        const ENOUGH: usize = 24;
        let all: usize = self.prefixes.values().sum();
        let largest = self.prefixes.values().max()?;
        (all >= ENOUGH).then(|| *largest as f64 / all as f64)
    }
}

pub(crate) fn absolute_paths(text: &str) -> impl Iterator<Item = &str> {
    let found = ABSOLUTE.captures_iter(text).filter_map(|found| found.get(1)).map(|path| path.as_str());
    found.filter(|path| !is_on_every_machine(path))
}

/// Whether an absolute path begins in a folder that nobody has to be told of.
pub(crate) fn is_on_every_machine(path: &str) -> bool {
    path.starts_with('/') && SYSTEM.contains(&path.split('/').nth(1).unwrap_or_default())
}

/// The first two folders; of a home, what is in it too.
fn prefix(path: &str) -> String {
    let is_home = path.starts_with("/home/") || path.starts_with("/Users/");
    path.split('/').take(if is_home { 4 } else { 3 }).collect::<Vec<_>>().join("/")
}

/// Whether a trained call goes to a file of the same name as one in the prompt, in another place that nothing had told of.
pub(super) fn contradicts_prompt(row: &Row) -> bool {
    let asked: Vec<_> = absolute_paths(row.prompt()).collect();
    if asked.is_empty() {
        return false;
    }
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    row.trained.iter().any(|index| {
        let is_told = |path: &str| row.messages[..*index].iter().any(|message| message.content().contains(path));
        let is_other = |path: &str| {
            name(path).contains('.') && asked.iter().any(|other| name(other) == name(path)) && !is_told(path)
        };
        row.messages[*index].arguments().any(|value| any_string(value, &|text| absolute_paths(text).any(is_other)))
    })
}

/// Whether a call changes files, history or the outside.
pub(super) fn is_mutation(call: &Call) -> bool {
    const WRITERS: [&str; 9] =
        ["write", "edit", "multiedit", "notebookedit", "write_file", "replace", "apply_patch", "create", "str_replace"];
    static OUTWARD: LazyLock<Regex> = LazyLock::new(|| {
        let commands = r"(?:^|[;&|]\s*)(?:sudo\s+)?(?:git\s+(?:commit|push|reset|rebase|merge|tag)\b|gh\s+(?:pr|issue|release)\s+(?:create|merge|close|edit)\b|rm\s|mv\s|(?:npm|cargo)\s+publish\b|docker\s+push\b|kubectl\s+(?:apply|delete)\b|terraform\s+(?:apply|destroy)\b)";
        Regex::new(commands).expect("the pattern is constant")
    });
    let name = call.function.name.to_ascii_lowercase();
    let mut values = call.function.arguments.values();
    WRITERS.contains(&name.as_str()) || values.any(|value| any_string(value, &|text| OUTWARD.is_match(text)))
}
