//! Who may speak to the server: the holder of the token, on this machine, from no foreign web page. Every route, token, origin and peer
//! stand in the table of `access`.

use anyhow::Result;
use reqwest::StatusCode;
use serde_json::Value;
use tests::conversation::Conversation;
use tests::stack::Stack;

#[tokio::test]
async fn takes_no_part_of_the_token_and_no_other_scheme() -> Result<()> {
    let stack = Stack::running().await?;
    let event = Conversation::new(stack.scratch()).asks("Let me in").json();
    let request = || stack.client().post(stack.url("/api/hooks/claude-code")).body(event.clone());
    let prefix = &stack.token()[..31];
    for dressed in [
        request(),
        request().bearer_auth(""),
        request().bearer_auth(prefix),
        request().basic_auth("user", Some(stack.token())),
    ] {
        let answer = dressed.send().await?;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        check_error(&answer.json().await?);
    }
    assert_eq!(stack.journal().row_count().await?, 0, "a refused request leaves nothing");
    Ok(())
}

#[tokio::test]
async fn refuses_a_foreign_host_or_origin_even_with_the_token() -> Result<()> {
    let stack = Stack::running().await?;
    let event = Conversation::new(stack.scratch()).asks("Let me in").json();
    for (header, value) in [
        ("host", "evil.example"),
        ("host", "evil.example:3377"),
        ("host", "127.0.0.1.evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1.evil.example"),
    ] {
        let answer = stack.post("/api/hooks/claude-code").header(header, value).body(event.clone()).send().await?;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{header}: {value}");
        check_error(&answer.json().await?);
    }
    assert_eq!(stack.journal().row_count().await?, 0, "a refused request leaves nothing");
    Ok(())
}

#[tokio::test]
async fn refuses_a_foreign_host_on_the_open_route_too() -> Result<()> {
    let stack = Stack::running().await?;
    let open = stack.client().get(stack.url("/api/health"));
    let answer = open.header("host", "evil.example").send().await?;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let answer = stack.client().get(stack.url("/api/health")).send().await?;
    assert_eq!(answer.status(), StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn takes_an_origin_of_this_machine() -> Result<()> {
    let stack = Stack::running().await?;
    let event = Conversation::new(stack.scratch()).asks("Hello");
    for origin in ["http://127.0.0.1:3377", "http://localhost:3377", "http://[::1]:3377"] {
        let request = stack.post("/api/hooks/claude-code").header("origin", origin).body(event.json());
        assert_eq!(request.send().await?.status(), StatusCode::NO_CONTENT, "{origin}");
    }
    Ok(())
}

#[tokio::test]
async fn logs_a_refusal_once_and_without_the_token() -> Result<()> {
    let stack = Stack::running().await?;
    let request = stack.client().post(stack.url("/api/hooks/claude-code")).bearer_auth("a-wrong-token").body("{}");
    assert_eq!(request.send().await?.status(), StatusCode::UNAUTHORIZED);
    let output = stack.server_output();
    // What the server does in its own time is logged meanwhile too.
    let lines: Vec<_> = output.lines().filter(|line| line.contains("refused a request")).collect();
    assert_eq!(lines.len(), 1, "{output}");
    assert!(!output.contains("a-wrong-token") && !output.contains(stack.token()));
    Ok(())
}

#[tokio::test]
async fn refuses_a_body_over_the_limit_with_413() -> Result<()> {
    let stack = Stack::running().await?;
    let body = vec![b' '; 41 * 1024 * 1024];
    let answer = stack.post("/api/hooks/claude-code").body(body).send().await?;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    check_error(&answer.json().await?);
    assert_eq!(stack.journal().row_count().await?, 0);
    Ok(())
}

#[tokio::test]
async fn answers_an_unknown_route_with_404_and_json() -> Result<()> {
    let stack = Stack::running().await?;
    let answer = stack.post("/api/nothing-here").send().await?;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    check_error(&answer.json().await?);
    Ok(())
}

fn check_error(error: &Value) {
    for member in ["code", "message"] {
        assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    }
}
