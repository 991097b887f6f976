//! The envelope: what our hook program adds around an agent's JSON. `docs/architecture.md` holds the contract.
//!
//! An agent's bare JSON (an agent that posts its hooks by itself) is put into an envelope of our own, so that everything
//! behind this file sees one form.

use std::borrow::Cow;

use chrono::{DateTime, Datelike as _, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::{Agent, UnknownAgent, lenient, text};
use crate::project::{GitCheckout, Instance};

/// The namespace of ids that are derived from an event's bytes.
const BARE_EVENT_NAMESPACE: Uuid = Uuid::from_u128(0x6b0c_5c0a_9d1e_4a8e_8f6d_3377_0000_0001);

#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub event_id: Uuid,
    pub agent: Agent,
    /// The event's name as the hook was registered for it; the payload's own name counts first.
    pub event: Option<String>,
    pub occurred_at: DateTime<Utc>,
    pub cwd: Option<String>,
    pub git: Option<GitCheckout>,
    pub payload: Value,
}

#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    #[error("the body is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("the body is not a JSON object")]
    NotAnObject,
    #[error("the envelope is of version {0}, this program reads version 1")]
    Version(i64),
    #[error("the envelope of `{named}` was sent as one of `{sent_as}`")]
    OtherAgent { named: Agent, sent_as: Agent },
    #[error("the envelope's member `{0}` is missing or not of its type")]
    Member(&'static str),
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
}

impl Envelope {
    /// Reads a request's body or a spool file. `agent` names who posted a bare event, and must agree with an envelope.
    pub fn parse(body: &[u8], agent: Option<Agent>, now: DateTime<Utc>) -> Result<Self, EnvelopeError> {
        let mut value = parse_json(body)?;
        if !value.is_object() {
            return Err(EnvelopeError::NotAnObject);
        }
        if value.get("envelope").is_none() {
            let agent = agent.ok_or(EnvelopeError::Member("envelope"))?;
            return Ok(Self::around_bare(value, body, agent, now));
        }
        match lenient::integer(&value, "envelope") {
            Some(1) => {}
            other => return Err(EnvelopeError::Version(other.unwrap_or_default())),
        }
        let text = |name: &'static str| lenient::string(&value, name).ok_or(EnvelopeError::Member(name));
        let event_id = text("event_id")?.parse().map_err(|_| EnvelopeError::Member("event_id"))?;
        let named: Agent = text("agent")?.parse()?;
        if let Some(sent_as) = agent.filter(|agent| *agent != named) {
            return Err(EnvelopeError::OtherAgent { named, sent_as });
        }
        let occurred_at_us =
            lenient::integer(&value, "occurred_at_us").ok_or(EnvelopeError::Member("occurred_at_us"))?;
        let occurred_at = DateTime::from_timestamp_micros(occurred_at_us)
            .filter(|at| (1970..10_000).contains(&at.year()))
            .ok_or(EnvelopeError::Member("occurred_at_us"))?;
        let event = lenient::string(&value, "event");
        let cwd = lenient::path(&value, "cwd");
        let git = value.get("git").and_then(GitCheckout::from_wire);
        let payload = lenient::take(&mut value, "payload").ok_or(EnvelopeError::Member("payload"))?;
        if !payload.is_object() {
            return Err(EnvelopeError::Member("payload"));
        }
        Ok(Self { event_id, agent: named, event, occurred_at, cwd, git, payload })
    }

    /// The file that holds this envelope in the spool: names sort by the time of their events.
    pub fn spool_name(&self) -> String {
        format!("{:020}-{}.json", self.occurred_at.timestamp_micros(), self.event_id)
    }

    /// The same bytes in the same minute get the same id: that is an agent's retry, while the same words an hour later
    /// are a new event.
    fn around_bare(payload: Value, body: &[u8], agent: Agent, now: DateTime<Utc>) -> Self {
        let minute = (now.timestamp() / 60).to_le_bytes();
        let event_id = Uuid::new_v5(&BARE_EVENT_NAMESPACE, &[&minute, body].concat());
        let cwd = lenient::path(&payload, "cwd");
        Self { event_id, agent, event: None, occurred_at: now, cwd, git: None, payload }
    }
}

impl GitCheckout {
    fn from_wire(git: &Value) -> Option<Self> {
        const MAX_URL_BYTES: usize = 2048;
        let root = lenient::path(git, "root")?;
        let common_dir = lenient::path(git, "common_dir").unwrap_or_else(|| format!("{root}/.git"));
        let remote_url = lenient::string(git, "remote_url").filter(|url| url.len() <= MAX_URL_BYTES);
        let [branch, head] = ["branch", "head"].map(|name| lenient::id(git, name));
        // Later members: an older hook does not know them.
        let is_worktree = git.get("worktree").and_then(Value::as_bool);
        let [created_at_us, inode] = ["created_at_us", "inode"].map(|name| lenient::integer(git, name));
        let instance = Instance { created_at_us, inode };
        Some(Self { root, common_dir, remote_url, branch, head, is_worktree, instance })
    }
}

/// JSON as agents write it: behind a byte-order mark, with bytes that are no UTF-8, or with half an emoji as an escape, which is no
/// JSON to a strict reader. What is broken is replaced, so that the rest of the event is kept.
fn parse_json(body: &[u8]) -> Result<Value, serde_json::Error> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(body).or_else(|error| {
        let readable = String::from_utf8_lossy(body);
        let mended = text::without_lone_surrogates(readable.as_bytes());
        match (mended, readable) {
            (Some(mended), _) => serde_json::from_slice(&mended),
            (None, Cow::Owned(readable)) => serde_json::from_str(&readable),
            (None, Cow::Borrowed(_)) => Err(error),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope() -> Value {
        json!({"envelope": 1, "event_id": "7c9f0f0e-5b52-4c56-9d5a-0d7a3f6a1b11", "agent": "claude-code",
               "event": "Stop", "occurred_at_us": 1_795_968_338_704_123_i64, "cwd": "/w",
               "git": {"root": "/w", "common_dir": "/w/.git", "remote_url": null, "branch": "main", "head": null},
               "payload": {"session_id": "s"}})
    }

    fn parse(value: &Value) -> Result<Envelope, EnvelopeError> {
        Envelope::parse(value.to_string().as_bytes(), None, Utc::now())
    }

    #[test]
    fn reads_every_member() {
        let read = parse(&envelope()).unwrap();
        assert_eq!(read.occurred_at.timestamp_micros(), 1_795_968_338_704_123);
        assert_eq!(read.git.unwrap().branch.as_deref(), Some("main"));
        assert_eq!(read.payload["session_id"], "s");
    }

    #[test]
    fn names_the_member_that_is_missing() {
        for name in ["event_id", "occurred_at_us", "payload"] {
            let mut value = envelope();
            value.as_object_mut().unwrap().remove(name);
            let message = parse(&value).unwrap_err().to_string();
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn gives_the_same_bare_event_the_same_id() {
        let body = br#"{"session_id":"s","hook_event_name":"Stop"}"#;
        let now = DateTime::from_timestamp(1_795_968_300, 0).unwrap();
        let read = |now| Envelope::parse(body, Some(Agent::ClaudeCode), now).unwrap().event_id;
        assert_eq!(read(now), read(now + chrono::TimeDelta::seconds(5)));
        assert_ne!(read(now), read(now + chrono::TimeDelta::hours(1)));
    }

    #[test]
    fn keeps_an_event_in_which_an_emoji_was_cut_in_half() {
        let body = br#"{"session_id":"s","hook_event_name":"Stop","last_assistant_message":"cut \ud83d here, whole \ud83d\ude00"}"#;
        let read = Envelope::parse(body, Some(Agent::ClaudeCode), Utc::now()).unwrap();
        assert_eq!(read.payload["last_assistant_message"], "cut \u{fffd} here, whole \u{1f600}");
    }

    #[test]
    fn keeps_an_event_behind_a_byte_order_mark_or_with_bytes_that_are_no_text() {
        let body = b"\xef\xbb\xbf{\"session_id\": \"s\", \"prompt\": \"gr\xfc\xdfe\"}";
        let read = Envelope::parse(body, Some(Agent::ClaudeCode), Utc::now()).unwrap();
        assert_eq!(read.payload["prompt"], "gr\u{fffd}\u{fffd}e");
    }

    #[test]
    fn refuses_a_time_that_no_clock_shows() {
        for time in [i64::MAX, i64::MIN, -1, 260_000_000_000_000_000] {
            let mut value = envelope();
            value["occurred_at_us"] = json!(time);
            assert!(matches!(parse(&value), Err(EnvelopeError::Member("occurred_at_us"))), "{time}");
        }
    }

    #[test]
    fn keeps_what_is_readable_of_a_checkout() {
        let mut value = envelope();
        value["git"]["branch"] = json!(["main"]);
        let git = parse(&value).unwrap().git.unwrap();
        assert_eq!((git.root.as_str(), git.branch), ("/w", None));
    }

    #[test]
    fn refuses_a_version_it_does_not_know() {
        let mut value = envelope();
        value["envelope"] = json!(2);
        assert!(matches!(parse(&value), Err(EnvelopeError::Version(2))));
    }
}
