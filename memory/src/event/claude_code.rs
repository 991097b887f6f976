//! Claude Code's hook events (written against 2.1.332, which knows 34), read leniently: what a newer client adds or changes
//! must not lose the rest of the event.

use super::common::About;
use super::wire::{NotKept, Wire, not_kept};
use super::{EventKind, HappeningKind, Outcome};

const NOT_KEPT: [(&str, NotKept); 20] = [
    ("PostToolBatch", "its calls are told one by one"),
    ("PreSkillShellCommand", "a part of the prompt that it expands"),
    ("PermissionRequest", "what came of it is told by the call or by PermissionDenied"),
    ("PreCompact", "PostCompact tells the summary"),
    ("MessageDisplay", "a part of an answer; the whole is told at the end"),
    ("Notification", "a message to the person"),
    ("TeammateIdle", "a state of the client's, not of the work"),
    ("TaskCreated", "the call that made the task is told"),
    ("TaskCompleted", "the call that closed the task is told"),
    ("Elicitation", "a question of a server's; the call that it served is told"),
    ("ElicitationResult", "an answer to a server; the call that it served is told"),
    ("Setup", "a state of the client's, not of the work"),
    ("ConfigChange", "a setting of the client's"),
    ("InstructionsLoaded", "instructions that lie in the repository"),
    ("PreModelSwitch", "a setting of the client's"),
    ("PostModelSwitch", "a setting of the client's"),
    ("WorktreeCreate", "later events come from the worktree"),
    ("WorktreeRemove", "it holds nothing that was said or done"),
    ("FileChanged", "a change that no call made"),
    ("DirectoryAdded", "a setting of the client's"),
];

pub(super) fn read(wire: &mut Wire) -> Result<EventKind, NotKept> {
    match wire.event().as_str() {
        "SessionStart" => Ok(wire.session_started()),
        "SessionEnd" => Ok(wire.session_ended()),
        "UserPromptSubmit" => wire.prompt(),
        "PostToolUse" => {
            let response = wire.take("tool_response").unwrap_or_default();
            wire.call(&response, Outcome::Succeeded)
        }
        "PostToolUseFailure" => {
            let response = wire.take("tool_response").unwrap_or_default();
            wire.failed_call("error", &response)
        }
        "Stop" => wire.turn_ended(wire.string("last_assistant_message")),
        "SubagentStart" => wire.subagent(HappeningKind::SubagentStarted),
        "SubagentStop" => wire.subagent(HappeningKind::SubagentEnded),
        "PostCompact" => match wire.string("compact_summary") {
            Some(summary) => Ok(wire.compacted(&summary)),
            None => Err("no summary"),
        },
        "UserPromptExpansion" => {
            let about = About {
                subject: wire.id("command_name"),
                text: wire.string("prompt"),
                details: wire.members(&["command_args", "expansion_type", "command_source"]),
            };
            Ok(wire.happened(HappeningKind::PromptExpanded, wire.prompt_id(), about))
        }
        "StopFailure" => {
            let about = About {
                text: wire.string("error"),
                details: wire.members(&["error_details", "last_assistant_message"]),
                subject: None,
            };
            Ok(wire.happened(HappeningKind::TurnFailed, wire.prompt_id(), about))
        }
        "CwdChanged" => {
            let about = About { subject: wire.id("new_cwd"), details: wire.members(&["old_cwd"]), text: None };
            Ok(wire.happened(HappeningKind::FolderChanged, None, about))
        }
        "PermissionDenied" => wire.denied_call(wire.string("reason")),
        name => not_kept(&NOT_KEPT, name),
    }
}
