//! One payload while it is read: who sent it, in which session, and its members.
//!
//! The events that every agent has are read by `common`; what an agent calls them, and what else it says, is that agent's file's
//! business.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Agent, Envelope, Event, EventKind, Origin, Reading, Upcoming, cap_input, derived, lenient};
use crate::access::Who;
use crate::project::{Checkout, GitCheckout};

/// Why an event is not kept.
pub(super) type NotKept = &'static str;

/// Reasons that several agents share.
pub(super) const UNKNOWN: NotKept = "not an event that is known";
pub(super) const TOLD_AFTERWARDS: NotKept = "the call is told when it has ended";
pub(super) const NO_ANSWER: NotKept = "no answer";

pub(super) struct Wire {
    agent: Agent,
    /// As the agent wrote it.
    name: String,
    session: String,
    /// Only a prompt replaces the envelope's.
    pub(super) event_id: Uuid,
    occurred_at: DateTime<Utc>,
    cwd: Option<String>,
    git: Option<GitCheckout>,
    pub(super) payload: Value,
}

impl Wire {
    pub(super) fn open(envelope: Envelope, agent: Agent) -> Result<Self, Reading> {
        let Envelope { event_id, event, occurred_at, cwd, git, payload, .. } = envelope;
        let Some(name) = lenient::string(&payload, "hook_event_name").or(event) else {
            return Err(Reading::Ignored { event: String::new(), reason: "no event name" });
        };
        let names: &[&str] = if agent == Agent::Cursor { &["conversation_id", "session_id"] } else { &["session_id"] };
        let Some(session) = names.iter().find_map(|name| lenient::id(&payload, name)) else {
            return Err(Reading::Ignored { event: name, reason: "no session id" });
        };
        Ok(Self { agent, name, session, event_id, occurred_at, cwd, git, payload })
    }

    /// The event's name with a capital first: agents differ in that, and one agent from itself.
    pub(super) fn event(&self) -> String {
        let mut letters = self.name.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    }

    pub(super) fn ignored(self, reason: NotKept) -> Reading {
        Reading::Ignored { event: self.name, reason }
    }

    /// Whether a call has not run yet, and its agent takes an answer. Copilot CLI would deny a call whose hook fails, and OpenCode's plugin
    /// passes nothing on.
    pub(super) fn is_about_to_run(&self) -> bool {
        ["PreToolUse", "BeforeTool"].contains(&&*self.event())
            && !matches!(self.agent, Agent::CopilotCli | Agent::OpenCode)
    }

    pub(super) fn upcoming(mut self) -> Reading {
        let Some(tool_name) = self.id("tool_name") else { return self.ignored("no tool name") };
        let mut input = self.tool_input();
        cap_input(&mut input);
        let tool_use_id = self.id("tool_use_id");
        let folder = self.folder();
        Reading::AboutToRun(Box::new(Upcoming {
            agent: self.agent,
            who: Who::Operator,
            session: self.session,
            occurred_at: self.occurred_at,
            checkout: Checkout { folder, git: self.git },
            tool_use_id,
            tool_name,
            input,
        }))
    }

    /// Where the agent says that it is, else where its hook ran.
    fn folder(&self) -> Option<String> {
        let workspace = || lenient::path_of(lenient::member(&self.payload, "workspace_roots")?.get(0)?);
        lenient::path(&self.payload, "cwd").or_else(workspace).or_else(|| self.cwd.clone())
    }

    pub(super) fn close(self, kind: EventKind) -> Event {
        let folder = self.folder();
        Event {
            id: self.event_id,
            agent: self.agent,
            who: Who::Operator,
            transcript_path: lenient::path(&self.payload, "transcript_path"),
            model: lenient::label(&self.payload, "model"),
            session: self.session,
            occurred_at: self.occurred_at,
            checkout: Checkout { folder, git: self.git },
            origin: Origin::Hook,
            kind,
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        lenient::member(&self.payload, name)
    }

    pub(super) fn string(&self, name: &str) -> Option<String> {
        lenient::string(&self.payload, name)
    }

    pub(super) fn id(&self, name: &str) -> Option<String> {
        lenient::id(&self.payload, name)
    }

    pub(super) fn label(&self, name: &str) -> Option<String> {
        lenient::label(&self.payload, name)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        lenient::take(&mut self.payload, name)
    }

    /// Members of the payload under their names in snake case, as far as they are there.
    pub(super) fn members(&self, names: &[&str]) -> Value {
        let found = names.iter().filter_map(|name| Some(((*name).to_owned(), self.value(name)?.clone())));
        Value::Object(found.collect::<Map<_, _>>())
    }

    /// The agent's id of the prompt that is being worked on, where its hooks have one.
    pub(super) fn prompt_id(&self) -> Option<String> {
        match self.agent {
            Agent::ClaudeCode | Agent::OpenCode | Agent::Custom => self.id("prompt_id"),
            Agent::Codex => self.id("turn_id"),
            Agent::Cursor => self.id("generation_id"),
            Agent::GeminiCli | Agent::CopilotCli | Agent::VsCode => None,
        }
    }

    /// The same for the same event, also through another registration, if its agent says when it was.
    pub(super) fn derived_id(&self, role: &str, parts: &[&str]) -> Uuid {
        let (agent, session) = (self.agent, self.session.as_str());
        match derived::moment(&self.payload) {
            Some(moment) => derived::Content { agent, session, role, moment: &moment, parts }.id(),
            None => self.event_id,
        }
    }
}

/// Why an event of that name is not kept.
pub(super) fn not_kept<T>(known: &[(&str, NotKept)], name: &str) -> Result<T, NotKept> {
    Err(known.iter().find(|(known, _)| *known == name).map_or(UNKNOWN, |(_, reason)| reason))
}
