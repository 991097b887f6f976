//! Keys for what an agent gives no id to: the same event gets the same key, whichever registration it came through and
//! however often.

use std::fmt::Write as _;

use chrono::DateTime;
use serde_json::Value;
use uuid::Uuid;

use super::{Agent, lenient};

const NAMESPACE: Uuid = Uuid::from_u128(0x6b0c_5c0a_9d1e_4a8e_8f6d_3377_0000_0002);

/// What makes an event the one it is.
pub(super) struct Content<'a> {
    pub(super) agent: Agent,
    pub(super) session: &'a str,
    /// What it is in our words, for an agent may have two names for one event.
    pub(super) role: &'a str,
    /// When it was, as the agent says it: content alone comes again.
    pub(super) moment: &'a str,
    pub(super) parts: &'a [&'a str],
}

impl Content<'_> {
    pub(super) fn id(&self) -> Uuid {
        let mut bytes = Vec::new();
        for part in [self.agent.as_str(), self.session, self.role, self.moment].iter().chain(self.parts) {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Uuid::new_v5(&NAMESPACE, &bytes)
    }
}

/// The payload's own time in milliseconds, or what else changes from one turn to the next.
pub(super) fn moment(payload: &Value) -> Option<String> {
    let written = || DateTime::parse_from_rfc3339(lenient::string(payload, "timestamp")?.trim()).ok();
    let at = written().map(|at| at.timestamp_millis()).or_else(|| lenient::integer(payload, "timestamp"));
    at.map(|at_ms| at_ms.to_string()).or_else(|| lenient::id(payload, "generation_id"))
}

/// JSON in one form, whatever the order of its members.
pub(super) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    push_canonical(&mut out, value);
    out
}

fn push_canonical(out: &mut String, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut sorted = members.iter().collect::<Vec<_>>();
            sorted.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (name, member) in sorted {
                // Writing to a String does not fail.
                let _ = write!(out, "{name:?}:");
                push_canonical(out, member);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                push_canonical(out, item);
                out.push(',');
            }
            out.push(']');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_the_same_moment_in_every_form_of_it() {
        let at = |timestamp: Value| moment(&json!({"timestamp": timestamp}));
        assert_eq!(at(json!("2026-11-29T17:03:48.790Z")), Some("1795971828790".into()));
        assert_eq!(at(json!(1_795_971_828_790_i64)), at(json!("2026-11-29T18:03:48.790+01:00")));
        assert_eq!(at(json!("yesterday")), None);
    }

    #[test]
    fn does_not_care_for_the_order_of_members() {
        let one = json!({"a": [1, {"b": 2, "c": null}], "d": "x"});
        let two: Value = serde_json::from_str(r#"{"d": "x", "a": [1, {"c": null, "b": 2}]}"#).unwrap();
        assert_eq!(canonical(&one), canonical(&two));
        assert_ne!(canonical(&one), canonical(&json!({"a": [1], "d": "x"})));
    }

    #[test]
    fn keeps_apart_what_only_looks_alike_when_it_is_joined() {
        let id = |parts: &[&str]| Content { agent: Agent::Cursor, session: "s", role: "call", moment: "1", parts }.id();
        assert_ne!(id(&["ab", "c"]), id(&["a", "bc"]));
    }
}
