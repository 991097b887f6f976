//! How much is kept: large outputs whole and once, binary payloads as their description, and above the disk's ceiling only that
//! something happened.

use anyhow::{Context, Result};
use memory::event::NOT_KEPT;
use memory::ids::{DocumentId, DocumentKind};
use memory::recall;
use serde_json::json;
use tests::conversation::{Call, Conversation, Outcome};
use tests::stack::Stack;
use tests::{operator, wait};

#[tokio::test]
async fn a_large_output_is_stored_once_and_given_back_whole() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new(stack.scratch());
    let log = (0..4_000).map(|number| format!("case {number} ok")).collect::<Vec<_>>().join("\n");
    let run = || Call {
        tool: "Bash",
        input: json!({"command": "make check"}),
        outcome: Outcome::Response(json!({"stdout": log, "stderr": ""})),
    };
    for event in [session.asks("Check it"), session.calls(run()).1, session.calls(run()).1] {
        stack.post_bare(&event).await?;
    }
    let calls = stack.journal().tool_calls().await?;
    assert_eq!(calls.len(), 2);
    assert!(calls[0].output_preview.as_ref().is_some_and(|preview| preview.len() < 20_000));
    let kept: Vec<i64> =
        sqlx::query_scalar("select size_bytes from mem_outputs").fetch_all(stack.database().pool()).await?;
    assert_eq!(kept, [log.len() as i64], "the same output twice is one row");
    let id = DocumentId { kind: DocumentKind::Call, row: calls[0].id };
    let details = recall::details(stack.database().pool(), &[id], &memory::access::Projects::All).await?.remove(0);
    assert_eq!(details.text.as_deref(), Some(log.as_str()));
    assert_eq!(details.truncated_at_bytes, None, "nothing is missing");
    Ok(())
}

#[tokio::test]
async fn above_the_ceiling_only_metadata_is_kept_and_below_it_everything_again() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    operator::install(&stack, "mini")?;
    operator::set(&stack, "[disk]\nceiling_bytes = \"1 MiB\"\n")?;
    stack.start_server().await?;
    storage_is(&stack, "metadata_only").await?;
    assert_eq!(stack.health().await?["status"], "degraded");

    let mut session = Conversation::new(stack.scratch());
    let failing = Call {
        tool: "Bash",
        input: json!({"command": "cat zanzibar"}),
        outcome: Outcome::Error("Exit code 1: no zanzibar".into()),
    };
    let events = [
        session.asks("Look for zanzibar"),
        session.runs("grep zanzibar").1,
        session.calls(failing).1,
        session.stops("There is no zanzibar"),
    ];
    for event in &events {
        stack.hook(event).await?;
    }
    stack.drained().await?;
    let prompts = stack.journal().prompts().await?;
    assert_eq!((prompts[0].prompt.as_deref(), prompts[0].answer.as_deref()), (Some(NOT_KEPT), Some(NOT_KEPT)));
    let calls = stack.journal().tool_calls().await?;
    let kept: Vec<_> = calls.iter().map(|call| (call.tool_name.as_str(), call.success, call.duration_ms)).collect();
    assert_eq!(kept, [("Bash", true, Some(41)), ("Bash", false, Some(41))]);
    assert!(calls.iter().all(|call| call.input == json!({}) && call.output_preview.is_none()));
    let cut: Vec<Option<i64>> = sqlx::query_scalar("select truncated_at_bytes from mem_tool_calls order by id")
        .fetch_all(stack.database().pool())
        .await?;
    assert!(cut.iter().all(|bytes| bytes.is_some_and(|bytes| bytes > 20)), "{cut:?}");
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    let rows = stack.journal().dump().await?;
    assert!(!rows.iter().any(|row| row.contains("zanzibar")), "{rows:?}");

    let status = operator::run(&stack, &["status"], &[]).await?;
    assert!(status.stdout.contains("ONLY METADATA") && status.stdout.contains("settings.toml"), "{}", status.stdout);
    stack.stop_server().await?;
    operator::set(&stack, "[disk]\nceiling_bytes = \"100 GiB\"\n")?;
    stack.start_server().await?;
    storage_is(&stack, "ok").await?;
    stack.hook(&session.asks("Now look again")).await?;
    stack.drained().await?;
    assert_eq!(stack.journal().prompts().await?[1].prompt.as_deref(), Some("Now look again"));
    Ok(())
}

#[tokio::test]
async fn settings_that_nobody_can_understand_stop_the_server_and_name_the_key() -> Result<()> {
    let stack = Stack::stopped().await?;
    operator::set(&stack, "[retention]\ncall_days = 3\n")?;
    let mut server = stack.spawn_server().await?;
    let status = tokio::time::timeout(wait::PATIENCE, server.wait()).await.context("the server runs on")??;
    assert!(!status.success());
    assert!(stack.server_output().contains("call_days"), "{}", stack.server_output());
    Ok(())
}

async fn storage_is(stack: &Stack, state: &str) -> Result<()> {
    wait::until(state, async || Ok((stack.health().await?["storage"]["state"] == state).then_some(()))).await
}
