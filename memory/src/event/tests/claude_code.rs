//! Claude Code's events, one trait a test.

use serde_json::{Value, json};

use super::super::*;
use super::envelope;

fn read_payload(payload: &Value) -> Reading {
    read(envelope(Agent::ClaudeCode, "Registered", payload.clone()))
}

fn kept(payload: &Value) -> EventKind {
    match read_payload(payload) {
        Reading::Kept(event) => event.kind,
        reading => panic!("not kept: {reading:?}"),
    }
}

#[test]
fn keeps_a_failed_call_with_its_error_and_duration() {
    let EventKind::ToolCalled(call) = kept(&json!({
        "session_id": "s", "prompt_id": "p", "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
        "tool_input": {"command": "git push"}, "tool_use_id": "t", "error": "Exit code 1\nno", "duration_ms": 55,
    })) else {
        panic!("not a tool call")
    };
    assert_eq!(call.outcome, Outcome::Failed { error: "Exit code 1\nno".into() });
    assert_eq!((call.duration_ms, call.prompt_id.as_deref()), (Some(55), Some("p")));
}

#[test]
fn keeps_the_commit_that_a_command_made() {
    let EventKind::ToolCalled(call) = kept(&json!({
        "session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "git commit"},
        "tool_use_id": "t", "tool_response": {"stdout": "ok", "gitOperation": {"commit": {"sha": "abc", "kind": "commit"}}},
    })) else {
        panic!("not a tool call")
    };
    assert_eq!(call.commit_sha.as_deref(), Some("abc"));
}

#[test]
fn tells_a_subagents_call_by_its_agent_id() {
    let EventKind::ToolCalled(call) = kept(&json!({
        "session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_use_id": "t",
        "agent_id": "a1", "agent_type": "Explore",
    })) else {
        panic!("not a tool call")
    };
    assert_eq!(call.subagent, Some(Subagent { id: "a1".into(), kind: Some("Explore".into()) }));
}

#[test]
fn ignores_events_it_does_not_know_and_says_which() {
    let reading = read_payload(&json!({"session_id": "s", "hook_event_name": "TeaBreak", "kettle": true}));
    assert_eq!(reading, Reading::Ignored { event: "TeaBreak".into(), reason: "not an event that is known" });
}

#[test]
fn keeps_the_rest_of_an_event_whose_members_changed_type() {
    let EventKind::ToolCalled(call) = kept(&json!({
        "session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": 7,
        "duration_ms": "long", "tool_input": "ls",
    })) else {
        panic!("not a tool call")
    };
    assert_eq!((call.input, call.duration_ms), (json!("ls"), None));
}

#[test]
fn does_not_keep_what_the_clients_own_background_agents_say() {
    for name in ["SubagentStart", "SubagentStop"] {
        let reading =
            read_payload(&json!({"session_id": "s", "hook_event_name": name, "agent_id": "a", "agent_type": "",
                                           "last_assistant_message": "Summary."}));
        assert_eq!(reading, Reading::Ignored { event: name.into(), reason: "a background agent of the client's own" });
    }
}

#[test]
fn keeps_who_said_a_prompt_that_no_person_typed() {
    let EventKind::PromptSubmitted { source, .. } = kept(&json!({
        "session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt_id": "p", "prompt": "tick", "source": "loop_wakeup",
    })) else {
        panic!("not a prompt")
    };
    assert_eq!(source.as_deref(), Some("loop_wakeup"));
}

#[test]
fn keeps_nothing_private_of_what_was_denied() {
    let EventKind::Happened(happening) = kept(&json!({
        "session_id": "s", "hook_event_name": "PermissionDenied", "tool_name": "Bash", "tool_use_id": "t",
        "tool_input": {"command": "echo <private>hidden</private>"}, "reason": "<private>hidden</private>",
    })) else {
        panic!("nothing happened")
    };
    assert!(!format!("{happening:?}").contains("hidden"), "{happening:?}");
    assert_eq!(happening.key, "permission_denied:t");
}
