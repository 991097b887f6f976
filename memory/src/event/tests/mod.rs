//! Every event of every agent, read.

mod claude_code;

use chrono::DateTime;
use serde_json::Value;
use uuid::Uuid;

use super::*;

/// An envelope of a hook that was registered for that agent and event.
pub(super) fn envelope(agent: Agent, event: &str, payload: Value) -> Envelope {
    Envelope {
        event_id: Uuid::from_u128(7),
        agent,
        event: Some(event.to_owned()),
        occurred_at: DateTime::from_timestamp(1_795_971_828, 0).unwrap(),
        cwd: Some("/home/dev/widgets".into()),
        git: None,
        payload,
    }
}
