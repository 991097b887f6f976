//! A line of Codex' rollouts, as far as it is read. Written against 0.130 and 0.171; older ones name some things otherwise.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::json::{Flag, Number, Text};

#[derive(Debug, Deserialize)]
pub(in crate::transcripts) struct Line<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow, default)]
    pub(super) payload: Option<&'a RawValue>,
}

/// The payloads of all kinds of lines together: no two use one name for two things.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Payload<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) turn_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    /// The MCP server's part of a tool's name, where it is told apart.
    #[serde(borrow, default)]
    pub(super) namespace: Text<'a>,
    #[serde(borrow, default)]
    pub(super) agent_role: Text<'a>,
    #[serde(borrow, default)]
    pub(super) message: Text<'a>,
    #[serde(borrow, default)]
    pub(super) last_agent_message: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stdout: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stderr: Text<'a>,
    #[serde(borrow, default)]
    pub(super) aggregated_output: Text<'a>,
    #[serde(borrow, default)]
    pub(super) status: Text<'a>,
    #[serde(default)]
    pub(super) success: Option<Flag>,
    #[serde(default)]
    pub(super) exit_code: Number,
    #[serde(borrow, default)]
    pub(super) duration: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) action: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) git: Option<&'a RawValue>,
    #[serde(rename = "internal_chat_message_metadata_passthrough", borrow, default)]
    pub(super) passed_through: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Git<'a> {
    #[serde(borrow, default)]
    pub(super) branch: Text<'a>,
    #[serde(borrow, default)]
    pub(super) commit_hash: Text<'a>,
    #[serde(borrow, default)]
    pub(super) repository_url: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PassedThrough<'a> {
    #[serde(borrow, default)]
    pub(super) turn_id: Text<'a>,
}

/// Seconds and nanoseconds.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Span {
    #[serde(default)]
    pub(super) secs: Number,
    #[serde(default)]
    pub(super) nanos: Number,
}

impl Span {
    pub(super) fn ms(&self) -> Option<i64> {
        let secs = self.secs.0?;
        Some((secs * 1_000.0 + self.nanos.0.unwrap_or_default() / 1_000_000.0).round() as i64)
    }
}
