//! From an agent's event to rows of the journal, through the hook program or past it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Event, Outcome};
use tests::journal::ToolCall;
use tests::stack::Stack;
use uuid::Uuid;

#[tokio::test]
async fn keeps_a_whole_session_with_every_call_joined_to_its_prompt() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new(stack.scratch());
    let content = format!("fn main() {{ println!(\"Grüße, 世界 \\\"{}\\\"\"); }}\n", "x".repeat(20_000));
    let write = json!({"file_path": "/home/dev/widgets/src/main.rs", "content": content});
    let error = "Exit code 101\nerror[E0425]: cannot find value `widgets`";

    deliver(&stack, &[session.starts(), session.asks("Write the greeting")]).await?;
    let (write_id, written) = session.calls(Call {
        tool: "Write",
        input: write.clone(),
        outcome: Outcome::Response(json!({"type": "create"})),
    });
    let (format_id, formatted) = session.runs("cargo fmt");
    let build = json!({"command": "cargo build", "timeout": 120_000});
    let (build_id, failed) =
        session.calls(Call { tool: "Bash", input: build.clone(), outcome: Outcome::Error(error.to_owned()) });
    deliver(&stack, &[written, formatted, failed, session.stops("It does not build.")]).await?;
    deliver(&stack, &[session.asks("Then repair it")]).await?;
    let (repair_id, repaired) = session.runs("cargo fix");
    deliver(&stack, &[repaired, session.stops("It builds."), session.ends()]).await?;
    stack.drained().await?;

    let sessions = stack.journal().sessions().await?;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].external_id, session.session_id);
    assert_eq!(sessions[0].agent, "claude-code");
    assert_eq!(sessions[0].source.as_deref(), Some("startup"));
    assert_eq!((sessions[0].status.as_str(), sessions[0].end_reason.as_deref()), ("ended", Some("other")));

    let prompts = stack.journal().prompts().await?;
    let turns: Vec<_> = prompts.iter().map(|row| (row.prompt.as_deref(), row.answer.as_deref())).collect();
    assert_eq!(
        turns,
        [(Some("Write the greeting"), Some("It does not build.")), (Some("Then repair it"), Some("It builds."))]
    );
    assert!(prompts[0].turn_index < prompts[1].turn_index);

    let calls = stack.journal().tool_calls().await?;
    let ids: Vec<_> = calls.iter().map(|call| call.tool_use_id.as_str()).collect();
    assert_eq!(ids, [&write_id, &format_id, &build_id, &repair_id]);
    assert_eq!(calls[0].input, write, "the input is kept whole");
    assert_eq!(calls[2].input, build);
    let ended: Vec<_> = calls.iter().map(|call| (call.success, call.error.as_deref())).collect();
    assert_eq!(ended, [(true, None), (true, None), (false, Some(error)), (true, None)]);
    assert!(calls.iter().all(|call| call.duration_ms == Some(41)));
    let joined: Vec<_> = calls.iter().map(|call| call.prompt.as_deref().unwrap_or_default()).collect();
    assert_eq!(joined, ["Write the greeting", "Write the greeting", "Write the greeting", "Then repair it"]);
    let places: Vec<_> = calls.iter().map(|call| (call.turn_index, call.turn_subindex)).collect();
    assert!(places.is_sorted() && places.iter().all(|place| place.0.is_some() && place.1.is_some()), "{places:?}");
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    Ok(())
}

#[tokio::test]
async fn takes_the_bare_json_of_http_hooks_and_answers_204() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new(stack.scratch());
    let events = [session.starts(), session.asks("Count the lines"), session.runs("wc -l").1, session.ends()];
    for event in &events {
        let answer = stack.post_bare(event).await?;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT, "{}", event.name);
        assert_eq!(answer.bytes().await?.len(), 0);
    }
    // A bare event tells no time of its own, so when the session was last heard of may move; nothing else may.
    let journal = stack.journal();
    let before = (journal.sessions().await?, journal.prompts().await?, journal.tool_calls().await?);
    assert_eq!((before.0.len(), before.1.len(), before.2.len()), (1, 1, 1));
    for event in &events {
        stack.post_bare(event).await?;
    }
    let after = (journal.sessions().await?, journal.prompts().await?, journal.tool_calls().await?);
    assert_eq!(after, before, "a second delivery changes nothing");
    Ok(())
}

#[tokio::test]
async fn answers_before_the_commit_only_who_prefers_that_and_keeps_no_file_after_it() -> Result<()> {
    let stack = Stack::running().await?;
    let (id, call) = Conversation::new(stack.scratch()).runs("wc -l");
    let envelope = json!({
        "envelope": 1, "event_id": Uuid::new_v4(), "agent": "claude-code", "event": call.name,
        "occurred_at_us": 1_795_968_338_704_123_i64, "cwd": stack.scratch(), "git": null, "payload": call.payload,
    });
    let post = || stack.post("/api/hooks/claude-code").json(&envelope);
    assert_eq!(post().header("Prefer", "respond-async").send().await?.status(), StatusCode::ACCEPTED);
    stack.drained().await?;
    assert_eq!(only_call(&stack).await?.tool_use_id, id);
    assert_eq!(post().send().await?.status(), StatusCode::NO_CONTENT);
    assert_eq!(only_call(&stack).await?.tool_use_id, id);
    Ok(())
}

#[tokio::test]
async fn joins_a_call_that_comes_before_its_prompt() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new(stack.scratch());
    let prompt = session.asks("List the folder");
    let (_, call) = session.runs("ls");
    stack.post_bare(&call).await?;
    assert_eq!(stack.journal().linkage_ratio().await?, Some(0.0));
    stack.post_bare(&prompt).await?;
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    assert_eq!(only_call(&stack).await?.prompt.as_deref(), Some("List the folder"));
    Ok(())
}

#[tokio::test]
async fn counts_events_and_takes_fields_that_it_does_not_know() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new(stack.scratch());
    stack.post_bare(&session.asks("Do it")).await?;
    let unknown = session.event("BrandNewEvent", json!({"novelty": {"deep": [1, 2, 3]}}));
    let answer = stack.post_bare(&unknown).await?;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);

    let (id, mut call) = session.runs("make");
    call.payload["mood"] = json!("sunny");
    call.payload["tool_response"]["weather"] = json!({"wind": 3});
    call.payload["duration_ms"] = json!("a text where a number was");
    let answer = stack.post_bare(&call).await?;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    let kept = only_call(&stack).await?;
    assert_eq!((kept.tool_use_id, kept.duration_ms), (id, None));
    let counted = &stack.stats().await?["events"];
    assert_eq!((&counted["ignored"]["BrandNewEvent"], &counted["stored"]), (&json!(1), &json!(2)), "{counted}");
    Ok(())
}

#[tokio::test]
async fn refuses_what_is_no_event_with_400_and_keeps_nothing() -> Result<()> {
    let stack = Stack::running().await?;
    for body in ["", "{", "[]", "42", "\"text\"", r#"{"envelope": 99}"#, r#"{"envelope": 1}"#, "\u{0}"] {
        let answer = stack.post("/api/hooks/claude-code").body(body.to_owned()).send().await?;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{body:?}");
        check_error(&answer.json().await?, body);
    }
    assert_eq!(stack.journal().row_count().await?, 0);
    Ok(())
}

#[tokio::test]
async fn finds_one_project_in_two_clones_of_a_repository() -> Result<()> {
    let stack = Stack::running().await?;
    let first = repository(stack.scratch().join("one/widgets"), "main", "git@example.com:acme/widgets.git")?;
    let second = repository(stack.scratch().join("two/copy"), "topic", "https://example.com/acme/widgets")?;
    for folder in [&first, &second] {
        let mut session = Conversation::new(folder);
        for event in [session.starts(), session.asks("Where am I?")] {
            stack.hook(&event).await?;
        }
    }
    stack.drained().await?;
    let sessions = stack.journal().sessions().await?;
    let mut seen: Vec<_> = sessions.iter().map(|row| (row.project.as_str(), row.branch.as_deref())).collect();
    seen.sort_unstable();
    assert_eq!(seen, [("widgets", Some("main")), ("widgets", Some("topic"))]);
    Ok(())
}

/// Hands events to the hook program, one after the other, and expects silence.
async fn deliver(stack: &Stack, events: &[Event]) -> Result<()> {
    for event in events {
        let outcome = stack.hook(event).await?;
        assert_eq!(outcome.stdout, "", "{} is answered with nothing to print", event.name);
    }
    Ok(())
}

async fn only_call(stack: &Stack) -> Result<ToolCall> {
    let mut calls = stack.journal().tool_calls().await?;
    assert_eq!(calls.len(), 1);
    calls.pop().context("no tool call")
}

fn check_error(error: &Value, request: &str) {
    for member in ["code", "message"] {
        assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{request:?} was answered with {error}");
    }
}

/// What the hook reads of a repository, written without git.
fn repository(folder: PathBuf, branch: &str, remote: &str) -> Result<PathBuf> {
    let git = folder.join(".git");
    std::fs::create_dir_all(git.join("refs/heads"))?;
    std::fs::write(git.join("HEAD"), format!("ref: refs/heads/{branch}\n"))?;
    std::fs::write(git.join("refs/heads").join(branch), format!("{}\n", "1f".repeat(20)))?;
    std::fs::write(git.join("config"), format!("[remote \"origin\"]\n\turl = {remote}\n"))?;
    Ok(folder)
}
