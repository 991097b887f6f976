//! Cursor's hook events (written against the vendor's pages of 2026), under its own names and those of a Claude registration,
//! which it also runs.
//!
//! The person's address, which every payload carries, is never read.

use serde_json::Value;

use super::common::{About, failed, parsed_object};
use super::wire::{NO_ANSWER, NotKept, TOLD_AFTERWARDS, Wire, not_kept};
use super::{EventKind, HappeningKind, Outcome, lenient};

const TOLD_BY_POST_TOOL_USE: NotKept = "postToolUse tells the same call";

const NOT_KEPT: [(&str, NotKept); 11] = [
    ("BeforeShellExecution", TOLD_AFTERWARDS),
    ("BeforeMCPExecution", TOLD_AFTERWARDS),
    ("BeforeReadFile", TOLD_AFTERWARDS),
    ("AfterShellExecution", TOLD_BY_POST_TOOL_USE),
    ("AfterMCPExecution", TOLD_BY_POST_TOOL_USE),
    ("AfterFileEdit", TOLD_BY_POST_TOOL_USE),
    ("AfterAgentThought", "a thought, not an answer"),
    ("BeforeTabFileRead", "a completion while the person types"),
    ("AfterTabFileEdit", "a completion while the person types"),
    ("Notification", "a message to the person"),
    ("PermissionRequest", "what came of it is told by the call"),
];

pub(super) fn read(wire: &mut Wire) -> Result<EventKind, NotKept> {
    match wire.event().as_str() {
        "SessionStart" => Ok(wire.session_started()),
        "SessionEnd" => {
            Ok(EventKind::SessionEnded { reason: wire.label("reason").or_else(|| wire.label("final_status")) })
        }
        "BeforeSubmitPrompt" | "UserPromptSubmit" => wire.prompt(),
        "PostToolUse" => {
            let output = output(wire);
            let outcome = outcome(&output);
            wire.call(&output, outcome)
        }
        "PostToolUseFailure" => {
            if wire.string("failure_type").as_deref() == Some("permission_denied") {
                return wire.denied_call(wire.string("error_message"));
            }
            let output = output(wire);
            let name = if wire.value("error_message").is_some() { "error_message" } else { "error" };
            wire.failed_call(name, &output)
        }
        "AfterAgentResponse" => wire.turn_ended(wire.string("text")),
        "Stop" => stopped(wire),
        "SubagentStart" => wire.subagent(HappeningKind::SubagentStarted),
        "SubagentStop" => wire.subagent(HappeningKind::SubagentEnded),
        "PreCompact" => {
            let details = wire.members(&["trigger", "context_usage_percent", "context_tokens", "message_count"]);
            Ok(wire.happened(HappeningKind::Compacted, None, About { details, ..About::default() }))
        }
        name => not_kept(&NOT_KEPT, name),
    }
}

/// The answer is told by `afterAgentResponse`; only a turn that broke off is news.
fn stopped(wire: &mut Wire) -> Result<EventKind, NotKept> {
    if let Some(answer) = wire.string("last_assistant_message") {
        return wire.turn_ended(Some(answer));
    }
    if wire.string("status").as_deref() != Some("error") {
        return Err(NO_ANSWER);
    }
    let text = wire.string("error_message").unwrap_or_else(|| "the turn ended with an error".to_owned());
    let about = About { text: Some(text), details: wire.members(&["status", "loop_count"]), subject: None };
    Ok(wire.happened(HappeningKind::TurnFailed, wire.prompt_id(), about))
}

/// A tool's output comes as text, which is often JSON.
fn output(wire: &mut Wire) -> Value {
    match wire.take("tool_output").or_else(|| wire.take("tool_response")).unwrap_or_default() {
        Value::String(text) => parsed_object(&text).unwrap_or(Value::String(text)),
        output => output,
    }
}

/// Failures have an event of their own, but a command that ran and ended badly may be no failure to the client.
fn outcome(output: &Value) -> Outcome {
    match lenient::integer(output, "exit_code") {
        None | Some(0) => Outcome::Succeeded,
        Some(code) => {
            let printed = ["stdout", "stderr", "output"].iter().filter_map(|name| lenient::string(output, name));
            failed(&Value::String(
                [format!("Exit code {code}")].into_iter().chain(printed).collect::<Vec<_>>().join("\n"),
            ))
        }
    }
}
