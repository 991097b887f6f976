//! Documents, whole, as far as they fit.

use memory::recall::Details;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{FRAME, shortened};
use crate::dates::written;
use crate::withheld;

/// Documents, whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ObservationsReply {
    /// How to take what follows.
    about: &'static str,
    #[schemars(with = "Vec<Observation>")]
    observations: Vec<Value>,
    /// What was less than it should be, and what to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// One document as it was recorded. What does not apply to its kind is left out.
#[derive(Debug, Serialize, JsonSchema)]
struct Observation {
    id: String,
    kind: &'static str,
    /// When it happened, in UTC.
    when: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The agent that worked, such as `claude-code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The agent's own id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    headline: String,
    /// What the user asked: of a prompt itself, or of the prompt that a call served.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// The assistant's closing answer to the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// A call's input, as the tool got it.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    /// What a call gave back.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// Whether a call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<i64>,
    /// A note's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The length of the longest text that had to be cut, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_at_bytes: Option<i64>,
    /// The note that says it now; this one is found no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<String>,
    /// What of this was cut to stay within `max_tokens`, and how much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cut: Vec<String>,
}

impl ObservationsReply {
    pub(crate) fn of(details: Vec<Details>, max_tokens: usize) -> Self {
        let (observations, notes) = shortened(details.into_iter().map(Observation::of), max_tokens);
        Self { about: FRAME, observations, notes }
    }
}

impl Observation {
    fn of(details: Details) -> Self {
        use memory::ids::DocumentKind::{Call, Note, Prompt};
        let Details { line, text, prompt, .. } = details;
        let (prompt, output, text) = match line.id.kind {
            Prompt => (text, None, None),
            Call => (prompt, text, None),
            Note => (None, None, text),
        };
        Self {
            id: line.id.to_string(),
            kind: line.id.kind.as_str(),
            when: written(line.occurred_at),
            project: line.project,
            branch: details.branch,
            agent: details.agent,
            session: details.session,
            headline: line.headline,
            prompt,
            answer: details.answer,
            input: details.input.map(withheld::without_cleaned_files),
            output,
            failed: line.failed,
            error: details.error,
            duration_ms: details.duration_ms,
            text,
            truncated_at_bytes: details.truncated_at_bytes,
            superseded_by: details.superseded_by.map(|id| id.to_string()),
            cut: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use memory::recall::Line;
    use serde_json::json;

    use super::*;

    fn details(id: &str) -> Details {
        Details {
            line: Line {
                id: id.parse().unwrap(),
                occurred_at: "2027-05-01T12:00:00.5Z".parse().unwrap(),
                project: Some("widgets".to_owned()),
                headline: "Bash: cargo test".to_owned(),
                failed: Some(true),
            },
            agent: Some("claude-code".to_owned()),
            session: Some("s".to_owned()),
            branch: None,
            text: Some("the text".to_owned()),
            answer: None,
            prompt: Some("run the tests".to_owned()),
            input: Some(json!({"command": "cargo test"})),
            error: Some("Exit code 1".to_owned()),
            duration_ms: Some(12),
            truncated_at_bytes: None,
            superseded_by: None,
            is_digest: false,
        }
    }

    #[test]
    fn gives_a_call_with_its_input_output_error_and_prompt() {
        let reply = serde_json::to_value(ObservationsReply::of(vec![details("call-1")], 6_000)).unwrap();
        let call = &reply["observations"][0];
        assert_eq!(call["input"], json!({"command": "cargo test"}));
        assert_eq!(call["output"], "the text");
        assert_eq!(call["error"], "Exit code 1");
        assert_eq!(call["prompt"], "run the tests");
        assert_eq!(call["duration_ms"], 12);
        assert!(call.get("text").is_none() && call.get("branch").is_none());
    }

    #[test]
    fn gives_the_text_of_a_prompt_and_of_a_note_under_their_own_names() {
        let reply =
            serde_json::to_value(ObservationsReply::of(vec![details("prompt-1"), details("note-1")], 6_000)).unwrap();
        assert_eq!(reply["observations"][0]["prompt"], "the text");
        assert_eq!(reply["observations"][1]["text"], "the text");
    }

    #[test]
    fn cuts_long_texts_and_says_which() {
        let mut long = details("call-1");
        long.text = Some("x".repeat(50_000));
        let reply = serde_json::to_value(ObservationsReply::of(vec![long, details("call-2")], 1_000)).unwrap();
        let call = &reply["observations"][0];
        assert!(call["output"].as_str().unwrap().len() < 4_000);
        assert_eq!(call["input"], json!({"command": "cargo test"}));
        assert!(call["cut"][0].as_str().unwrap().starts_with("output: "), "{call}");
        assert!(reply["notes"][0].as_str().unwrap().contains("`max_tokens`"));
        assert!(reply["observations"][1].get("cut").is_none());
    }
}
