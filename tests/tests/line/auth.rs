//! Who may speak to the server: the holder of the token, on this machine, from no foreign web page.

use anyhow::Result;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tests::conversation::Conversation;
use tests::stack::Stack;

/// Every route but health, with the method it is made for.
const ROUTES: [(Method, &str); 10] = [
    (Method::POST, "/api/hooks/claude-code"),
    (Method::POST, "/api/embed"),
    (Method::POST, "/api/observations"),
    (Method::POST, "/api/observations/search"),
    (Method::POST, "/api/observations/timeline"),
    (Method::GET, "/api/observations/note-1"),
    (Method::POST, "/mcp"),
    (Method::GET, "/mcp"),
    (Method::GET, "/api/admin/stats"),
    (Method::GET, "/metrics"),
];

#[tokio::test]
async fn asks_for_the_token_on_every_route() -> Result<()> {
    let stack = Stack::running().await?;
    check(&stack, StatusCode::UNAUTHORIZED, |request| request).await?;
    check(&stack, StatusCode::UNAUTHORIZED, |request| request.bearer_auth("wrong")).await?;
    check(&stack, StatusCode::UNAUTHORIZED, |request| request.bearer_auth("")).await?;
    let prefix = stack.token()[..31].to_owned();
    check(&stack, StatusCode::UNAUTHORIZED, |request| request.bearer_auth(&prefix)).await?;
    check(&stack, StatusCode::UNAUTHORIZED, |request| request.basic_auth("user", Some(stack.token()))).await
}

#[tokio::test]
async fn refuses_a_foreign_host_even_with_the_token() -> Result<()> {
    let stack = Stack::running().await?;
    for host in ["evil.example", "evil.example:3377", "127.0.0.1.evil.example"] {
        check(&stack, StatusCode::FORBIDDEN, |request| request.header("host", host).bearer_auth(stack.token())).await?;
    }
    Ok(())
}

#[tokio::test]
async fn refuses_a_foreign_origin_even_with_the_token() -> Result<()> {
    let stack = Stack::running().await?;
    for origin in ["http://evil.example", "https://evil.example", "null", "http://127.0.0.1.evil.example"] {
        check(&stack, StatusCode::FORBIDDEN, |request| request.header("origin", origin).bearer_auth(stack.token()))
            .await?;
    }
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

/// Sends each route a request that would leave a row, dressed by `dress`, and expects `refusal` and no row.
async fn check(stack: &Stack, refusal: StatusCode, dress: impl Fn(RequestBuilder) -> RequestBuilder) -> Result<()> {
    let event = Conversation::new(stack.scratch()).asks("Let me in").json();
    for (method, path) in ROUTES {
        let request = stack.client().request(method, stack.url(path)).header("content-type", "application/json");
        let answer = dress(request).body(event.clone()).send().await?;
        assert_eq!(answer.status(), refusal, "{path}");
        check_error(&answer.json().await?);
    }
    assert_eq!(stack.journal().row_count().await?, 0, "a refused request leaves nothing");
    Ok(())
}

fn check_error(error: &Value) {
    for member in ["code", "message"] {
        assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    }
}
