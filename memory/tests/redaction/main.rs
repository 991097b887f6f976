//! What the redaction takes out and what it leaves: a corpus of secrets, a corpus of what only looks like them, and what must
//! hold of any text.

#[allow(dead_code, unreachable_pub, reason = "the file is a module of `tests`, where others use it")]
#[path = "../../../tests/src/canaries.rs"]
mod canaries;
mod lookalikes;
mod members;
mod properties;

use std::collections::BTreeMap;

use canaries::canaries;
use memory::redact::{clean, clean_json};
use serde_json::{Value, json};

const SEEDS: [u64; 3] = [3, 17, 2026];

#[test]
fn takes_every_secret_out_of_every_text() {
    let mut kept: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for seed in SEEDS {
        let all = canaries(seed);
        assert!(all.len() >= 300, "only {} secrets", all.len());
        for canary in &all {
            let cleaned = clean(&canary.text);
            if cleaned.contains(&canary.secret) || !cleaned.contains("‹redacted:") {
                kept.entry(canary.kind).or_default().push(format!("{seed}: {}\n -> {cleaned}", canary.text));
            }
        }
    }
    assert!(kept.is_empty(), "{} kinds of secrets stay: {kept:#?}", kept.len());
}

#[test]
fn takes_every_secret_out_of_the_input_of_a_tool() {
    for canary in canaries(5) {
        let mut input = json!({
            "command": canary.text, "edits": [{"old_string": "x", "new_string": canary.text}],
            "arguments": {"deep": {"body": json!({"text": canary.text}).to_string()}},
        });
        clean_json(&mut input);
        assert!(!input.to_string().contains(&canary.secret), "{}: {} -> {input:#}", canary.kind, canary.text);
    }
}

#[test]
fn takes_a_secret_out_of_the_name_of_a_member_and_keeps_the_members_apart() {
    let secrets: Vec<_> = canaries(7).into_iter().filter(|canary| canary.kind == "github-token").take(2).collect();
    let mut value = json!({});
    for canary in &secrets {
        value[&canary.secret] = json!(1);
    }
    clean_json(&mut value);
    assert_eq!(value, json!({"‹redacted:github-token›": 1, "‹redacted:github-token› 2": 1}));
}

#[test]
fn names_the_rule_in_the_place_of_the_secret_and_keeps_the_rest() {
    for canary in canaries(11).iter().filter(|canary| canary.kind == "stripe-key") {
        let cleaned = clean(&canary.text);
        assert_eq!(cleaned.replace("‹redacted:stripe-key›", &canary.secret), canary.text);
    }
}

/// The texts of a value, one after the other.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
