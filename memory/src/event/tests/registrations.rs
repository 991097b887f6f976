//! One event through two registrations is one event: the same agent, session and key.

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::*;
use super::{envelope, examples};

fn kept(named: Agent, event: &str, payload: &Value, event_id: u128) -> Event {
    let envelope = Envelope { event_id: Uuid::from_u128(event_id), ..envelope(named, event, payload.clone()) };
    match read(envelope) {
        Reading::Kept(event) => *event,
        reading => panic!("{payload} was not kept: {reading:?}"),
    }
}

/// What the journal tells one event of a session from another by.
fn key(event: &Event) -> (Agent, &str, Option<String>) {
    let key = match &event.kind {
        EventKind::PromptSubmitted { key, .. } => Some(format!("{key:?} {}", event.id)),
        EventKind::ToolCalled(call) => Some(format!("{:?}", call.key)),
        EventKind::Happened(happening) => Some(happening.key.clone()),
        EventKind::SessionStarted { .. } | EventKind::TurnEnded { .. } | EventKind::SessionEnded { .. } => None,
    };
    (event.agent, &event.session, key)
}

#[test]
fn gives_an_event_the_same_key_through_its_agents_and_through_claudes_registration() {
    for agent in [Agent::Cursor, Agent::CopilotCli, Agent::VsCode] {
        let mut compared = 0;
        for (event, payload) in examples::payloads(agent) {
            if let Reading::Kept(_) = read(envelope(agent, &event, payload.clone())) {
                let own = kept(agent, &event, &payload, 1);
                let through_claude = kept(Agent::ClaudeCode, &event, &payload, 2);
                // A subagent's start or a compaction that nothing names is told apart by its time alone.
                assert_eq!(key(&own), key(&through_claude), "{event}");
                compared += 1;
            }
        }
        assert!(compared > 5, "{agent}");
    }
}

#[test]
fn gives_both_of_copilots_forms_of_an_event_the_same_key() {
    let camel = json!({"sessionId": "s", "timestamp": 1_795_971_828_790_i64, "cwd": "/w", "toolName": "bash",
                       "toolArgs": "{\"description\": \"Build\", \"command\": \"make\"}",
                       "toolResult": {"resultType": "success", "textResultForLlm": "built"}});
    let snake = json!({"hook_event_name": "PostToolUse", "session_id": "s", "timestamp": "2026-11-29T17:03:48.790Z",
                       "cwd": "/w", "tool_name": "Bash", "tool_input": {"command": "make", "description": "Build"},
                       "tool_result": {"result_type": "success", "text_result_for_llm": "built"}});
    let one = kept(Agent::CopilotCli, "postToolUse", &camel, 1);
    let two = kept(Agent::ClaudeCode, "PostToolUse", &snake, 2);
    assert_eq!(key(&one), key(&two));

    let later = |mut payload: Value| {
        payload["timestamp"] = json!(1_795_971_828_791_i64);
        payload
    };
    assert_ne!(key(&one), key(&kept(Agent::CopilotCli, "postToolUse", &later(camel), 1)), "the same call again");
}

#[test]
fn tells_events_apart_by_the_envelope_where_the_payload_has_no_time() {
    let payload =
        json!({"hook_event_name": "AfterTool", "session_id": "s", "tool_name": "read_file", "tool_input": {}});
    let read = |event_id| kept(Agent::GeminiCli, "AfterTool", &payload, event_id);
    assert_eq!(key(&read(1)), key(&read(1)));
    assert_ne!(key(&read(1)), key(&read(2)));
}

#[test]
fn does_not_lose_the_events_of_agents_that_share_a_session_id() {
    let payload = json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "Done."});
    let agents = [Agent::ClaudeCode, Agent::Codex].map(|agent| kept(agent, "Stop", &payload, 1).agent);
    assert_eq!(agents, [Agent::ClaudeCode, Agent::Codex]);
}
