//! Claude Code's hook events (written against 2.1.332), read leniently: what a newer client adds or changes must not lose
//! the rest of the event.

use serde_json::Value;

use super::text::{Capped, MAX_OUTPUT_BYTES, MAX_PROMPT_BYTES, cap_input};
use super::{Envelope, Event, EventKind, Key, Origin, Outcome, Reading, Subagent, ToolCall, lenient, output};
use crate::project::Checkout;

pub(super) fn read(envelope: Envelope) -> Reading {
    let name = lenient::string(&envelope.payload, "hook_event_name").or_else(|| envelope.event.clone());
    let Some(name) = name else { return ignored("", "no event name") };
    let Some(session) = lenient::id(&envelope.payload, "session_id") else {
        return ignored(&name, "no session id");
    };

    let Envelope { event_id, agent, occurred_at, cwd, git, mut payload, .. } = envelope;
    let payload = &mut payload;
    let fallback_id = event_id.to_string();
    let kind = match name.as_str() {
        "SessionStart" => EventKind::SessionStarted { source: lenient::string(payload, "source") },
        "UserPromptSubmit" => match lenient::string(payload, "prompt") {
            Some(prompt) => EventKind::PromptSubmitted {
                key: key(payload, "prompt_id", fallback_id),
                prompt: Capped::new(&prompt, MAX_PROMPT_BYTES),
                source: lenient::string(payload, "source"),
            },
            None => return ignored(&name, "no prompt"),
        },
        "PostToolUse" => match tool_call(payload, fallback_id, Outcome::Succeeded) {
            Some(call) => EventKind::ToolCalled(Box::new(call)),
            None => return ignored(&name, "no tool name"),
        },
        "PostToolUseFailure" => {
            let error = lenient::string(payload, "error").unwrap_or_else(|| "the tool failed without a message".into());
            let error = Capped::new(&error, MAX_OUTPUT_BYTES).text;
            match tool_call(payload, fallback_id, Outcome::Failed { error }) {
                Some(call) => EventKind::ToolCalled(Box::new(call)),
                None => return ignored(&name, "no tool name"),
            }
        }
        "Stop" => {
            let answer = lenient::string(payload, "last_assistant_message");
            match answer {
                Some(answer) => EventKind::TurnEnded {
                    prompt_id: lenient::id(payload, "prompt_id"),
                    answer: Capped::new(&answer, MAX_PROMPT_BYTES),
                },
                None => return ignored(&name, "no answer"),
            }
        }
        "SessionEnd" => EventKind::SessionEnded { reason: lenient::string(payload, "reason") },
        _ => return ignored(&name, "not an event that is kept"),
    };

    let folder = lenient::string(payload, "cwd").or(cwd);
    let transcript_path = lenient::string(payload, "transcript_path");
    let model = lenient::string(payload, "model");
    let checkout = Checkout { folder, git };
    let origin = Origin::Hook;
    Reading::Kept(Box::new(Event {
        id: event_id,
        agent,
        session,
        occurred_at,
        checkout,
        transcript_path,
        model,
        origin,
        kind,
    }))
}

fn key(payload: &Value, member: &str, fallback_id: String) -> Key {
    lenient::id(payload, member).map_or(Key::Derived(fallback_id), Key::Given)
}

fn ignored(event: &str, reason: &'static str) -> Reading {
    Reading::Ignored { event: event.to_owned(), reason }
}

fn tool_call(payload: &mut Value, fallback_id: String, outcome: Outcome) -> Option<ToolCall> {
    let tool_name = lenient::id(payload, "tool_name")?;
    let mut input = lenient::take(payload, "tool_input").unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let input_cut = cap_input(&mut input);
    let response = lenient::take(payload, "tool_response").unwrap_or_default();
    let output = output::preview(&response);
    let output_cut = output.as_ref().and_then(|capped| capped.truncated_at_bytes);
    Some(ToolCall {
        key: key(payload, "tool_use_id", fallback_id),
        prompt_id: lenient::id(payload, "prompt_id"),
        tool_name,
        input,
        output_preview: output.map(|capped| capped.text),
        output: None,
        outcome,
        duration_ms: lenient::integer(payload, "duration_ms").filter(|ms| *ms >= 0),
        subagent: lenient::id(payload, "agent_id")
            .map(|id| Subagent { id, kind: lenient::string(payload, "agent_type") }),
        commit_sha: response.pointer("/gitOperation/commit/sha").and_then(Value::as_str).map(str::to_owned),
        truncated_at_bytes: input_cut.max(output_cut),
    })
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Agent;
    use super::*;

    fn read_payload(payload: &Value) -> Reading {
        let body = payload.to_string();
        read(Envelope::parse(body.as_bytes(), Some(Agent::ClaudeCode), Utc::now()).unwrap())
    }

    fn kept(payload: &Value) -> EventKind {
        match read_payload(payload) {
            Reading::Kept(event) => event.kind,
            Reading::Ignored { event, reason } => panic!("{event} was ignored: {reason}"),
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
        assert_eq!(reading, Reading::Ignored { event: "TeaBreak".into(), reason: "not an event that is kept" });
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

    proptest! {
        #[test]
        fn never_panics_on_arbitrary_members(
            name in prop::sample::select(vec![
                "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd", "Else",
            ]),
            members in prop::collection::vec((
                prop::sample::select(vec![
                    "session_id", "prompt_id", "prompt", "tool_name", "tool_input", "tool_response", "tool_use_id", "error",
                    "duration_ms", "agent_id", "last_assistant_message", "reason", "model", "cwd",
                ]),
                prop_oneof![
                    Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from),
                    "\\PC{0,20}".prop_map(Value::from), Just(json!([{"text": "x"}])), Just(json!({"stdout": "x\0"})),
                ],
            ), 0..12),
        ) {
            let mut payload = json!({"hook_event_name": name});
            for (member, value) in members {
                payload[member] = value;
            }
            read_payload(&payload);
        }
    }
}
