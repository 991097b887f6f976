//! What fires a lesson: a tool, and a pattern that is looked for in what the call is about to do, or a meaning that it is to be near to.
//! A trigger that could not be right is refused when it is made, not found out when it has stopped every call.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::action::{Action, Tool};
use super::names;
use crate::redact;

/// A pattern as long as this is not understood by who reads the lesson.
pub const MAX_PATTERN_CHARS: usize = 500;
/// So large a compiled pattern may be, in bytes: thousands of lessons are held.
const MAX_COMPILED_BYTES: usize = 256 * 1024;
/// A text of this similarity is about the same thing, as far as MiniLM tells: the threshold where the lesson gives none.
pub const DEFAULT_THRESHOLD: f64 = 0.6;
const MAX_MEANING_CHARS: usize = 300;

/// In what a pattern is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// Each program that a command runs, from its name on.
    Command,
    /// The files that are changed.
    Path,
    /// What is written into them.
    Content,
    /// The input of another tool.
    Input,
}

names!(Field, "field", Command = "command", Path = "path", Content = "content", Input = "input");

/// What fires a lesson.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trigger {
    /// `Bash`, `Edit`, `Write`, `NotebookEdit`, or another tool's name, which may end in `*`; `None`: any.
    pub tool: Option<String>,
    /// A regular expression, as Rust's `regex` reads it.
    pub pattern: Option<String>,
    /// Without one: commands and paths, and the input where `tool` names another tool; never what is written into files.
    pub field: Option<Field>,
    /// A text that a call may be near to in meaning.
    pub meaning: Option<String>,
    /// How near, as cosine similarity, 0 to 1.
    pub threshold: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    #[error("neither a pattern nor a meaning is given: it would fire on every call")]
    Nothing,
    #[error("the pattern has {0} characters; {MAX_PATTERN_CHARS} are allowed")]
    TooLong(usize),
    #[error("the meaning has {0} characters; {MAX_MEANING_CHARS} are allowed")]
    MeaningTooLong(usize),
    #[error("the pattern `{pattern}` is no regular expression: {problem}")]
    Invalid { pattern: String, problem: String },
    #[error("the pattern `{0}` is too large when compiled: write fewer repetitions")]
    TooLarge(String),
    #[error("the pattern `{pattern}` also matches `{example}`: it would fire on nearly every call")]
    MatchesEverything { pattern: String, example: &'static str },
    #[error(
        "the trigger holds what looks like a secret: calls are compared after secrets were taken out, so it would never fire"
    )]
    Secret,
    #[error("`{0}` is no threshold: give a number from 0.3 to 1")]
    Threshold(f64),
}

/// What everybody does all day, by field: a pattern that matches all of it says nothing.
const EVERYDAY: [(Field, &[&str]); 4] = [
    (Field::Command, &["ls", "git status", "cargo test", "cat README.md", "npm run build"]),
    (Field::Path, &["src/main.rs", "README.md", "docs/index.html", "package.json"]),
    (Field::Content, &["fn main() {}\n", "# Title\n", "{\"a\": 1}"]),
    (Field::Input, &["{}", "{\"query\":\"x\"}", "{\"url\":\"https://example.com/\"}"]),
];

impl Trigger {
    /// Looks whether it can be right. Whitespace around the texts is dropped.
    ///
    /// # Errors
    /// Where it would fire on everything, or can fire on nothing.
    pub fn checked(self) -> Result<Self, TriggerError> {
        let text = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let tool = text(self.tool).filter(|tool| !["any", "*"].contains(&&*tool.to_lowercase()));
        let (pattern, meaning) = (text(self.pattern), text(self.meaning));
        if pattern.is_none() && meaning.is_none() {
            return Err(TriggerError::Nothing);
        }
        if [&tool, &pattern, &meaning].into_iter().flatten().any(|text| redact::clean(text) != text.as_str()) {
            return Err(TriggerError::Secret);
        }
        if let Some(pattern) = &pattern {
            check(pattern, self.field, names_another_tool(tool.as_deref()))?;
        }
        if let Some(length) = meaning.as_ref().map(|text| text.chars().count()).filter(|n| *n > MAX_MEANING_CHARS) {
            return Err(TriggerError::MeaningTooLong(length));
        }
        // A lower one is near to everything.
        if !(0.3..=1.0).contains(&self.threshold) {
            return Err(TriggerError::Threshold(self.threshold));
        }
        Ok(Self { tool, pattern, meaning, ..self })
    }

    /// Whether it is about calls of that tool.
    pub(super) fn is_about(&self, tool: &Tool) -> bool {
        let Some(wanted) = &self.tool else { return true };
        let name = tool.as_str();
        match wanted.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => wanted.eq_ignore_ascii_case(name) || Tool::named(wanted) == *tool,
        }
    }

    /// In which of an action's texts its pattern is looked for.
    pub(super) fn texts<'a>(&'a self, action: &'a Action) -> impl Iterator<Item = (Field, &'a str)> {
        let reads_input = names_another_tool(self.tool.as_deref());
        texts(action).filter(move |(of, _)| is_looked_in(*of, self.field, reads_input))
    }
}

/// Whether it is a tool that is neither a shell nor an editor: its input says what it does.
fn names_another_tool(tool: Option<&str>) -> bool {
    tool.is_some_and(|tool| matches!(Tool::named(tool), Tool::Other(_)))
}

fn is_looked_in(of: Field, field: Option<Field>, reads_input: bool) -> bool {
    field.map_or(matches!(of, Field::Command | Field::Path) || reads_input && of == Field::Input, |field| field == of)
}

/// Everything that a pattern may be looked for in.
pub(super) fn texts(action: &Action) -> impl Iterator<Item = (Field, &str)> {
    let commands = action.commands.iter().chain(&action.spelt).map(|text| (Field::Command, text.as_str()));
    let paths = action.paths.iter().map(|text| (Field::Path, text.as_str()));
    let contents = action.contents.iter().map(|text| (Field::Content, text.as_str()));
    let input = action.input.iter().map(|text| (Field::Input, text.as_str()));
    commands.chain(paths).chain(contents).chain(input)
}

/// A pattern ready for use; in a command it begins where the program's name does.
pub(super) struct Pattern {
    anywhere: Regex,
    from_start: Regex,
}

impl Pattern {
    pub(super) fn compile(pattern: &str) -> Result<Self, TriggerError> {
        // By itself first, so that the message names what was written.
        Ok(Self { anywhere: compile(pattern)?, from_start: compile(&from_start(pattern))? })
    }

    pub(super) fn is_in(&self, field: Field, text: &str) -> bool {
        match field {
            Field::Command => self.from_start.is_match(text),
            Field::Path | Field::Content | Field::Input => self.anywhere.is_match(text),
        }
    }
}

/// The pattern from the program's name on: so `git push` is none in `echo git push`.
pub(super) fn from_start(pattern: &str) -> String {
    format!("^(?:{pattern})")
}

fn compile(pattern: &str) -> Result<Regex, TriggerError> {
    RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => TriggerError::TooLarge(pattern.to_owned()),
        error => {
            // The last line says what is wrong; those before draw where.
            let told = error.to_string();
            let problem = told.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
            TriggerError::Invalid { pattern: pattern.to_owned(), problem }
        }
    })
}

fn check(pattern: &str, field: Option<Field>, reads_input: bool) -> Result<(), TriggerError> {
    let length = pattern.chars().count();
    if length > MAX_PATTERN_CHARS {
        return Err(TriggerError::TooLong(length));
    }
    let compiled = Pattern::compile(pattern)?;
    for (of, everyday) in EVERYDAY {
        if is_looked_in(of, field, reads_input) && everyday.iter().all(|text| compiled.is_in(of, text)) {
            return Err(TriggerError::MatchesEverything { pattern: pattern.to_owned(), example: everyday[0] });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(pattern: &str) -> Result<Trigger, TriggerError> {
        let pattern = Some(pattern.to_owned());
        Trigger { tool: None, pattern, field: None, meaning: None, threshold: DEFAULT_THRESHOLD }.checked()
    }

    #[test]
    fn refuses_what_would_fire_always_or_cannot_be_read() {
        for (pattern, told) in [
            ("", "neither a pattern nor a meaning"),
            (".*", "nearly every call"),
            (r"\S+", "nearly every call"),
            ("(?i)[a-z]", "nearly every call"),
            ("x?", "nearly every call"),
            ("(", "no regular expression"),
            (r"(a)\1", "backreferences are not supported"),
            ("(?=x)", "look-around"),
            (r"(\w{100}){100}", "too large"),
        ] {
            let error = trigger(pattern).unwrap_err().to_string();
            assert!(error.contains(told), "{pattern}: {error}");
        }
        assert!(matches!(trigger(&"x".repeat(501)), Err(TriggerError::TooLong(501))));
        assert!(trigger("(a+)+$").is_ok(), "takes linear time here");
        assert!(trigger("git push .*--force( |$)").is_ok());
    }

    #[test]
    fn refuses_a_trigger_that_holds_a_secret() {
        let key = format!("AKIA{}", "QWERTYUIOPASDFGH");
        assert!(matches!(trigger(&format!("aws configure set {key}")), Err(TriggerError::Secret)));
    }

    #[test]
    fn knows_tools_by_the_names_that_agents_give_them() {
        let about = |wanted: &str, tool: &str| {
            let tool_of = |name: &str| Some(name.to_owned());
            let trigger = Trigger {
                tool: tool_of(wanted),
                pattern: None,
                field: None,
                meaning: Some("x".into()),
                threshold: 0.6,
            };
            trigger.checked().unwrap().is_about(&Tool::named(tool))
        };
        assert!(about("Bash", "run_shell_command") && about("any", "WebFetch") && about("shell", "Bash"));
        assert!(about("mcp__db__*", "mcp__db__query") && !about("mcp__db__*", "mcp__web__get"));
        assert!(!about("Bash", "Edit") && about("Edit", "MultiEdit"));
    }
}
