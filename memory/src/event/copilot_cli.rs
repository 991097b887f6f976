//! Copilot CLI's hook events (written against 1.0.102), in both of its forms: camel case for hooks registered under its own
//! names, snake case for those registered under Claude's.
//!
//! Calls have no ids, so their keys are derived from the content and the payload's timestamp.

use serde_json::Value;

use super::common::{About, failed};
use super::wire::{NotKept, TOLD_AFTERWARDS, Wire, not_kept};
use super::{EventKind, HappeningKind, Outcome, lenient};

const NOT_KEPT: [(&str, NotKept); 4] = [
    ("PreToolUse", TOLD_AFTERWARDS),
    ("UserPromptTransformed", "the prompt is told as the person wrote it"),
    ("PermissionRequest", "what came of it is told by the call"),
    ("Notification", "a message to the person"),
];

pub(super) fn read(wire: &mut Wire) -> Result<EventKind, NotKept> {
    match wire.event().as_str() {
        "SessionStart" => Ok(wire.session_started()),
        "SessionEnd" => Ok(wire.session_ended()),
        "UserPromptSubmitted" | "UserPromptSubmit" => wire.prompt(),
        "PostToolUse" => {
            let result = result(wire);
            match result_type(&result).as_str() {
                "denied" | "rejected" => wire.denied_call(text(&result).as_str().map(str::to_owned)),
                "failure" | "error" | "timeout" => {
                    let error = text(&result);
                    wire.call(&error, failed(&error))
                }
                "success" => wire.call(&text(&result), Outcome::Succeeded),
                _ => wire.call(&text(&result), Outcome::Assumed),
            }
        }
        "PostToolUseFailure" => {
            let result = result(wire);
            wire.failed_call("error", &text(&result))
        }
        "AgentStop" | "Stop" => wire.turn_ended(wire.string("last_assistant_message")),
        "SubagentStart" => subagent(wire, HappeningKind::SubagentStarted),
        "SubagentStop" => subagent(wire, HappeningKind::SubagentEnded),
        "PreCompact" => {
            let about = About { details: wire.members(&["trigger"]), ..About::default() };
            Ok(wire.happened(HappeningKind::Compacted, None, about))
        }
        "ErrorOccurred" => {
            let text = match failed(wire.value("error").unwrap_or(&Value::Null)) {
                Outcome::Failed { error } => Some(error),
                Outcome::Succeeded | Outcome::Assumed => None,
            };
            let about = About { text, details: wire.members(&["error_context", "recoverable"]), subject: None };
            Ok(wire.happened(HappeningKind::TurnFailed, None, about))
        }
        name => not_kept(&NOT_KEPT, name),
    }
}

/// Subagents are told by their names; without a time of its own a second one of that name is the same to us.
fn subagent(wire: &mut Wire, kind: HappeningKind) -> Result<EventKind, NotKept> {
    if wire.id("agent_id").is_some() {
        return wire.subagent(kind);
    }
    let details = wire.members(&["agent_display_name", "agent_description", "stop_reason"]);
    let about = About { subject: wire.id("agent_name"), text: wire.string("last_assistant_message"), details };
    Ok(wire.happened(kind, None, about))
}

fn result(wire: &mut Wire) -> Value {
    wire.take("tool_result").or_else(|| wire.take("tool_response")).unwrap_or_default()
}

fn result_type(result: &Value) -> String {
    lenient::string(result, "result_type").unwrap_or_default().to_ascii_lowercase()
}

/// What the model was given of a result, else all of it.
fn text(result: &Value) -> Value {
    lenient::member(result, "text_result_for_llm").unwrap_or(result).clone()
}
