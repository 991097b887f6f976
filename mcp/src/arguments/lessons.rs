//! Arguments of the tools about lessons.

use memory::lessons::{Author, DEFAULT_THRESHOLD, Field, NewLesson, Severity, Trigger};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Count, DEFAULT_LIMIT, OfTool, given, in_range, wrong};
use crate::error::ToolError;

const MAX_LESSONS: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateLessonArguments {
    /// What to do, or not to do, and what to do instead; at most 1500 characters. No secrets.
    rule: String,
    /// One line that says what it is about; the rule's first line if left out.
    title: Option<String>,
    /// What happened when it was not kept.
    why: Option<String>,
    /// `critical`, `warning` or `info`; `warning` if left out.
    severity: Option<String>,
    /// The repository it holds in: its name, remote or folder. Without it, it holds in all.
    project: Option<String>,
    /// The tool whose calls it is about: `Bash`, `Edit`, `Write`, `NotebookEdit`, an MCP tool's name (which may end in `*`), or `any`.
    trigger_tool: Option<String>,
    /// A regular expression. For a shell it is matched from a program's name on, with long flags: `git push .*--force( |$)`.
    trigger_pattern: Option<String>,
    /// In what it is looked for: `command`, `path`, `content` or `input`; if left out, commands and paths, and the input where the tool is neither shell nor editor.
    trigger_field: Option<String>,
    /// Instead of a pattern, or beside it: a text that a call may be near to in meaning.
    trigger_meaning: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchLessonsArguments {
    /// What they are about: words, a command, a path. Without it, the newest.
    #[serde(default)]
    pub(crate) query: Option<String>,
    /// Those of this repository and those that hold in all; without it, every lesson.
    pub(crate) project: Option<String>,
    /// How many, 1 to 50; 10 if left out.
    limit: Option<Count>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProposeLessonsArguments {
    /// The repository whose journal is looked through: its name, remote or folder.
    pub(crate) project: String,
}

impl OfTool for CreateLessonArguments {
    const TOOL: &'static str = "create_lesson";
}
impl OfTool for SearchLessonsArguments {
    const TOOL: &'static str = "search_lessons";
}
impl OfTool for ProposeLessonsArguments {
    const TOOL: &'static str = "propose_lessons";
}

impl CreateLessonArguments {
    /// As an agent's.
    pub(crate) fn lesson(self) -> Result<NewLesson, ToolError> {
        let severity = given(self.severity.as_deref()).map_or(Ok(Severity::Warning), |severity| {
            let known = severity.to_lowercase().parse();
            known.map_err(|_| wrong("severity", severity, "`severity` is one of `critical`, `warning` and `info`"))
        })?;
        let field = given(self.trigger_field.as_deref()).map(|field| {
            const HINT: &str = "`trigger_field` is one of `command`, `path`, `content` and `input`";
            field.to_lowercase().parse::<Field>().map_err(|_| wrong("trigger_field", field, HINT))
        });
        let some = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let (pattern, meaning) = (some(self.trigger_pattern), some(self.trigger_meaning));
        let trigger = match (field.transpose()?, some(self.trigger_tool)) {
            // It is found by a search, and fires nothing.
            (None, None) if pattern.is_none() && meaning.is_none() => None,
            (field, tool) => Some(Trigger { tool, pattern, field, meaning, threshold: DEFAULT_THRESHOLD }),
        };
        Ok(NewLesson {
            project: some(self.project),
            title: some(self.title),
            rule: self.rule,
            why: some(self.why),
            severity,
            trigger,
            author: Author::Agent,
            asks_person: false,
        })
    }
}

impl SearchLessonsArguments {
    pub(crate) fn limit(&self) -> Result<usize, ToolError> {
        in_range("limit", self.limit, DEFAULT_LIMIT, 1..=MAX_LESSONS, "give a `limit` from 1 to 50")
    }
}
