//! The events that every agent has, in the words of Claude Code's payloads, which most agents took over: how a session, a prompt, a
//! call, an answer and what else happens are read from them.

use serde_json::{Map, Value, json};

use super::text::{Capped, MAX_OUTPUT_BYTES, MAX_PROMPT_BYTES, bounded_id, cap_input};
use super::wire::{NO_ANSWER, NotKept, Wire};
use super::{EventKind, Happening, HappeningKind, Key, Outcome, Subagent, ToolCall, derived, lenient, output};

/// What is told of a happening besides its key and kind.
#[derive(Default)]
pub(super) struct About {
    pub(super) subject: Option<String>,
    pub(super) text: Option<String>,
    pub(super) details: Value,
}

impl Wire {
    pub(super) fn session_started(&self) -> EventKind {
        EventKind::SessionStarted { source: self.label("source") }
    }

    pub(super) fn session_ended(&self) -> EventKind {
        EventKind::SessionEnded { reason: self.label("reason") }
    }

    /// `prompt`, and who said it if it was no person: `source`.
    pub(super) fn prompt(&mut self) -> Result<EventKind, NotKept> {
        let prompt = self.string("prompt").ok_or("no prompt")?;
        // Where the agent's id is taken by another text, the event's own id names the prompt: it must not change either.
        self.event_id = self.derived_id("prompt", &[&prompt]);
        let key = self.prompt_id().map_or_else(|| Key::Derived(self.event_id.to_string()), Key::Given);
        let source = self.label("source");
        Ok(EventKind::PromptSubmitted { key, prompt: Capped::new(&prompt, MAX_PROMPT_BYTES), source })
    }

    /// The assistant's closing words.
    pub(super) fn turn_ended(&self, answer: Option<String>) -> Result<EventKind, NotKept> {
        let answer = Capped::new(&answer.ok_or(NO_ANSWER)?, MAX_PROMPT_BYTES);
        Ok(EventKind::TurnEnded { prompt_id: self.prompt_id(), answer })
    }

    /// A call that has ended: `tool_name`, `tool_input`, and what is known of its end.
    pub(super) fn call(&mut self, response: &Value, outcome: Outcome) -> Result<EventKind, NotKept> {
        let tool_name = self.id("tool_name").ok_or("no tool name")?;
        let mut input = self.tool_input();
        let key = self.id("tool_use_id").map_or_else(
            || {
                let parts = [&*tool_name.to_ascii_lowercase(), &*derived::canonical(&input)];
                Key::Derived(self.derived_id("call", &parts).to_string())
            },
            Key::Given,
        );
        let input_cut = cap_input(&mut input);
        let output = output::of_tool(&tool_name, response);
        let output_cut = output.as_ref().and_then(|output| output.preview.truncated_at_bytes);
        let (output_preview, output) = output.map(|output| (output.preview.text, output.whole)).unzip();
        let (outcome, error_cut) = capped_outcome(outcome);
        let subagent = self.id("agent_id").map(|id| Subagent { id, kind: self.label("agent_type") });
        Ok(EventKind::ToolCalled(Box::new(ToolCall {
            key,
            prompt_id: self.prompt_id(),
            tool_name,
            input,
            output_preview,
            output: output.flatten(),
            outcome,
            duration_ms: self.duration_ms(),
            subagent,
            commit_sha: response.pointer("/gitOperation/commit").and_then(|commit| lenient::id(commit, "sha")),
            truncated_at_bytes: input_cut.max(output_cut).max(error_cut),
        })))
    }

    fn duration_ms(&self) -> Option<i64> {
        let told = ["duration_ms", "duration"].iter().find_map(|name| lenient::integer(&self.payload, name));
        told.filter(|ms| *ms >= 0)
    }

    /// A call that failed, by the words of the member `name`.
    pub(super) fn failed_call(&mut self, name: &str, response: &Value) -> Result<EventKind, NotKept> {
        let error = self.take(name).unwrap_or_default();
        self.call(response, failed(&error))
    }

    /// A call that was not allowed to run, and why.
    pub(super) fn denied_call(&mut self, reason: Option<String>) -> Result<EventKind, NotKept> {
        let subject = Some(self.id("tool_name").ok_or("no tool name")?);
        let details = json!({ "tool_input": self.tool_input() });
        let about = About { subject, text: reason, details };
        Ok(self.happened(HappeningKind::PermissionDenied, self.id("tool_use_id"), about))
    }

    /// What was asked of a tool: JSON, by some agents as text.
    pub(super) fn tool_input(&mut self) -> Value {
        let input = self.take("tool_input").or_else(|| self.take("tool_args"));
        match input.unwrap_or_else(|| Value::Object(Map::new())) {
            Value::String(text) => parsed_object(&text).unwrap_or(Value::String(text)),
            input => input,
        }
    }

    /// Something that has an id of its own; the event's own where `id` is none.
    pub(super) fn happened(&self, kind: HappeningKind, id: Option<String>, about: About) -> EventKind {
        let details = if about.details.is_null() { Value::Object(Map::new()) } else { about.details };
        let id = id.unwrap_or_else(|| {
            let [subject, text] = [&about.subject, &about.text].map(|part| part.as_deref().unwrap_or_default());
            self.derived_id(kind.as_str(), &[subject, text, &derived::canonical(&details)]).to_string()
        });
        self.happened_as(format!("{}:{id}", kind.as_str()), kind, About { details, ..about })
    }

    /// A compaction whose summary is told.
    pub(super) fn compacted(&self, summary: &str) -> EventKind {
        let key = Happening::compaction_key(summary);
        let about = About { text: Some(summary.to_owned()), details: self.members(&["trigger"]), subject: None };
        self.happened_as(key, HappeningKind::Compacted, about)
    }

    /// A subagent's start or end; the client's own background agents, which have an empty type, are nobody's business.
    pub(super) fn subagent(&self, kind: HappeningKind) -> Result<EventKind, NotKept> {
        if self.value("agent_type").and_then(Value::as_str) == Some("") {
            return Err("a background agent of the client's own");
        }
        let id = self.id("agent_id").or_else(|| self.id("subagent_id"));
        let text = ["last_assistant_message", "summary"].iter().find_map(|name| self.string(name));
        let details = self.members(&["agent_type", "subagent_type", "agent_name", "status", "agent_transcript_path"]);
        Ok(self.happened(kind, id.clone(), About { subject: id, text, details }))
    }

    fn happened_as(&self, key: String, kind: HappeningKind, mut about: About) -> EventKind {
        cap_input(&mut about.details);
        EventKind::Happened(Box::new(Happening {
            key: bounded_id(key),
            kind,
            prompt_id: self.prompt_id(),
            subject: about.subject.map(bounded_id),
            text: about.text.map(|text| Capped::new(&text, MAX_PROMPT_BYTES)),
            details: about.details,
        }))
    }
}

/// A failure in the words of the error: a text, or an object with a `message`.
pub(super) fn failed(error: &Value) -> Outcome {
    let message = error.as_str().map(str::to_owned).or_else(|| lenient::string(error, "message"));
    let error = match message {
        Some(message) => message,
        None if error.is_null() => String::new(),
        None => error.to_string(),
    };
    let error = if error.is_empty() { "the tool failed without a message".to_owned() } else { error };
    Outcome::Failed { error }
}

/// Text that is a JSON object.
pub(super) fn parsed_object(text: &str) -> Option<Value> {
    let is_object = text.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(text).ok()).flatten().filter(Value::is_object)
}

fn capped_outcome(outcome: Outcome) -> (Outcome, Option<i64>) {
    match outcome {
        Outcome::Failed { error } => {
            let capped = Capped::new(&error, MAX_OUTPUT_BYTES);
            (Outcome::Failed { error: capped.text }, capped.truncated_at_bytes)
        }
        other => (other, None),
    }
}
