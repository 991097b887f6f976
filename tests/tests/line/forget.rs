//! Forgetting: what is shown before, what is gone afterwards, and that it does not come back.

use anyhow::{Context, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Outcome};
use tests::stack::Stack;

const SAID: &str = "ornithorhynchus";

#[tokio::test]
async fn removes_for_good_what_ids_name_and_nothing_by_a_query() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new(stack.scratch());
    let asked = session.asks(&format!("Look at the {SAID}"));
    let long = Call {
        tool: "Bash",
        input: json!({"command": format!("cat {SAID}.txt")}),
        outcome: Outcome::Response(json!({"stdout": format!("{SAID} ").repeat(4_000), "stderr": ""})),
    };
    let (_, called) = session.calls(long);
    stack.post_bare(&asked).await?;
    stack.post_bare(&called).await?;
    stack.post_bare(&session.runs("ls platypus").1).await?;

    let (status, listed) = forget(&stack, &json!({"query": SAID})).await?;
    assert_eq!((status, &listed["removed"]), (StatusCode::OK, &json!(false)), "{listed}");
    let ids: Vec<_> = listed["documents"].as_array().into_iter().flatten().map(|line| line["id"].clone()).collect();
    let ids: Vec<_> = ids.into_iter().filter(|id| id != "call-2").collect();
    assert_eq!(ids.len(), 2, "the prompt and the call: {listed}");
    let before = stack.journal().dump().await?;
    let (status, refused) = forget(&stack, &json!({"query": SAID, "dry_run": false})).await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    let (_, shown) = forget(&stack, &json!({"ids": ids})).await?;
    assert_eq!(shown["documents"].as_array().map(Vec::len), Some(2), "{shown}");
    assert_eq!(stack.journal().dump().await?, before, "nothing was removed");

    let (status, done) = forget(&stack, &json!({"ids": ids, "dry_run": false})).await?;
    assert_eq!((status, &done["removed"]), (StatusCode::OK, &json!(true)), "{done}");
    check_gone(&stack).await?;
    // The same events again, as the spool or the transcript would tell them.
    stack.post_bare(&asked).await?;
    stack.post_bare(&called).await?;
    stack.post_bare(&session.stops("There you are")).await?;
    check_gone(&stack).await?;
    let calls = stack.journal().tool_calls().await?;
    assert_eq!(calls.len(), 1, "what was not named stays: {calls:?}");

    let audit: Vec<(String, String, Value)> =
        sqlx::query_as("select actor, action, details from mem_audit_log").fetch_all(stack.database().pool()).await?;
    let forgotten: Vec<_> = audit.iter().filter(|(_, action, _)| action == "forget").collect();
    assert_eq!(forgotten.len(), 1, "{audit:?}");
    assert_eq!(forgotten[0].2["documents"].as_array().map(Vec::len), Some(2));
    let (status, _) = forget(&stack, &json!({"ids": ids, "dry_run": false})).await?;
    assert_eq!(status, StatusCode::NOT_FOUND, "it is not there any more");
    Ok(())
}

#[tokio::test]
async fn a_superseded_note_is_found_no_more_but_can_be_read() -> Result<()> {
    let stack = Stack::running().await?;
    let saved = stack.post("/api/observations").json(&json!({"text": "The pelican listens on 7070"})).send().await?;
    let old: Value = saved.json().await?;
    let update = json!({"id": old["id"], "text": "The pelican listens on 7171"});
    let answer = stack.post("/api/observations/update").json(&update).send().await?;
    let new: Value = answer.json().await?;
    assert_eq!((&new["supersedes"], &new["title"]), (&old["id"], &json!("The pelican listens on 7171")), "{new}");

    let found: Value =
        stack.post("/api/observations/search").json(&json!({"query": "pelican"})).send().await?.json().await?;
    assert_eq!((&found["shown"], &found["hits"][0]["id"]), (&json!(1), &new["id"]), "{found}");
    let url = stack.url(&format!("/api/observations/{}", old["id"].as_str().context("an id")?));
    let shown: Value = stack.client().get(url).bearer_auth(stack.token()).send().await?.json().await?;
    assert_eq!(shown["observations"][0]["superseded_by"], new["id"], "{shown}");
    assert_eq!(shown["observations"][0]["text"], "The pelican listens on 7070");
    let again = stack.post("/api/observations/update").json(&update).send().await?;
    assert_eq!(again.status(), StatusCode::BAD_REQUEST, "it was superseded");
    Ok(())
}

/// No table holds the word any more.
async fn check_gone(stack: &Stack) -> Result<()> {
    let rows = stack.journal().dump().await?;
    assert!(!rows.iter().any(|row| row.contains(SAID)), "{rows:#?}");
    for table in ["mem_outputs", "mem_observation_queue", "mem_lexemes", "mem_forgotten"] {
        let query = format!("select count(*) from {table} t where to_jsonb(t)::text like '%{SAID}%'");
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(stack.database().pool())
            .await
            .context("counting")?;
        assert_eq!(count, 0, "{table}");
    }
    Ok(())
}

async fn forget(stack: &Stack, arguments: &Value) -> Result<(StatusCode, Value)> {
    let answer = stack.post("/api/observations/forget").json(arguments).send().await?;
    Ok((answer.status(), answer.json().await?))
}
