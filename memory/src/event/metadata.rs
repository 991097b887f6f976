//! What is left of an event when the disk has no room for its content: that it happened, when, in which session, by which tool,
//! how it ended, and how large it was.

use serde_json::{Map, Value};

use super::{Capped, Event, EventKind, Outcome};

/// Stands where a text was that there was no room for.
pub const NOT_KEPT: &str = "‹not kept: the disk's ceiling was reached›";

impl Event {
    /// Takes the content out. Done twice it changes nothing more.
    pub fn reduce_to_metadata(&mut self) {
        match &mut self.kind {
            EventKind::PromptSubmitted { prompt, .. } => reduce(prompt),
            EventKind::TurnEnded { answer, .. } => reduce(answer),
            EventKind::ToolCalled(call) => {
                let input = std::mem::replace(&mut call.input, Value::Object(Map::new())).to_string();
                let output =
                    [call.output_preview.take(), call.output.take()].into_iter().flatten().map(|text| text.len());
                let largest = [Some(input.len()).filter(|bytes| *bytes > "{}".len()), output.max()];
                call.truncated_at_bytes =
                    call.truncated_at_bytes.max(largest.into_iter().flatten().max().map(|bytes| bytes as i64));
                if let Outcome::Failed { error } = &mut call.outcome {
                    NOT_KEPT.clone_into(error);
                }
            }
            EventKind::Happened(happening) => {
                happening.text.iter_mut().for_each(reduce);
                happening.details = Value::Object(Map::new());
            }
            EventKind::SessionStarted { .. } | EventKind::SessionEnded { .. } => {}
        }
    }
}

fn reduce(text: &mut Capped) {
    if text.text == NOT_KEPT {
        return;
    }
    let size_bytes = text.truncated_at_bytes.unwrap_or(text.text.len() as i64);
    *text = Capped { text: NOT_KEPT.to_owned(), truncated_at_bytes: Some(size_bytes) };
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::json;

    use super::super::{Agent, Envelope, Reading, read};
    use super::*;

    fn event(payload: &Value) -> Event {
        let body = payload.to_string();
        let envelope = Envelope::parse(body.as_bytes(), Some(Agent::ClaudeCode), Utc::now()).unwrap();
        let Reading::Kept(event) = read(envelope) else { panic!("not kept") };
        *event
    }

    #[test]
    fn keeps_of_a_call_what_it_was_and_how_large() {
        let mut event = event(&json!({
            "session_id": "s", "prompt_id": "p", "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
            "tool_input": {"command": "cat secret-plan"}, "tool_use_id": "t", "error": "secret-plan: no", "duration_ms": 5,
        }));
        event.reduce_to_metadata();
        let EventKind::ToolCalled(call) = &event.kind else { panic!("not a call") };
        assert_eq!((call.tool_name.as_str(), call.duration_ms, &call.input), ("Bash", Some(5), &json!({})));
        assert_eq!(call.truncated_at_bytes, Some(r#"{"command":"cat secret-plan"}"#.len() as i64));
        assert!(!format!("{event:?}").contains("secret-plan"), "{event:?}");
        let once = event.clone();
        event.reduce_to_metadata();
        assert_eq!(event, once);
    }

    #[test]
    fn keeps_of_a_prompt_that_there_was_one() {
        let mut event = event(
            &json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Do it", "prompt_id": "p"}),
        );
        event.reduce_to_metadata();
        let EventKind::PromptSubmitted { prompt, .. } = event.kind else { panic!("not a prompt") };
        assert_eq!((prompt.text.as_str(), prompt.truncated_at_bytes), (NOT_KEPT, Some(5)));
    }
}
