//! Recall over plain HTTP: the tools' own arguments and replies, for whoever speaks no MCP.

use anyhow::{Context, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::stack::Stack;

#[tokio::test]
async fn saves_finds_and_shows_a_note() -> Result<()> {
    let stack = Stack::running().await?;
    let note = json!({"text": "The pelican deploy needs PORT=7070.", "project": "widgets"});
    let (status, saved) = post(&stack, "", &note).await?;
    assert_eq!(status, StatusCode::CREATED);
    let id = saved["id"].as_str().context("an id")?.to_owned();

    let (status, found) = post(&stack, "/search", &json!({"query": "pelican deploy port"})).await?;
    assert_eq!((status, found["hits"][0]["id"].as_str()), (StatusCode::OK, Some(id.as_str())));
    let (status, around) = post(&stack, "/timeline", &json!({"anchor": id})).await?;
    assert_eq!((status, around["lines"][0]["id"].as_str()), (StatusCode::OK, Some(id.as_str())));

    let answer = stack.client().get(stack.url(&format!("/api/observations/{id}"))).bearer_auth(stack.token());
    let shown: Value = answer.send().await?.json().await?;
    assert_eq!(shown["observations"][0]["text"], note["text"]);
    Ok(())
}

#[tokio::test]
async fn says_what_is_wrong_with_a_question() -> Result<()> {
    let stack = Stack::running().await?;
    for (question, status, code) in [
        (json!({"query": ""}), StatusCode::BAD_REQUEST, "bad_request"),
        (json!({"query": "x", "limit": 1000}), StatusCode::BAD_REQUEST, "bad_request"),
        (json!({"query": "x", "colour": "red"}), StatusCode::BAD_REQUEST, "bad_request"),
        (json!({"query": "x", "project": "nowhere"}), StatusCode::NOT_FOUND, "not_found"),
        (json!(["x"]), StatusCode::BAD_REQUEST, "bad_request"),
    ] {
        let (answered, body) = post(&stack, "/search", &question).await?;
        assert_eq!((answered, body["code"].as_str()), (status, Some(code)), "{question}: {body}");
    }
    let missing = stack.client().get(stack.url("/api/observations/call-77")).bearer_auth(stack.token()).send().await?;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    Ok(())
}

async fn post(stack: &Stack, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
    let answer = stack.post(&format!("/api/observations{path}")).json(body).send().await?;
    Ok((answer.status(), answer.json().await?))
}
