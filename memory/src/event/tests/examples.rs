//! At least one payload of every event of every agent, written from the agents' documentation and their own type definitions,
//! with what is kept of it as a snapshot.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::wire::UNKNOWN;
use super::super::*;
use super::{envelope, summary};

/// Each line of a file of payloads: the event's registered name and the payload.
pub(super) fn payloads(agent: Agent) -> Vec<(String, Value)> {
    let lines = match agent {
        Agent::ClaudeCode => include_str!("payloads/claude-code.jsonl"),
        Agent::Codex => include_str!("payloads/codex.jsonl"),
        Agent::GeminiCli => include_str!("payloads/gemini-cli.jsonl"),
        Agent::Cursor => include_str!("payloads/cursor.jsonl"),
        Agent::CopilotCli => include_str!("payloads/copilot-cli.jsonl"),
        Agent::VsCode => include_str!("payloads/vscode.jsonl"),
        Agent::OpenCode => include_str!("payloads/opencode.jsonl"),
        Agent::Custom => include_str!("payloads/custom.jsonl"),
    };
    let read = |line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        (value["event"].as_str().unwrap().to_owned(), value["payload"].take())
    };
    lines.lines().map(read).collect()
}

/// The events that each agent says it has.
fn events(agent: Agent) -> Vec<&'static str> {
    let names = match agent {
        Agent::ClaudeCode => {
            "PreToolUse PostToolUse PostToolUseFailure PostToolBatch Notification UserPromptSubmit UserPromptExpansion \
             SessionStart SessionEnd Stop StopFailure SubagentStart SubagentStop PreCompact PostCompact PreModelSwitch \
             PostModelSwitch PermissionRequest PermissionDenied Setup TeammateIdle TaskCreated TaskCompleted Elicitation \
             ElicitationResult ConfigChange WorktreeCreate WorktreeRemove InstructionsLoaded CwdChanged FileChanged \
             DirectoryAdded MessageDisplay PreSkillShellCommand"
        }
        Agent::Codex => {
            "PreToolUse PermissionRequest PostToolUse PreCompact PostCompact SessionStart SessionEnd UserPromptSubmit \
             SubagentStart SubagentStop Stop Interrupt"
        }
        Agent::GeminiCli => {
            "SessionStart SessionEnd BeforeAgent AfterAgent BeforeModel AfterModel BeforeToolSelection BeforeTool AfterTool \
             PreCompress Notification"
        }
        Agent::Cursor => {
            "sessionStart sessionEnd beforeSubmitPrompt preToolUse postToolUse postToolUseFailure subagentStart subagentStop \
             beforeShellExecution afterShellExecution beforeMCPExecution afterMCPExecution beforeReadFile afterFileEdit \
             afterAgentResponse afterAgentThought preCompact stop beforeTabFileRead afterTabFileEdit"
        }
        Agent::CopilotCli => {
            "sessionStart sessionEnd userPromptSubmitted userPromptTransformed preToolUse postToolUse postToolUseFailure \
             permissionRequest agentStop subagentStart subagentStop preCompact notification errorOccurred"
        }
        Agent::VsCode => {
            "SessionStart UserPromptSubmit PreToolUse PostToolUse PreCompact SubagentStart SubagentStop Stop"
        }
        Agent::OpenCode => "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure Stop StopFailure SessionEnd",
        Agent::Custom => "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure Stop SessionEnd",
    };
    names.split_ascii_whitespace().collect()
}

#[test]
fn keeps_of_every_event_what_the_snapshot_says() {
    for agent in Agent::ALL {
        let mut lines = String::new();
        for (event, payload) in payloads(agent) {
            let _ = writeln!(lines, "{event}: {}", summary(&read(envelope(agent, &event, payload))));
        }
        insta::assert_snapshot!(agent.as_str(), lines);
    }
}

#[test]
fn knows_every_event_that_an_agent_has_and_has_an_example_of_it() {
    for agent in Agent::ALL {
        let payloads = payloads(agent);
        for event in events(agent) {
            let examples = payloads.iter().filter(|(name, _)| name == event).collect::<Vec<_>>();
            assert!(!examples.is_empty(), "{agent} has no example of {event}");
            for (_, payload) in examples {
                let reading = read(envelope(agent, event, payload.clone()));
                let is_known = !matches!(reading, Reading::Ignored { reason, .. } if reason == UNKNOWN);
                assert!(is_known, "{agent}'s {event} is not known");
            }
        }
    }
    assert_eq!(events(Agent::ClaudeCode).len(), 34);
}

#[test]
fn keeps_no_address_of_the_person() {
    for (event, payload) in payloads(Agent::Cursor) {
        let reading = read(envelope(Agent::Cursor, &event, payload));
        assert!(!format!("{reading:?}").contains("dev@example.com"), "{reading:?}");
    }
}
