//! The same tools over HTTP, and who is turned away.

use mcp::{Tools, http_service};
use memory::embed::Embedder;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The address of a server that serves the tools at `/mcp`, and what stops them.
async fn serve() -> (String, CancellationToken) {
    let db = memory::store::connect_lazily(
        "postgres://nobody:nothing@127.0.0.1:1/nowhere",
        memory::store::Way::Direct,
        memory::settings::Database::default(),
    )
    .unwrap();
    let tools = Tools::new(db, Embedder::over("no-models".into()));
    let shutdown = CancellationToken::new();
    let routes = axum::Router::new().nest_service("/mcp", http_service(&tools, &[], shutdown.clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, shutdown)
}

fn post(address: &str, body: &Value) -> RequestBuilder {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.post(address).header("accept", "application/json, text/event-stream").json(body)
}

fn tools_list() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
}

#[tokio::test]
async fn shakes_hands_and_lists_tools_without_a_session() {
    let (address, _shutdown) = serve().await;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let response = post(&address, &initialize).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers().get("mcp-session-id").is_none());
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "agent-memory");

    let answer: Value = post(&address, &tools_list()).send().await.unwrap().json().await.unwrap();
    let names: Vec<_> = answer["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(
        names,
        [
            "create_lesson",
            "file_history",
            "find_fix",
            "forget",
            "get_observations",
            "how",
            "propose_lessons",
            "save_memory",
            "search",
            "search_lessons",
            "timeline",
            "update_memory"
        ]
    );
}

#[tokio::test]
async fn turns_away_other_origins_and_hosts() {
    let (address, _shutdown) = serve().await;
    for (header, value, expected) in [
        ("origin", "http://evil.example", StatusCode::FORBIDDEN),
        ("origin", "null", StatusCode::FORBIDDEN),
        ("host", "evil.example", StatusCode::FORBIDDEN),
        ("origin", "http://localhost:6274", StatusCode::OK),
        ("origin", "http://[::1]:8080", StatusCode::OK),
        ("host", "[::1]:3377", StatusCode::OK),
        ("host", "localhost:3377", StatusCode::OK),
    ] {
        let response = post(&address, &tools_list()).header(header, value).send().await.unwrap();
        assert_eq!(response.status(), expected, "{header}: {value}");
    }
}

#[tokio::test]
async fn answers_nobody_whose_memory_it_is_not_told() {
    let (address, _shutdown) = serve().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                      "params": {"name": "search", "arguments": {"query": "anything"}}});
    let answer: Value = post(&address, &call).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer["result"]["content"].to_string().contains("nobody whose memory"), "{answer}");
}
