//! Events of all agents, and what is none: told twice and kept once, answered in the agent's own form, and never with an error of
//! the server's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use memory::event::Agent;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::conversation::Event;
use tests::settings;
use tests::stack::Stack;
use uuid::Uuid;

#[tokio::test]
async fn keeps_an_event_once_that_comes_through_two_registrations_under_the_agent_that_sent_it() -> Result<()> {
    for agent in [Agent::Cursor, Agent::CopilotCli, Agent::VsCode] {
        let stack = Stack::running().await?;
        let events = examples(agent)?;
        for event in &events {
            post_registered(&stack, agent, event).await?;
        }
        let told_once = stack.journal().dump().await?;
        for event in &events {
            post_registered(&stack, Agent::ClaudeCode, event).await?;
        }
        assert_eq!(stack.journal().dump().await?, told_once, "{agent}");

        let sessions = stack.journal().sessions().await?;
        let agents: Vec<_> = sessions.iter().map(|session| session.agent.as_str()).collect();
        assert_eq!(agents, [agent.as_str()]);
        let asked: Vec<_> = stack.journal().prompts().await?.into_iter().filter_map(|row| row.prompt).collect();
        assert_eq!(asked, ["Build it"], "{agent}");
        let calls = stack.journal().tool_calls().await?;
        assert!(!calls.is_empty() && calls.iter().all(|call| call.prompt.as_deref() == Some("Build it")), "{calls:?}");
    }
    Ok(())
}

#[tokio::test]
async fn answers_only_starts_and_prompts_and_in_the_form_that_the_agent_knows() -> Result<()> {
    const ANSWERED: [&str; 4] = ["SessionStart", "sessionStart", "UserPromptSubmit", "BeforeAgent"];
    let stack = Stack::running().await?;
    let mut told = 0;
    for agent in Agent::ALL {
        for event in examples(agent)? {
            let answer = post_registered(&stack, agent, &event).await?;
            let status = answer.status();
            let body = answer.bytes().await?;
            if status == StatusCode::NO_CONTENT {
                assert_eq!(body.len(), 0, "{agent}: {}", event.name);
                continue;
            }
            assert_eq!(status, StatusCode::OK, "{agent}: {}", event.name);
            assert!(ANSWERED.contains(&event.name.as_str()), "{agent}: {}", event.name);
            let printed: Value = serde_json::from_slice(&body)?;
            let context = match agent {
                Agent::Cursor => printed["additional_context"].clone(),
                Agent::CopilotCli => printed["additionalContext"].clone(),
                _ => printed["hookSpecificOutput"]["additionalContext"].clone(),
            };
            assert!(context.as_str().is_some_and(|text| text.starts_with("agent-memory: ")), "{agent}: {printed}");
            assert_eq!(printed.as_object().map(serde_json::Map::len), Some(1), "{agent}: {printed}");
            told += 1;
        }
        for event in examples(agent)?.into_iter().take(3) {
            let outcome = stack.hook_of(agent.as_str(), &event).await?;
            assert_eq!(outcome.stdout, "", "{agent} hears nothing twice: {}", event.name);
        }
    }
    assert!(told > 0, "those that come later are told of those before");
    Ok(())
}

#[tokio::test]
async fn never_answers_arbitrary_json_with_an_error_of_its_own_and_counts_every_body() -> Result<()> {
    const BODIES: usize = 600;
    let stack = Stack::running().await?;
    let bodies = bodies()?;
    let mut runner = TestRunner::deterministic();
    let mut answers = BTreeMap::new();
    for _ in 0..BODIES {
        let (agent, body) = bodies.new_tree(&mut runner).map_err(|reason| anyhow::anyhow!(reason))?.current();
        let answer = stack.post(&format!("/api/hooks/{agent}")).body(body.clone()).send().await?;
        let status = answer.status();
        let is_expected = [StatusCode::OK, StatusCode::NO_CONTENT, StatusCode::BAD_REQUEST].contains(&status);
        assert!(is_expected, "{agent} was answered {status} for {}", String::from_utf8_lossy(&body));
        *answers.entry(status.as_u16()).or_insert(0) += 1;
    }
    assert!([204, 400].iter().all(|status| answers.contains_key(status)), "both answers came: {answers:?}");

    let counted = &stack.stats().await?["events"];
    let count = |name: &str| counted[name].as_u64().unwrap_or_default();
    let ignored: u64 =
        counted["ignored"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
    assert!([count("stored"), ignored, count("malformed")].iter().all(|count| *count > 20), "{counted}");
    let all = count("stored") + count("known") + ignored + count("malformed") + count("asked");
    assert_eq!(all, BODIES as u64, "{counted}");
    Ok(())
}

/// Posts an event as the hook does that was registered for `agent`: in an envelope of its own.
async fn post_registered(stack: &Stack, agent: Agent, event: &Event) -> Result<reqwest::Response> {
    let envelope = json!({
        "envelope": 1, "event_id": Uuid::new_v4(), "agent": agent.as_str(), "event": event.name,
        "occurred_at_us": 1_795_968_338_704_123_i64, "cwd": stack.scratch(), "git": null, "payload": event.payload,
    });
    let answer = stack.post(&format!("/api/hooks/{agent}")).json(&envelope).send().await?;
    answer.error_for_status().with_context(|| format!("posting {}", event.name))
}

/// An example of every event of that agent: those by which its reading is tested.
fn examples(agent: Agent) -> Result<Vec<Event>> {
    let folder = settings::checkout().join("memory/src/event/tests/payloads");
    let file = folder.join(format!("{agent}.jsonl"));
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&file).with_context(|| format!("reading `{}`", file.display()))?;
    text.lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line)?;
            let name = value["event"].as_str().context("an example without a name")?.to_owned();
            Ok(Event { name, payload: value["payload"].take() })
        })
        .collect()
}

/// Bodies for an agent's route: examples with members replaced, alone or in an envelope, whole or cut off, and plain noise.
fn bodies() -> Result<impl Strategy<Value = (Agent, Vec<u8>)>> {
    let mut events = Vec::new();
    for agent in Agent::ALL {
        events.extend(examples(agent)?);
    }
    let payloads = events.iter().filter_map(|event| event.payload.as_object());
    let mut members: BTreeSet<String> = payloads.flat_map(|payload| payload.keys().cloned()).collect();
    members.extend(["envelope", "event_id", "occurred_at_us", "agent"].map(String::from));
    let members: Vec<_> = members.into_iter().collect();

    let replaced = prop::collection::vec((prop::sample::select(members), value()), 0..5);
    let changed = (prop::sample::select(events), replaced).prop_map(|(mut event, replaced)| {
        for (member, value) in replaced {
            event.payload[member] = value;
        }
        event
    });
    let changed = changed.boxed();
    let bare = changed.clone().prop_map(|event| event.json()).boxed();
    let wrapped = (changed, prop::sample::select(&Agent::ALL[..]), any::<i64>(), git()).prop_map(
        |(event, agent, time_us, git)| {
            let envelope = json!({
                "envelope": 1, "event_id": Uuid::new_v4(), "agent": agent.as_str(), "event": event.name,
                "occurred_at_us": time_us.rem_euclid(250_000_000_000_000_000), "cwd": null, "git": git,
                "payload": event.payload,
            });
            envelope.to_string().into_bytes()
        },
    );
    let cut_off = (bare.clone(), any::<prop::sample::Index>()).prop_map(|(mut body, at)| {
        body.truncate(at.index(body.len()));
        body
    });
    let noise = prop_oneof![
        value().prop_map(|value| value.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..100),
        Just(format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500)).into_bytes()),
        Just(br#"{"session_id":"s","hook_event_name":"Stop","duration_ms":1e999}"#.to_vec()),
    ];
    let body = prop_oneof![6 => bare, 3 => wrapped, 1 => cut_off, 1 => noise];
    Ok((prop::sample::select(&Agent::ALL[..]), body))
}

/// A checkout of anything.
fn git() -> impl Strategy<Value = Value> {
    [value(), value(), value(), value(), value()].prop_map(|[root, common_dir, remote_url, branch, head]| {
        json!({"root": root, "common_dir": common_dir, "remote_url": remote_url, "branch": branch, "head": head})
    })
}

/// A value that may stand where another is expected.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        prop::sample::select(vec!["", "\0", "a\0b", "{\"a\": \"\\u0000\"}", "../..", "1", "2026-11-29T17:03:48.790Z"])
            .prop_map(Value::from),
        // Longer than an index takes, and nothing that compression would help.
        "[a-zA-Z0-9]{3000,6000}".prop_map(Value::from),
        "(/[a-zA-Z0-9]{200}){20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[a-zA-Z_\0]{0,12}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
