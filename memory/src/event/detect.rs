//! Who really sent an event. Agents run each other's registrations (Cursor, VS Code and Copilot CLI read Claude Code's settings,
//! VS Code reads Copilot's hooks), and a registration names the agent that it was written for. The payload tells them apart.

use serde_json::Value;

use super::{Agent, Envelope, lenient};

/// Events that only Gemini CLI has: it can copy Claude's registrations, our arguments in them included.
const OF_GEMINI: [&str; 8] = [
    "BeforeAgent",
    "AfterAgent",
    "BeforeTool",
    "AfterTool",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "PreCompress",
];

/// The agent whose payload this is; the one that the registration names unless the payload has another's marks.
pub(super) fn sender(envelope: &Envelope) -> Agent {
    let payload = &envelope.payload;
    match envelope.agent {
        named @ (Agent::ClaudeCode | Agent::Cursor | Agent::CopilotCli | Agent::VsCode) => {
            if is_cursors(payload) {
                Agent::Cursor
            } else if is_vscodes(payload) {
                Agent::VsCode
            } else if is_geminis(payload) {
                Agent::GeminiCli
            } else if is_copilots(payload) {
                Agent::CopilotCli
            } else {
                named
            }
        }
        // Nobody else runs these agents' registrations.
        named @ (Agent::Codex | Agent::GeminiCli | Agent::OpenCode | Agent::Custom) => named,
    }
}

fn is_cursors(payload: &Value) -> bool {
    has(payload, "cursor_version") || (has(payload, "conversation_id") && !has(payload, "prompt_id"))
}

/// The name of the event in camel case, and the time as text.
fn is_vscodes(payload: &Value) -> bool {
    has(payload, "hookEventName") && has(payload, "sessionId") && !payload["timestamp"].is_number()
}

fn is_geminis(payload: &Value) -> bool {
    let event = payload["hook_event_name"].as_str().unwrap_or_default();
    OF_GEMINI.contains(&event) || (has(payload, "timestamp") && transcript(payload).any(|part| part == ".gemini"))
}

/// A time, which Claude Code never sends, and nothing that only Claude Code does.
fn is_copilots(payload: &Value) -> bool {
    if has(payload, "tool_result") || has(payload, "toolResult") || has(payload, "toolArgs") {
        return true;
    }
    let of_claude = ["prompt_id", "permission_mode", "tool_use_id", "tool_response"];
    has(payload, "timestamp") && !of_claude.iter().any(|name| has(payload, name)) && !has_claudes_transcript(payload)
}

/// Claude Code names the transcript after the session.
fn has_claudes_transcript(payload: &Value) -> bool {
    let session = lenient::string(payload, "session_id").unwrap_or_default();
    transcript(payload).last().is_some_and(|file| file.strip_suffix(".jsonl") == Some(&session))
}

/// The parts of the transcript's path, on any system.
fn transcript(payload: &Value) -> impl Iterator<Item = &str> {
    payload["transcript_path"].as_str().unwrap_or_default().split(['/', '\\'])
}

fn has(payload: &Value, name: &str) -> bool {
    payload.get(name).is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::envelope;
    use super::*;

    fn check(expected: Agent, payload: &Value) {
        for named in [Agent::ClaudeCode, expected] {
            let envelope = envelope(named, "PostToolUse", payload.clone());
            assert_eq!(sender(&envelope), expected, "registered for {named}: {payload}");
        }
    }

    #[test]
    fn knows_cursor_by_its_conversation() {
        check(
            Agent::Cursor,
            &json!({"conversation_id": "c", "hook_event_name": "postToolUse", "cursor_version": "3.1"}),
        );
        check(Agent::Cursor, &json!({"conversation_id": "c", "hook_event_name": "PostToolUse", "tool_use_id": "t"}));
    }

    #[test]
    fn knows_vscode_by_its_spelling_also_in_copilots_hooks() {
        let payload = json!({"timestamp": "2026-07-29T10:00:00.000Z", "sessionId": "s", "hookEventName": "PostToolUse",
                             "tool_name": "create_file", "tool_use_id": "t", "tool_response": "ok"});
        check(Agent::VsCode, &payload);
        assert_eq!(sender(&envelope(Agent::CopilotCli, "PostToolUse", payload)), Agent::VsCode);
    }

    #[test]
    fn knows_copilot_by_its_time_and_its_results() {
        check(
            Agent::CopilotCli,
            &json!({"hook_event_name": "PostToolUse", "session_id": "s", "timestamp": "2026-11-29T10:00:00.000Z",
                    "tool_name": "Bash", "tool_result": {"result_type": "success"}}),
        );
        check(Agent::CopilotCli, &json!({"sessionId": "s", "timestamp": 1_795_971_828_790_i64, "toolName": "bash"}));
        check(
            Agent::CopilotCli,
            &json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "p",
                                         "timestamp": "2026-11-29T10:00:00.000Z"}),
        );
    }

    #[test]
    fn knows_gemini_in_a_registration_that_it_copied() {
        let transcript = "/home/dev/.gemini/tmp/proj/chats/session-1.jsonl";
        check(
            Agent::GeminiCli,
            &json!({"hook_event_name": "AfterTool", "session_id": "s", "timestamp": "2026-11-29T10:00:00Z"}),
        );
        check(
            Agent::GeminiCli,
            &json!({"hook_event_name": "SessionStart", "session_id": "s", "transcript_path": transcript,
                                        "timestamp": "2026-11-29T10:00:00Z"}),
        );
    }

    #[test]
    fn leaves_claude_code_what_is_its_own_even_if_it_should_tell_the_time_one_day() {
        let transcript = "/home/dev/.claude/projects/-home-dev/s.jsonl";
        for mut payload in [
            json!({"session_id": "s", "hook_event_name": "SessionStart", "transcript_path": transcript}),
            json!({"session_id": "s", "hook_event_name": "Stop", "prompt_id": "p", "transcript_path": null}),
        ] {
            for _ in 0..2 {
                assert_eq!(sender(&envelope(Agent::ClaudeCode, "Stop", payload.clone())), Agent::ClaudeCode);
                payload["timestamp"] = json!("2026-11-29T10:00:00.000Z");
            }
        }
    }

    #[test]
    fn leaves_codex_its_own_whatever_it_sends() {
        let payload = json!({"session_id": "s", "conversation_id": "c", "timestamp": 1});
        assert_eq!(sender(&envelope(Agent::Codex, "Stop", payload)), Agent::Codex);
    }
}
