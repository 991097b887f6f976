//! The index made again from the journal, and documents embedded again, by the operator's program.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::conversation::Conversation;
use tests::operator;
use tests::stack::Stack;
use tests::wait;

#[tokio::test]
async fn makes_the_index_again_from_the_journal() -> Result<()> {
    let stack = Stack::running().await?;
    let pool = stack.database().pool();
    let mut conversation = Conversation::new(stack.scratch().join("widgets"));
    let asked = conversation.asks("fix the flaky migration test");
    let calls = ["cargo test migration", "sed -i s/5432/0/ tests/db.rs"].map(|command| conversation.runs(command).1);
    let answered = conversation.stops("the port was fixed; now any free one is taken");
    for event in [asked].into_iter().chain(calls).chain([answered, conversation.ends()]) {
        stack.post_bare(&event).await?.error_for_status()?;
    }
    wait::until("the digest", async || {
        let query = "select count(*) from mem_observations where kind = 'digest'";
        let digests: i64 = sqlx::query_scalar(query).fetch_one(pool).await?;
        Ok((digests == 1).then_some(()))
    })
    .await?;
    let note = json!({ "text": "The pelican deploy needs PORT=7070." });
    stack.post("/api/observations").json(&note).send().await?.error_for_status()?;
    let whole = index(&stack).await?;
    for damage in [
        "update mem_search_index set lexemes = '', length = 0 where document_kind = 'note'",
        "delete from mem_search_index where document_kind = 'call'",
        "delete from mem_observation_queue",
        "insert into mem_search_index (document_kind, document_id, occurred_at, lexemes) values ('call', 999999, now(), 'ghost')",
    ] {
        sqlx::query(damage).execute(pool).await.context("damaging the index")?;
    }
    assert!(search(&stack, "pelican").await?.is_empty());

    let told = operator::run(&stack, &["reindex"], &[]).await?;
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("1 had no record any more"), "{}", told.stderr);
    assert_eq!(index(&stack).await?, whole);
    assert_eq!(search(&stack, "pelican").await?.len(), 1);
    let jobs: i64 = sqlx::query_scalar("select count(*) from mem_observation_queue where kind = 'embed_document'")
        .fetch_one(pool)
        .await?;
    let calls = whole.iter().filter(|row| row.starts_with("call")).count();
    assert_eq!(jobs, calls as i64, "what was missing is embedded, and nothing else");
    Ok(())
}

#[tokio::test]
async fn has_documents_embedded_that_have_no_vector_of_the_installed_model() -> Result<()> {
    let stack = Stack::running().await?;
    let pool = stack.database().pool();
    operator::install(&stack, "mini")?;
    for bird in ["pelican", "heron", "stork"] {
        let note = json!({ "text": format!("A {bird}.") });
        stack.post("/api/observations").json(&note).send().await?.error_for_status()?;
    }
    sqlx::query("insert into mem_embedding_models (name, dimensions) values ('mini@1', 4), ('old@1', 4)")
        .execute(pool)
        .await?;
    let zeros = format!("[1{}]", ",0".repeat(767));
    for (row, model) in [(1, "mini@1"), (2, "old@1")] {
        sqlx::query(
            "update mem_search_index set embedding = $1::halfvec,
                 embedding_model_id = (select id from mem_embedding_models where name = $2)
             where document_id = $3",
        )
        .bind(&zeros)
        .bind(model)
        .bind(i64::from(row))
        .execute(pool)
        .await?;
    }
    for (arguments, expected) in [(&["re-embed"][..], 2), (&["re-embed", "--all"][..], 3)] {
        sqlx::query("delete from mem_observation_queue").execute(pool).await?;
        let told = operator::run(&stack, arguments, &[]).await?;
        assert!(told.stderr.contains(&format!("{expected} documents get a vector of mini")), "{}", told.stderr);
    }
    let status = operator::json(&stack, &["status", "--json"]).await?;
    let vectors = status["vectors"].as_array().context("status tells of vectors")?;
    assert!(vectors.contains(&json!({ "model": "old@1", "documents": 1 })), "{vectors:?}");
    Ok(())
}

/// The rows of the index but for their vectors.
async fn index(stack: &Stack) -> Result<Vec<String>> {
    let query =
        "select document_kind || '-' || document_id || ' ' || coalesce(project_id, 0) || ' ' || coalesce(session_id, 0)
                        || ' ' || occurred_at || ' ' || length || ' ' || lexemes::text
                 from mem_search_index order by document_kind, document_id";
    sqlx::query_scalar(query).fetch_all(stack.database().pool()).await.context("reading the index")
}

async fn search(stack: &Stack, query: &str) -> Result<Vec<Value>> {
    let answer = stack.post("/api/observations/search").json(&json!({ "query": query })).send().await?;
    let found: Value = answer.error_for_status()?.json().await?;
    Ok(found["hits"].as_array().cloned().unwrap_or_default())
}
