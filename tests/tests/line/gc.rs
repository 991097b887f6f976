//! The retention policy: what is removed, in which order, and what never is.

use anyhow::Result;
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Event, Outcome};
use tests::stack::Stack;
use tests::{operator, wait};

#[tokio::test]
async fn removes_by_age_outputs_first_and_prompts_last_and_says_so_before() -> Result<()> {
    let stack = Stack::running().await?;
    applied_by_the_server(&stack).await?;
    let old = record(&stack, "shared and old").await?;
    let new = record(&stack, "shared and old").await?;
    record_call(&stack, &old, "old alone").await?;
    note(&stack).await?;
    age(&stack, &old, 100).await?;

    let before = stack.journal().dump().await?;
    let planned = operator::json(&stack, &["gc", "--dry-run", "--json"]).await?;
    assert_eq!(stages(&planned), ["outputs"], "{planned}");
    assert_eq!(planned["rows"], 1, "the output that a new call gave too stays: {planned}");
    assert!(planned["bytes"].as_i64().is_some_and(|bytes| bytes > 100), "{planned}");
    assert_eq!(stack.journal().dump().await?, before, "nothing was changed");

    let done = operator::json(&stack, &["gc", "--json"]).await?;
    assert_eq!((&done["rows"], &done["bytes"]), (&planned["rows"], &planned["bytes"]));
    assert_eq!(count(&stack, "mem_outputs").await?, 1);
    let calls = stack.journal().tool_calls().await?;
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.output_preview.is_some()), "previews stay with their calls");
    assert_eq!(operator::json(&stack, &["gc", "--json"]).await?["rows"], 0, "and once is enough");

    operator::set(&stack, "[retention]\nprompts_days = 30\n")?;
    let planned = operator::json(&stack, &["gc", "--dry-run", "--json"]).await?;
    assert_eq!(stages(&planned), ["calls", "prompts"], "{planned}");
    operator::json(&stack, &["gc", "--json"]).await?;
    let sessions = stack.journal().sessions().await?;
    let left: Vec<_> = sessions.iter().map(|session| session.external_id.as_str()).collect();
    assert_eq!(left, [new.session_id.as_str()], "a session of which nothing is left is gone");
    assert_eq!(stack.journal().prompts().await?.len(), 1);
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    let documents: Vec<String> = sqlx::query_scalar("select document_kind from mem_search_index order by 1")
        .fetch_all(stack.database().pool())
        .await?;
    assert_eq!(documents, ["call", "note", "prompt"]);
    let actors: Vec<String> =
        sqlx::query_scalar("select actor from mem_audit_log order by id").fetch_all(stack.database().pool()).await?;
    assert_eq!(actors, ["operator", "operator"], "a run that removes nothing leaves no trace");
    Ok(())
}

#[tokio::test]
async fn removes_what_a_project_has_too_much_oldest_first_and_never_a_note() -> Result<()> {
    let stack = Stack::running().await?;
    applied_by_the_server(&stack).await?;
    let session = record(&stack, "the oldest").await?;
    for text in ["older", "newer", "newest"] {
        record_call(&stack, &session, text).await?;
    }
    note(&stack).await?;
    let size: i64 = sqlx::query_scalar("select sum(pg_column_size(body))::bigint from mem_outputs")
        .fetch_one(stack.database().pool())
        .await?;

    // Some rows and lexemes more than the outputs: half of the outputs must go and nothing else.
    let rest = operator_total(&stack).await? - size;
    operator::set(&stack, &format!("[retention]\nproject_max_bytes = {}\n", rest + size / 2))?;
    let done = operator::json(&stack, &["gc", "--json"]).await?;
    assert_eq!(stages(&done), ["outputs"], "{done}");
    let with_output: Vec<bool> =
        sqlx::query_scalar("select output_hash is not null from mem_tool_calls order by occurred_at, id")
            .fetch_all(stack.database().pool())
            .await?;
    assert_eq!(with_output.first(), Some(&false), "the oldest went");
    assert_eq!(with_output.last(), Some(&true), "the newest stayed");

    operator::set(
        &stack,
        "[retention.projects.\"nobody knows\"]\ncalls_days = 1\n[retention]\nproject_max_bytes = 1\n",
    )?;
    let done = operator::json(&stack, &["gc", "--json"]).await?;
    assert_eq!(stages(&done), ["outputs", "previews", "calls", "prompts"], "{done}");
    assert_eq!(done["report"]["unknown_projects"], json!(["nobody knows"]));
    for (table, rows) in [("mem_tool_calls", 0), ("mem_user_prompts", 0), ("mem_outputs", 0), ("mem_observations", 1)] {
        assert_eq!(count(&stack, table).await?, rows, "{table}");
    }
    operator::json(&stack, &["gc", "--compact", "--json"]).await?;
    Ok(())
}

#[tokio::test]
async fn takes_no_output_away_that_a_call_of_this_moment_gives_again() -> Result<()> {
    let stack = Stack::running().await?;
    applied_by_the_server(&stack).await?;
    let working = record(&stack, "something else").await?;
    for _ in 0..3 {
        let old = record(&stack, "the same again").await?;
        age(&stack, &old, 100).await?;
        let work = async {
            for _ in 0..5 {
                record_call(&stack, &working, "the same again").await?;
            }
            anyhow::Ok(())
        };
        let (worked, collected) = tokio::join!(work, operator::json(&stack, &["gc", "--json"]));
        worked?;
        collected?;
    }
    let without: i64 = sqlx::query_scalar(
        "select count(*) from mem_tool_calls where output_hash is null and occurred_at > now() - interval '1 day'",
    )
    .fetch_one(stack.database().pool())
    .await?;
    assert_eq!(without, 0);
    assert_eq!(stack.journal().tool_calls().await?.len(), 3 + 1 + 15, "and no call is lost");
    Ok(())
}

/// What the policy takes the one project of the journal for: the excess over one byte, from a dry run.
async fn operator_total(stack: &Stack) -> Result<i64> {
    operator::set(stack, "[retention]\nproject_max_bytes = 1\n")?;
    let planned = operator::json(stack, &["gc", "--dry-run", "--json"]).await?;
    Ok(planned["bytes"].as_i64().unwrap_or_default())
}

/// The server applies the policy by itself at its start; two at once are refused.
async fn applied_by_the_server(stack: &Stack) -> Result<()> {
    let is_done = || stack.server_output().contains("applied the retention policy");
    wait::until("the server's own run", async || Ok(is_done().then_some(()))).await
}

async fn record(stack: &Stack, text: &str) -> Result<Conversation> {
    let mut session = Conversation::new(stack.scratch());
    post(stack, &session.asks("Run it")).await?;
    record_call(stack, &session, text).await?;
    Ok(session)
}

/// A call whose output is too large for its preview, and does not compress to nothing.
async fn record_call(stack: &Stack, session: &Conversation, text: &str) -> Result<()> {
    let output = (0..6_000_u64)
        .map(|number| format!("{text} {}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20))
        .collect::<Vec<_>>();
    let outcome = Outcome::Response(json!({"stdout": output.join("\n")}));
    let (_, event) = session.calls(Call { tool: "Bash", input: json!({"command": format!("run {text}")}), outcome });
    post(stack, &event).await
}

async fn post(stack: &Stack, event: &Event) -> Result<()> {
    let answer = stack.post_bare(event).await?;
    assert!(answer.status().is_success(), "{answer:?}");
    Ok(())
}

async fn note(stack: &Stack) -> Result<()> {
    let new = memory::store::NewObservation {
        text: "What we learned".into(),
        title: None,
        project: None,
        source: memory::store::Source::Person,
    };
    memory::store::save_observation(stack.database().pool(), memory::access::Who::Operator, new).await?;
    Ok(())
}

/// Makes a session as old as if it had been so many days ago.
async fn age(stack: &Stack, session: &Conversation, days: i32) -> Result<()> {
    for statement in [
        "update mem_sessions set started_at = started_at - $2 * interval '1 day',
             last_event_at = last_event_at - $2 * interval '1 day' where external_id = $1",
        "update mem_tool_calls set occurred_at = occurred_at - $2 * interval '1 day'
         where session_id = (select id from mem_sessions where external_id = $1)",
        "update mem_user_prompts set occurred_at = occurred_at - $2 * interval '1 day'
         where session_id = (select id from mem_sessions where external_id = $1)",
    ] {
        sqlx::query(statement).bind(&session.session_id).bind(days).execute(stack.database().pool()).await?;
    }
    Ok(())
}

fn stages(report: &Value) -> Vec<&str> {
    let removals = report["report"]["removals"].as_array().into_iter().flatten();
    removals.filter_map(|removal| removal["stage"].as_str()).collect()
}

async fn count(stack: &Stack, table: &'static str) -> Result<i64> {
    let query = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
    Ok(sqlx::query_scalar(query).fetch_one(stack.database().pool()).await?)
}
