//! What agents send, read into what we keep.
//!
//! `envelope` is our hook program's wrapping, `claude_code` one agent's wire format. Reading is total: JSON that we do not
//! model is [`Reading::Ignored`] with its reason, never an error, because agents add events with every release. What is stored
//! and how belongs to `store`.

mod claude_code;
mod envelope;
mod lenient;
mod output;
mod text;

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

pub use envelope::{Envelope, EnvelopeError};
pub(crate) use text::bounded_id;
pub use text::{Capped, MAX_INPUT_STRING_BYTES, MAX_OUTPUT_BYTES, MAX_PROMPT_BYTES};

use crate::project::Checkout;

/// A coding agent whose events we can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    ClaudeCode,
}

impl Agent {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no agent that is known here: expected `claude-code`")]
pub struct UnknownAgent(String);

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "claude-code" => Ok(Self::ClaudeCode),
            _ => Err(UnknownAgent(text.to_owned())),
        }
    }
}

/// One event as we keep it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Stable over every path that the same event can take to us.
    pub id: Uuid,
    pub agent: Agent,
    /// The session's id as the agent names it.
    pub session: String,
    pub occurred_at: DateTime<Utc>,
    pub checkout: Checkout,
    pub transcript_path: Option<String>,
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    SessionStarted {
        source: Option<String>,
        model: Option<String>,
    },
    PromptSubmitted {
        prompt_id: String,
        prompt: Capped,
        source: Option<String>,
    },
    ToolCalled(Box<ToolCall>),
    /// The assistant's closing answer to a prompt.
    TurnEnded {
        prompt_id: String,
        answer: Capped,
    },
    SessionEnded {
        reason: Option<String>,
    },
}

/// A tool call that ran, whether it worked or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub tool_use_id: String,
    /// The agent's id of the prompt that this call served.
    pub prompt_id: Option<String>,
    pub tool_name: String,
    pub input: Value,
    pub output_preview: Option<String>,
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
    Failed { error: String },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Subagent {
    pub id: String,
    pub kind: Option<String>,
}

/// What reading an envelope came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Kept(Box<Event>),
    /// Well-formed, and nothing that we keep.
    Ignored {
        event: String,
        reason: &'static str,
    },
}

/// Reads one event, whoever sent it.
pub fn read(envelope: Envelope) -> Reading {
    match envelope.agent {
        Agent::ClaudeCode => claude_code::read(envelope),
    }
}
