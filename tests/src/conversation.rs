//! Invents the events of a Claude Code session, in the shapes that the real client was seen to send.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uuid::Uuid;

/// One hook event: its name and the agent's own JSON.
#[derive(Debug, Clone)]
pub struct Event {
    pub name: String,
    pub payload: Value,
}

impl Event {
    pub fn json(&self) -> Vec<u8> {
        self.payload.to_string().into_bytes()
    }
}

/// A session under way: knows its id, its folder and the prompt that the next calls belong to.
#[derive(Debug)]
pub struct Conversation {
    pub session_id: String,
    pub folder: PathBuf,
    pub prompt_id: String,
}

/// A tool call that has ended, well or not.
#[derive(Debug)]
pub struct Call {
    pub tool: &'static str,
    pub input: Value,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub enum Outcome {
    Response(Value),
    Error(String),
}

impl Conversation {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { session_id: Uuid::new_v4().to_string(), folder: folder.into(), prompt_id: Uuid::new_v4().to_string() }
    }

    pub fn starts(&self) -> Event {
        self.event("SessionStart", json!({"source": "startup"}))
    }

    /// A new prompt; what follows belongs to it.
    pub fn asks(&mut self, prompt: &str) -> Event {
        self.prompt_id = Uuid::new_v4().to_string();
        self.event("UserPromptSubmit", json!({"permission_mode": "default", "prompt": prompt}))
    }

    /// A call with an id of its own, which is returned with the event.
    pub fn calls(&self, call: Call) -> (String, Event) {
        let id = format!("toolu_{}", Uuid::new_v4().simple());
        let mut fields = json!({
            "permission_mode": "default", "effort": {"level": "medium"},
            "tool_name": call.tool, "tool_input": call.input, "tool_use_id": id, "duration_ms": 41
        });
        let name = match call.outcome {
            Outcome::Response(response) => {
                fields["tool_response"] = response;
                "PostToolUse"
            }
            Outcome::Error(error) => {
                fields["error"] = Value::String(error);
                fields["is_interrupt"] = Value::Bool(false);
                "PostToolUseFailure"
            }
        };
        (id, self.event(name, fields))
    }

    /// A Bash call that went well.
    pub fn runs(&self, command: &str) -> (String, Event) {
        let response = json!({"stdout": "fine", "stderr": "", "interrupted": false, "isImage": false});
        let input = json!({"command": command, "description": "Run it"});
        self.calls(Call { tool: "Bash", input, outcome: Outcome::Response(response) })
    }

    pub fn stops(&self, last_words: &str) -> Event {
        self.event("Stop", json!({"stop_hook_active": false, "last_assistant_message": last_words}))
    }

    pub fn ends(&self) -> Event {
        self.event("SessionEnd", json!({"reason": "other"}))
    }

    /// Any event, with the fields that all have in common.
    pub fn event(&self, name: &str, fields: Value) -> Event {
        let mut payload = json!({
            "session_id": self.session_id,
            "transcript_path": transcript(&self.folder, &self.session_id),
            "cwd": self.folder,
            "hook_event_name": name,
        });
        if name != "SessionStart" {
            payload["prompt_id"] = Value::String(self.prompt_id.clone());
        }
        if let (Some(payload), Value::Object(fields)) = (payload.as_object_mut(), fields) {
            payload.extend(fields);
        }
        Event { name: name.to_owned(), payload }
    }
}

fn transcript(folder: &Path, session_id: &str) -> PathBuf {
    folder.join(format!("{session_id}.jsonl"))
}
