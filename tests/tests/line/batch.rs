//! Events that are committed together leave the journal as if each had come alone.

use anyhow::Result;
use reqwest::StatusCode;
use serde_json::json;
use tests::conversation::{Conversation, Event};
use tests::journal::{Prompt, ToolCall};
use tests::stack::Stack;
use uuid::Uuid;

const START_US: i64 = 1_795_968_338_000_000;

#[tokio::test]
async fn stores_many_events_in_one_commit_as_it_stores_them_one_by_one() -> Result<()> {
    let mut together = Stack::stopped().await?;
    let envelopes = envelopes(&together);
    // All of it lies there when the server starts; the names, not the times, say in which order it came.
    for (number, envelope) in envelopes.iter().enumerate() {
        let name = format!("{number:020}-{}.json", Uuid::new_v4());
        std::fs::write(together.home().spool().join(name), envelope)?;
    }
    together.start_server().await?;
    together.drained().await?;

    let alone = Stack::running().await?;
    for envelope in &envelopes {
        let answer = alone.post("/api/hooks/claude-code").body(envelope.clone()).send().await?;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    }

    let calls = alone.journal().tool_calls().await?;
    assert_eq!(calls.len(), 22, "11 calls a session, one of them told twice");
    assert!(calls.iter().all(|call| call.turn_index.is_some()), "{calls:?}");
    let subindexes: Vec<_> = calls.iter().take(5).map(|call| call.turn_subindex).collect();
    assert_eq!(subindexes, [0, 1, 2, 3, 4].map(Some), "in the order of time, whenever they came");
    assert_eq!(told_calls(together.journal().tool_calls().await?), told_calls(calls));
    assert_eq!(told_prompts(together.journal().prompts().await?), told_prompts(alone.journal().prompts().await?));
    // Which of the two has its row first is free.
    let statuses = |sessions: Vec<tests::journal::Session>| -> std::collections::BTreeSet<_> {
        sessions.into_iter().map(|session| (session.external_id, session.status, session.end_reason)).collect()
    };
    assert_eq!(statuses(together.journal().sessions().await?), statuses(alone.journal().sessions().await?));
    Ok(())
}

/// Two sessions, one after the other in time and event by event in turn. Each has calls before their prompt, one event that is told
/// twice, one that comes late, a second turn, an answer, and an end.
fn envelopes(stack: &Stack) -> Vec<String> {
    let sessions = [0, 1].map(|number| session(stack, START_US + number * 60_000_000));
    let [one, two] = sessions;
    one.into_iter().zip(two).flat_map(<[String; 2]>::from).collect()
}

fn session(stack: &Stack, start_us: i64) -> Vec<String> {
    let mut session = Conversation::new(stack.scratch());
    let prompt = session.asks("Count up");
    let mut calls: Vec<_> = (0..7).map(|number| session.runs(&format!("echo {number}")).1).collect();
    let late = calls.remove(3);
    let answer = session.stops("Counted.");
    let next = session.asks("And down");
    let more: Vec<_> = (0..4).map(|number| session.runs(&format!("echo -{number}")).1).collect();
    let mut events = vec![(2, calls[0].clone()), (3, calls[1].clone()), (1, prompt), (4, calls[2].clone())];
    // The place of the late one in time is free.
    events.extend(calls[3..].iter().zip([6, 7, 8]).map(|(call, second)| (second, call.clone())));
    events.push((4, calls[2].clone()));
    events.push((9, answer));
    events.push((5, late));
    events.push((10, next));
    events.extend(more.into_iter().zip(11..).map(|(call, second)| (second, call)));
    events.push((20, session.ends()));
    events.into_iter().map(|(second, event)| envelope(&event, start_us + second * 1_000_000)).collect()
}

fn envelope(event: &Event, occurred_at_us: i64) -> String {
    json!({
        "envelope": 1, "event_id": Uuid::new_v4(), "agent": "claude-code", "event": event.name,
        "occurred_at_us": occurred_at_us, "cwd": null, "git": null, "payload": event.payload,
    })
    .to_string()
}

/// Everything but the rows' numbers.
fn told_calls(calls: Vec<ToolCall>) -> Vec<ToolCall> {
    calls.into_iter().map(|call| ToolCall { id: 0, ..call }).collect()
}

fn told_prompts(prompts: Vec<Prompt>) -> Vec<Prompt> {
    prompts.into_iter().map(|prompt| Prompt { id: 0, session_id: 0, ..prompt }).collect()
}
