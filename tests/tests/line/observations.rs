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
async fn narrows_a_search_to_an_agent_a_branch_and_a_file() -> Result<()> {
    let stack = Stack::running().await?;
    for (agent, branch, file) in [("claude-code", "main", "src/recall/fuse.rs"), ("codex", "retry", "src/queue/mod.rs")]
    {
        let event = json!({
            "envelope": 1,
            "event_id": uuid::Uuid::new_v4(),
            "agent": agent,
            "event": "PostToolUse",
            "occurred_at_us": chrono::Utc::now().timestamp_micros(),
            "cwd": "/w/widgets",
            "git": { "root": "/w/widgets", "common_dir": "/w/widgets/.git", "branch": branch },
            "payload": {
                "session_id": format!("s-{agent}"), "cwd": "/w/widgets", "hook_event_name": "PostToolUse",
                "tool_name": "Bash", "tool_input": { "command": format!("cat {file}") },
                "tool_response": { "stdout": "pelican", "stderr": "" }, "tool_use_id": format!("t-{agent}"),
            },
        });
        let answer = stack.post(&format!("/api/hooks/{agent}")).body(event.to_string()).send().await?;
        answer.error_for_status().context("posting an event")?;
    }
    let headlines = async |filter: Value| -> Result<Vec<String>> {
        let mut question = json!({ "query": "pelican" });
        question.as_object_mut().context("an object")?.extend(filter.as_object().cloned().unwrap_or_default());
        let (status, found) = post(&stack, "/search", &question).await?;
        assert_eq!(status, StatusCode::OK, "{found}");
        let hits = found["hits"].as_array().cloned().unwrap_or_default();
        Ok(hits.iter().filter_map(|hit| Some(hit["headline"].as_str()?.to_owned())).collect())
    };
    assert_eq!(headlines(json!({})).await?.len(), 2);
    for (filter, expected) in [
        (json!({ "agent": "codex" }), "queue/mod.rs"),
        (json!({ "branch": "main" }), "recall/fuse.rs"),
        (json!({ "file": "queue/mod.rs" }), "queue/mod.rs"),
        (json!({ "file": "fuse.rs", "agent": "claude-code", "branch": "main" }), "recall/fuse.rs"),
    ] {
        let found = headlines(filter.clone()).await?;
        assert!(matches!(&found[..], [one] if one.contains(expected)), "{filter}: {found:?}");
    }
    assert!(headlines(json!({ "agent": "codex", "branch": "main" })).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn explains_how_a_hit_came_to_its_place() -> Result<()> {
    let stack = Stack::running().await?;
    for text in ["The pelican deploy needs PORT=7070.", "Nothing of that bird."] {
        post(&stack, "", &json!({ "text": text })).await?;
    }
    let (_, found) = post(&stack, "/search", &json!({ "query": "pelican deploy \"needs PORT\"" })).await?;
    assert!(found.get("explanation").is_none(), "only where it is asked for: {found}");
    let question = json!({ "query": "pelican deploy \"needs PORT\"", "explain": true });
    let (_, found) = post(&stack, "/search", &question).await?;
    let explanation = &found["explanation"];
    let lexemes = explanation["terms"].as_array().cloned().unwrap_or_default();
    assert!(lexemes.iter().any(|term| term["lexeme"] == "pelican"), "{explanation}");
    assert_eq!(explanation["condition"], "'needs' <1> 'port'");
    let [place] = &explanation["places"].as_array().cloned().unwrap_or_default()[..] else { panic!("{explanation}") };
    let (score, prior) = (place["score"].as_f64(), place["prior"].as_f64());
    let ranking = &place["rankings"]["words"];
    assert_eq!(ranking["rank"], 1);
    let product = ranking["score"].as_f64().zip(prior).map(|(score, prior)| score * prior);
    assert!(score.zip(product).is_some_and(|(score, product)| (score - product).abs() < 0.002), "{place}");
    assert!(explanation["milliseconds"]["total"].as_f64() >= explanation["milliseconds"]["database"].as_f64());
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
