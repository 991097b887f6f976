//! What agents send, read into what we keep.
//!
//! `envelope` is our hook program's wrapping, `detect` finds who really sent the payload, and each agent's wire format is one
//! file (`claude_code`, `codex`, `gemini_cli`, `cursor`, `copilot_cli`, `vscode`, `opencode`) over what they have in common (`wire`,
//! `common`). Reading is total: JSON that we do not model is [`Reading::Ignored`] with its reason, never an error, because agents
//! add events with every release. What is stored and how belongs to `store`.

mod agent;
mod binary;
mod claude_code;
mod codex;
mod common;
mod copilot_cli;
mod cursor;
mod derived;
mod detect;
mod envelope;
mod gemini_cli;
mod happening;
mod lenient;
mod metadata;
mod opencode;
mod output;
mod text;
mod vscode;
mod wire;

#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

pub use agent::{Agent, UnknownAgent};
pub use envelope::{Envelope, EnvelopeError};
pub(crate) use gemini_cli::without_context as without_gemini_context;
pub use happening::{Happening, HappeningKind};
pub use metadata::NOT_KEPT;
pub(crate) use output::of_tool as output_of_tool;
pub use text::{
    Capped, MAX_FILE_TEXT_BYTES, MAX_INPUT_STRING_BYTES, MAX_OUTPUT_BYTES, MAX_PROMPT_BYTES, MAX_WHOLE_OUTPUT_BYTES,
};
pub(crate) use text::{bounded_id, cap_input, without_lone_surrogates, without_nul};
use wire::Wire;

use crate::access::Who;
use crate::ids::BackfillRunId;
use crate::project::Checkout;

/// One event as we keep it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Stable over every path that the same event can take to us.
    pub id: Uuid,
    pub agent: Agent,
    /// Whose agent it was.
    pub who: Who,
    /// The session's id as the agent names it; a person's as [`Who::own`] names it.
    pub session: String,
    pub occurred_at: DateTime<Utc>,
    pub checkout: Checkout,
    pub transcript_path: Option<String>,
    /// The model in use, where the agent says it.
    pub model: Option<String>,
    pub origin: Origin,
    pub kind: EventKind,
}

/// Who told us of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The agent's hook, while it happened.
    Hook,
    /// The agent's own record of the session, afterwards; `run` is the backfill that read it, if a person started one.
    Transcript { run: Option<BackfillRunId> },
}

impl Origin {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Transcript { .. } => "transcript",
        }
    }

    pub const fn run(self) -> Option<BackfillRunId> {
        match self {
            Self::Hook => None,
            Self::Transcript { run } => run,
        }
    }
}

/// What names a prompt or a call within its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// The agent's own id: hook and transcript agree on it.
    Given(String),
    /// Made by us, since the agent's hook sends none: the same event gets the same key again, but its transcript has another.
    Derived(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    SessionStarted {
        source: Option<String>,
    },
    PromptSubmitted {
        key: Key,
        prompt: Capped,
        source: Option<String>,
    },
    ToolCalled(Box<ToolCall>),
    /// The assistant's closing answer to a prompt: to the session's latest one, where the agent does not name it.
    TurnEnded {
        prompt_id: Option<String>,
        answer: Capped,
    },
    SessionEnded {
        reason: Option<String>,
    },
    Happened(Box<Happening>),
}

/// A tool call that ran, whether it worked or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub key: Key,
    /// The agent's id of the prompt that this call served; without one it served the session's latest.
    pub prompt_id: Option<String>,
    pub tool_name: String,
    pub input: Value,
    pub output_preview: Option<String>,
    /// The output as far as it is kept, where the preview does not hold all of it.
    pub output: Option<String>,
    pub outcome: Outcome,
    pub duration_ms: Option<i64>,
    pub subagent: Option<Subagent>,
    pub commit_sha: Option<String>,
    /// The size of the largest text that did not fit, in bytes, if one was cut.
    pub truncated_at_bytes: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Succeeded,
    Failed {
        error: String,
    },
    /// The agent's hook does not say; taken for a success until its transcript says otherwise.
    Assumed,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Subagent {
    pub id: String,
    pub kind: Option<String>,
}

/// A call that an agent is about to make. It is not kept: the call is told when it has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Upcoming {
    pub agent: Agent,
    pub who: Who,
    pub session: String,
    pub occurred_at: DateTime<Utc>,
    pub checkout: Checkout,
    pub tool_use_id: Option<String>,
    pub tool_name: String,
    pub input: Value,
}

impl Event {
    /// As that one's, who sent it. The session is theirs whatever it is called, so that nobody writes into another's by knowing its
    /// id. A person's transcript lies on their own machine: what lies here under its path is somebody else's, and is not read.
    pub fn belong_to(&mut self, who: Who) {
        self.who = who;
        if who != Who::Operator {
            self.session = who.own(&self.session);
            self.transcript_path = None;
        }
    }
}

impl Upcoming {
    /// See [`Event::belong_to`].
    pub fn belong_to(&mut self, who: Who) {
        self.who = who;
        self.session = who.own(&self.session);
    }
}

/// What reading an envelope came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Kept(Box<Event>),
    /// Nothing to be kept; the agent waits to hear whether something speaks against it.
    AboutToRun(Box<Upcoming>),
    /// Well-formed, and nothing that we keep.
    Ignored {
        event: String,
        reason: &'static str,
    },
}

impl Reading {
    /// As that one's, who sent it.
    #[must_use]
    pub fn of(mut self, who: Who) -> Self {
        match &mut self {
            Self::Kept(event) => event.belong_to(who),
            Self::AboutToRun(upcoming) => upcoming.belong_to(who),
            Self::Ignored { .. } => {}
        }
        self
    }
}

/// Reads one event, whoever sent it.
pub fn read(envelope: Envelope) -> Reading {
    let agent = detect::sender(&envelope);
    let mut wire = match Wire::open(envelope, agent) {
        Ok(wire) => wire,
        Err(ignored) => return ignored,
    };
    if wire.is_about_to_run() {
        return wire.upcoming();
    }
    let kind = match agent {
        Agent::ClaudeCode | Agent::Custom => claude_code::read(&mut wire),
        Agent::Codex => codex::read(&mut wire),
        Agent::GeminiCli => gemini_cli::read(&mut wire),
        Agent::Cursor => cursor::read(&mut wire),
        Agent::CopilotCli => copilot_cli::read(&mut wire),
        Agent::VsCode => vscode::read(&mut wire),
        Agent::OpenCode => opencode::read(&mut wire),
    };
    match kind {
        Ok(kind) => Reading::Kept(Box::new(wire.close(kind))),
        Err(reason) => wire.ignored(reason),
    }
}
