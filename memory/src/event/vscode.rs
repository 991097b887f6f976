//! VS Code's hook events (written against the vendor's pages of July 2026): common members in camel case, the rest in snake
//! case.
//!
//! Calls have ids, prompts have none. There is no event for a failed call and nothing in a call's text that says it, so its outcome
//! is assumed.

use super::common::About;
use super::wire::{NotKept, UNKNOWN, Wire};
use super::{EventKind, HappeningKind, Outcome};

pub(super) fn read(wire: &mut Wire) -> Result<EventKind, NotKept> {
    match wire.event().as_str() {
        "SessionStart" => Ok(wire.session_started()),
        "UserPromptSubmit" => wire.prompt(),
        "PostToolUse" => {
            let response = wire.take("tool_response").unwrap_or_default();
            wire.call(&response, Outcome::Assumed)
        }
        "Stop" => wire.turn_ended(wire.string("last_assistant_message")),
        "SubagentStart" => wire.subagent(HappeningKind::SubagentStarted),
        "SubagentStop" => wire.subagent(HappeningKind::SubagentEnded),
        "PreCompact" => {
            let about = About { details: wire.members(&["trigger"]), ..About::default() };
            Ok(wire.happened(HappeningKind::Compacted, None, about))
        }
        _ => Err(UNKNOWN),
    }
}
