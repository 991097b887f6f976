//! Answers about code: who touched a file, what mended a failure, which commands worked.

use memory::recall::{Call, FileTouch, Fix, Step, WorkingCommand};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{FRAME, shortened};
use crate::dates::written;
use crate::withheld;

/// What these replies may take: a few failures with their steps.
const MAX_TOKENS: usize = 6_000;

/// Calls that touched a file, edits first, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileHistoryReply {
    /// How to take what follows.
    about: &'static str,
    #[schemars(with = "Vec<TouchLine>")]
    touches: Vec<Value>,
    /// What was less than it should be, and what to do next.
    notes: Vec<String>,
}

/// One call that touched the file.
#[derive(Debug, Serialize, JsonSchema)]
struct TouchLine {
    /// What `get_observations` and `timeline` take.
    id: String,
    /// When it happened, in UTC.
    when: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    agent: String,
    session: String,
    /// `edited`, `read`, or `ran` for a command that named the file.
    did: &'static str,
    /// The path as the call named it.
    path: String,
    headline: String,
    failed: bool,
    /// Why: the prompt that the call served.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// What of this was cut, and how much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cut: Vec<String>,
}

/// Failures and what mended them, the most alike first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixesReply {
    /// How to take what follows.
    about: &'static str,
    #[schemars(with = "Vec<FixLine>")]
    fixes: Vec<Value>,
    /// What was less than it should be, and what to do next.
    notes: Vec<String>,
}

/// One failure, what was done about it, and the call like it that worked afterwards.
#[derive(Debug, Serialize, JsonSchema)]
struct FixLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    agent: String,
    session: String,
    /// What the user had asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    failed: CallLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How many calls like it failed before one worked, this one included.
    attempts: i64,
    /// What was changed or run in between, in its order; looking around is left out.
    steps: Vec<StepLine>,
    /// How many steps before those are left out; `timeline` shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_steps: Option<i64>,
    /// The next call like it that worked; left out where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    worked: Option<CallLine>,
    /// How often the same failure ended the same way elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_again: Option<i64>,
    /// What of this was cut, and how much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cut: Vec<String>,
}

/// One call with what it was asked.
#[derive(Debug, Serialize, JsonSchema)]
struct CallLine {
    /// What `get_observations` and `timeline` take.
    id: String,
    /// When it happened, in UTC.
    when: String,
    tool: String,
    /// Its input, without the texts of files.
    input: Value,
}

/// One call between a failure and what worked.
#[derive(Debug, Serialize, JsonSchema)]
struct StepLine {
    id: String,
    when: String,
    /// `edited` or `ran`.
    did: &'static str,
    tool: String,
    /// Its exact input.
    input: Value,
}

/// Commands that worked, the most fitting first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommandsReply {
    /// How to take what follows.
    about: &'static str,
    #[schemars(with = "Vec<CommandLine>")]
    commands: Vec<Value>,
    /// What was less than it should be, and what to do next.
    notes: Vec<String>,
}

/// One command, and how it fared.
#[derive(Debug, Serialize, JsonSchema)]
struct CommandLine {
    command: String,
    /// How often it worked, and how often it failed.
    worked: i64,
    failed: i64,
    /// When it last worked, in UTC.
    last_worked: String,
    /// The call that fits best: what `get_observations` and `timeline` take.
    id: String,
    /// When that was, in UTC.
    when: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    agent: String,
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_folder: Option<String>,
    /// What the user had asked for then.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// What of this was cut, and how much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cut: Vec<String>,
}

impl FileHistoryReply {
    pub(crate) fn of(touches: Vec<FileTouch>) -> Self {
        let next = if touches.is_empty() {
            "No recorded call names this file: try only its last parts, or `search` for what it is about."
        } else {
            "`get_observations` gives the exact edits by their ids; `timeline` shows what was around one."
        };
        let (touches, cut) = shortened(touches.into_iter().map(TouchLine::of), MAX_TOKENS);
        Self { about: FRAME, touches, notes: cut.into_iter().chain([next.to_owned()]).collect() }
    }
}

impl FixesReply {
    pub(crate) fn of(fixes: Vec<Fix>, degraded: Option<String>) -> Self {
        let next = if fixes.is_empty() {
            "No recorded call failed like this: try the telling line alone, or `search` for it."
        } else {
            "That a call worked afterwards does not prove that a step mended it: look at the steps. `timeline` shows all that was \
             around a failure."
        };
        let (fixes, cut) = shortened(fixes.into_iter().map(FixLine::of), MAX_TOKENS);
        Self { about: FRAME, fixes, notes: degraded.into_iter().chain(cut).chain([next.to_owned()]).collect() }
    }
}

impl CommandsReply {
    pub(crate) fn of(commands: Vec<WorkingCommand>, degraded: Option<String>) -> Self {
        let next = if commands.is_empty() {
            "No recorded command fits: try other words, or `search`."
        } else {
            "`get_observations` gives a command's output by its id. Look at a command before you run it: it is a record."
        };
        let (commands, cut) = shortened(commands.into_iter().map(CommandLine::of), MAX_TOKENS);
        Self { about: FRAME, commands, notes: degraded.into_iter().chain(cut).chain([next.to_owned()]).collect() }
    }
}

impl TouchLine {
    fn of(found: FileTouch) -> Self {
        let FileTouch { call, touch, path } = found;
        Self {
            id: call.line.id.to_string(),
            when: written(call.line.occurred_at),
            project: call.line.project,
            branch: call.branch,
            agent: call.agent,
            session: call.session,
            did: touch.as_str(),
            path,
            headline: call.line.headline,
            failed: call.line.failed == Some(true),
            prompt: call.prompt,
            cut: Vec::new(),
        }
    }
}

impl FixLine {
    fn of(fix: Fix) -> Self {
        let some = |count: usize| (count > 0).then_some(count as i64);
        Self {
            project: fix.failed.line.project.clone(),
            branch: fix.failed.branch.clone(),
            agent: fix.failed.agent.clone(),
            session: fix.failed.session.clone(),
            prompt: fix.failed.prompt.clone(),
            error: fix.failed.error.clone(),
            failed: CallLine::of(fix.failed),
            attempts: fix.attempts as i64,
            steps: fix.steps.into_iter().map(StepLine::of).collect(),
            earlier_steps: some(fix.earlier_steps),
            worked: fix.worked.map(CallLine::of),
            seen_again: some(fix.seen_again),
            cut: Vec::new(),
        }
    }
}

impl CallLine {
    fn of(call: Call) -> Self {
        Self {
            id: call.line.id.to_string(),
            when: written(call.line.occurred_at),
            tool: call.tool_name,
            input: withheld::without_cleaned_files(call.input),
        }
    }
}

impl StepLine {
    fn of(step: Step) -> Self {
        let CallLine { id, when, tool, input } = CallLine::of(step.call);
        Self { id, when, did: step.touch.as_str(), tool, input }
    }
}

impl CommandLine {
    fn of(found: WorkingCommand) -> Self {
        let WorkingCommand { command, call, worked, failed, last_worked_at } = found;
        Self {
            command,
            worked: worked as i64,
            failed: failed as i64,
            last_worked: written(last_worked_at),
            id: call.line.id.to_string(),
            when: written(call.line.occurred_at),
            project: call.line.project,
            agent: call.agent,
            session: call.session,
            working_folder: call.working_folder,
            prompt: call.prompt,
            cut: Vec::new(),
        }
    }
}
