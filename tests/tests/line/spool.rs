//! What happens to events that the server could not take.

use std::path::PathBuf;

use anyhow::{Context, Result};
use reqwest::StatusCode;
use serde_json::Value;
use tests::conversation::{Conversation, Event};
use tests::stack::Stack;

#[tokio::test]
async fn spools_every_event_while_the_server_is_away_and_catches_up_in_order() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let (ids, events) = session(&stack, 12);
    for event in &events {
        assert_eq!(stack.hook(event).await?.stdout, "");
    }
    let files = stack.spooled()?;
    assert_eq!(files.len(), events.len());
    for (file, event) in files.iter().zip(&events) {
        check_spool_file(file, event)?;
    }
    stack.start_server().await?;
    stack.drained().await?;
    assert_eq!(stack.journal().recorded_order().await?, ids);
    let calls = stack.journal().tool_calls().await?;
    assert!(
        calls.iter().map(|call| call.turn_subindex).eq((0..12).map(Some)),
        "each is numbered in its order: {calls:?}"
    );
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    assert!(stack.rejected()?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_second_replay_changes_nothing() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let (_, events) = session(&stack, 5);
    for event in &events {
        stack.hook(event).await?;
    }
    let copies = copies(&stack)?;
    stack.start_server().await?;
    stack.drained().await?;
    let before = stack.journal().dump().await?;
    assert!(before.len() > events.len(), "the journal holds the session");

    for (path, bytes) in &copies {
        std::fs::write(path, bytes)?;
    }
    stack.drained().await?;
    assert_eq!(stack.journal().dump().await?, before, "replayed from the spool");

    for (_, bytes) in copies.into_iter().rev() {
        let answer = stack.post("/api/hooks/claude-code").body(bytes).send().await?;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    }
    assert_eq!(stack.journal().dump().await?, before, "posted once more, and backwards");
    Ok(())
}

#[tokio::test]
async fn moves_aside_what_cannot_be_read_and_takes_the_rest() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let (ids, events) = session(&stack, 2);
    for event in &events {
        stack.hook(event).await?;
    }
    let broken = "00000000000000000001-7c9f0f0e-5b52-4c56-9d5a-0d7a3f6a1b11.json";
    std::fs::write(stack.home().spool().join(broken), "{\"envelope\": 1, \"event_id\"")?;
    stack.start_server().await?;
    stack.drained().await?;
    assert_eq!(stack.journal().recorded_order().await?, ids);
    let rejected = stack.rejected()?;
    assert_eq!(rejected.len(), 1);
    assert_eq!(std::fs::read_to_string(&rejected[0])?, "{\"envelope\": 1, \"event_id\"", "and it is kept as it was");
    Ok(())
}

#[tokio::test]
async fn leaves_a_file_that_is_still_being_written_alone() -> Result<()> {
    let stack = Stack::running().await?;
    let half = stack.home().spool().join(".tmp-00000000000000000001-7c9f0f0e-5b52-4c56-9d5a-0d7a3f6a1b11.json");
    std::fs::write(&half, "{\"envelope\":")?;
    let (ids, events) = session(&stack, 1);
    let whole = stack.home().spool().join("00000000000000000002-7c9f0f0e-5b52-4c56-9d5a-0d7a3f6a1b12.json");
    std::fs::write(whole, envelope(&events[1]))?;
    stack_takes(&stack, &ids).await?;
    assert!(half.is_file());
    Ok(())
}

#[tokio::test]
async fn spools_while_the_database_is_away() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let url = stack.database().url().to_owned();
    std::fs::write(stack.home().database_url_file(), "postgres://nobody:nothing@127.0.0.1:9/none\n")?;
    stack.start_server_without_database().await?;
    let health = stack.health().await?;
    assert_eq!((&health["status"], &health["database"]["state"]), (&"degraded".into(), &"down".into()), "{health}");
    let (ids, events) = session(&stack, 3);
    for event in &events {
        stack.hook(event).await?;
    }
    assert_eq!(stack.spooled()?.len(), events.len());
    stack.stop_server().await?;
    std::fs::write(stack.home().database_url_file(), url)?;
    stack.start_server().await?;
    stack.drained().await?;
    assert_eq!(stack.journal().recorded_order().await?, ids);
    Ok(())
}

/// A session with one prompt and that many calls: the calls' ids and all events.
fn session(stack: &Stack, calls: usize) -> (Vec<String>, Vec<Event>) {
    let mut session = Conversation::new(stack.scratch());
    let mut events = vec![session.asks("Count up")];
    let mut ids = Vec::new();
    for number in 0..calls {
        let (id, event) = session.runs(&format!("echo {number}"));
        ids.push(id);
        events.push(event);
    }
    events.push(session.ends());
    (ids, events)
}

fn check_spool_file(path: &PathBuf, event: &Event) -> Result<()> {
    let envelope: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    assert_eq!(envelope["payload"], event.payload, "the payload is kept word for word");
    assert_eq!(envelope["event"], event.name.as_str());
    let occurred = envelope["occurred_at_us"].as_i64().context("an envelope without a time")?;
    let name = format!("{occurred:020}-{}.json", envelope["event_id"].as_str().unwrap_or_default());
    assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(name.as_str()));
    Ok(())
}

fn copies(stack: &Stack) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    stack.spooled()?.into_iter().map(|path| Ok((path.clone(), std::fs::read(path)?))).collect()
}

fn envelope(event: &Event) -> String {
    serde_json::json!({
        "envelope": 1, "event_id": "7c9f0f0e-5b52-4c56-9d5a-0d7a3f6a1b12", "agent": "claude-code", "event": event.name,
        "occurred_at_us": 1_795_968_338_704_123_i64, "cwd": null, "git": null, "payload": event.payload,
    })
    .to_string()
}

async fn stack_takes(stack: &Stack, ids: &[String]) -> Result<()> {
    stack.drained().await?;
    assert_eq!(stack.journal().recorded_order().await?, ids);
    Ok(())
}
