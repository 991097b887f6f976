//! OpenCode's events as our plugin tells them (written against 1.18.33), shaped like Claude Code's.
//!
//! A command that failed ends like any other call; its exit code stands in the tool's metadata. A subagent is a session of its
//! own, whose prompts have the source `subagent`.

use serde_json::Value;

use super::common::{About, failed};
use super::wire::{NotKept, UNKNOWN, Wire};
use super::{EventKind, HappeningKind, Outcome, lenient};

pub(super) fn read(wire: &mut Wire) -> Result<EventKind, NotKept> {
    match wire.event().as_str() {
        "SessionStart" => Ok(wire.session_started()),
        "SessionEnd" => Ok(wire.session_ended()),
        "UserPromptSubmit" => wire.prompt(),
        "PostToolUse" => {
            let response = wire.take("tool_response").unwrap_or_default();
            let outcome = outcome(&response);
            // The title only says in a few words what the input says.
            let output = response.get("output").cloned().unwrap_or(response);
            wire.call(&output, outcome)
        }
        "PostToolUseFailure" => wire.failed_call("error", &Value::Null),
        "Stop" => wire.turn_ended(wire.string("last_assistant_message")),
        "StopFailure" => {
            let about = About { text: wire.string("error"), details: wire.members(&["error_details"]), subject: None };
            Ok(wire.happened(HappeningKind::TurnFailed, wire.prompt_id(), about))
        }
        _ => Err(UNKNOWN),
    }
}

/// Failed if a command ended with another exit code than 0; tools without one that fail say so in an event of their own.
fn outcome(response: &Value) -> Outcome {
    let metadata = response.get("metadata").unwrap_or(&Value::Null);
    match lenient::integer(metadata, "exit").filter(|code| *code != 0) {
        Some(code) => {
            let output = lenient::string(response, "output").unwrap_or_default();
            failed(&Value::String(format!("Exit code {code}\n{output}").trim_end().to_owned()))
        }
        None => Outcome::Succeeded,
    }
}
