//! Codex CLI's hook events (written against 0.171.0).
//!
//! A hook is not told whether a call worked: that stands only in the rollout, so a call's outcome is assumed until that is read.
//! Only the result of an MCP tool may say it itself, by that protocol's own member.

use serde_json::Value;

use super::common::failed;
use super::wire::{NotKept, Wire, not_kept};
use super::{EventKind, HappeningKind, Outcome};

const NOT_KEPT: [(&str, NotKept); 3] = [
    ("PermissionRequest", "what came of it is told by the call"),
    ("PreCompact", "it says nothing about what was said"),
    ("Interrupt", "it ends no call and gives no answer"),
];

pub(super) fn read(wire: &mut Wire) -> Result<EventKind, NotKept> {
    match wire.event().as_str() {
        "SessionStart" => Ok(wire.session_started()),
        "SessionEnd" => Ok(wire.session_ended()),
        "UserPromptSubmit" => wire.prompt(),
        "PostToolUse" => {
            let response = wire.take("tool_response").unwrap_or_default();
            let outcome = outcome(&response);
            wire.call(&response, outcome)
        }
        "Stop" => wire.turn_ended(wire.string("last_assistant_message")),
        "SubagentStart" => wire.subagent(HappeningKind::SubagentStarted),
        "SubagentStop" => wire.subagent(HappeningKind::SubagentEnded),
        // A row without the summary would stand beside the one that the rollout gives.
        "PostCompact" => match wire.string("compact_summary") {
            Some(summary) => Ok(wire.compacted(&summary)),
            None => Err("it tells no summary, the rollout does"),
        },
        name => not_kept(&NOT_KEPT, name),
    }
}

/// What the result of an MCP tool says of itself (`isError` of a `CallToolResult`); nothing else says anything.
fn outcome(response: &Value) -> Outcome {
    let is_result = response.get("content").is_some_and(Value::is_array);
    match response.get("isError").and_then(Value::as_bool).filter(|_| is_result) {
        Some(true) => {
            let texts = response["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            failed(&Value::String(texts.collect::<Vec<_>>().join("\n")))
        }
        Some(false) => Outcome::Succeeded,
        None => Outcome::Assumed,
    }
}
