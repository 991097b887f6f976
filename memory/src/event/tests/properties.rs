//! Whatever an agent sends: reading never panics, and never keeps a text that the database would refuse.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::*;
use super::{envelope, examples};

/// JSON of any shape, a few levels deep.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        prop::sample::select(vec!["", "\0", "{\"a\": 1}", "{", "2026-11-29T17:03:48.790Z", "55", "Exit Code: x"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[a-zA-Z_\0]{0,12}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A payload of some agent's, with some of its members replaced, and some that others have.
fn payload() -> impl Strategy<Value = (Agent, String, Value)> {
    let examples: Vec<_> = Agent::ALL
        .into_iter()
        .flat_map(|agent| examples::payloads(agent).into_iter().map(move |(event, payload)| (agent, event, payload)))
        .collect();
    let members: Vec<_> = {
        let names = examples.iter().flat_map(|(_, _, payload)| payload.as_object().unwrap().keys().cloned());
        names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    let changes = prop::collection::vec((prop::sample::select(members), json()), 0..6);
    (prop::sample::select(examples), changes).prop_map(|((agent, event, mut payload), changes)| {
        for (member, value) in changes {
            payload[member] = value;
        }
        (agent, event, payload)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn reads_payloads_whose_members_are_anything((agent, event, payload) in payload(), named in prop::sample::select(&Agent::ALL[..])) {
        for named in [agent, named] {
            let reading = read(envelope(named, &event, payload.clone()));
            prop_assert!(!has_nul(&reading), "{reading:?}");
        }
    }

    #[test]
    fn reads_objects_that_are_no_events(payload in json(), agent in prop::sample::select(&Agent::ALL[..])) {
        let body = json!({"payload": payload}).to_string();
        if let Ok(envelope) = Envelope::parse(body.as_bytes(), Some(agent), chrono::Utc::now()) {
            read(envelope);
        }
    }

    #[test]
    fn parses_or_refuses_any_bytes(body in prop::collection::vec(any::<u8>(), 0..200), agent in prop::sample::select(&Agent::ALL[..])) {
        if let Ok(envelope) = Envelope::parse(&body, Some(agent), chrono::Utc::now()) {
            read(envelope);
        }
    }
}

/// Whether the database would be handed a NUL, which it takes in no text. Debug output writes one as `\0`, and a backslash as two.
fn has_nul(reading: &Reading) -> bool {
    format!("{reading:?}").replace("\\\\", "").contains("\\0")
}
