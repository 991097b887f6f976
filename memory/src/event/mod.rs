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
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

pub use envelope::{Envelope, EnvelopeError};
pub(crate) use output::preview as output_preview;
pub use text::{Capped, MAX_INPUT_STRING_BYTES, MAX_OUTPUT_BYTES, MAX_PROMPT_BYTES};
pub(crate) use text::{bounded_id, cap_input, without_lone_surrogates, without_nul};

use crate::ids::BackfillRunId;
use crate::project::Checkout;

/// A coding agent whose events we can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    ClaudeCode,
    Codex,
    GeminiCli,
    Cursor,
    CopilotCli,
    VsCode,
    OpenCode,
}

impl Agent {
    pub const ALL: [Self; 7] =
        [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::Cursor, Self::CopilotCli, Self::VsCode, Self::OpenCode];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Cursor => "cursor",
            Self::CopilotCli => "copilot-cli",
            Self::VsCode => "vscode",
            Self::OpenCode => "opencode",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no agent that is known here: expected {known}", known = Agent::ALL.map(Agent::as_str).join(", "))]
pub struct UnknownAgent(String);

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|agent| agent.as_str() == text).ok_or_else(|| UnknownAgent(text.to_owned()))
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

/// Something in a session that is no prompt and no call.
#[derive(Debug, Clone, PartialEq)]
pub struct Happening {
    /// The same however we learn of it: `compacted:<digest of the summary>`, `subagent_ended:<agent id>`.
    pub key: String,
    pub kind: HappeningKind,
    pub prompt_id: Option<String>,
    /// What it is about: a subagent's id, a command's name, a folder.
    pub subject: Option<String>,
    /// The summary, the subagent's answer, the error.
    pub text: Option<Capped>,
    pub details: Value,
}

impl Happening {
    /// The key of a compaction with that summary, whose outer white space hook and transcript do not agree on.
    pub fn compaction_key(summary: &str) -> String {
        let digest = Sha256::digest(summary.trim());
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("compacted:{hex}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HappeningKind {
    Compacted,
    SubagentStarted,
    SubagentEnded,
    TurnFailed,
    PromptExpanded,
    FolderChanged,
    PermissionDenied,
    Noticed,
}

impl HappeningKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compacted => "compacted",
            Self::SubagentStarted => "subagent_started",
            Self::SubagentEnded => "subagent_ended",
            Self::TurnFailed => "turn_failed",
            Self::PromptExpanded => "prompt_expanded",
            Self::FolderChanged => "folder_changed",
            Self::PermissionDenied => "permission_denied",
            Self::Noticed => "noticed",
        }
    }
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
        _ => Reading::Ignored {
            event: envelope.event.unwrap_or_default(),
            reason: "its agent's events are not read yet",
        },
    }
}
