//! A client on the other end of a pipe.

use std::path::Path;
use std::time::{Duration, Instant};

use mcp::{Installation, Tools};
use memory::embed::Embedder;
use memory::home::Home;
use rmcp::model::{CallToolRequestParams, CallToolResult, ErrorCode};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::{ServiceExt as _, serve_client};
use serde_json::{Value, json};

type Client = RunningService<RoleClient, ()>;

async fn client_of(tools: Tools) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let running = tools.serve(theirs).await.expect("the handshake");
        running.waiting().await.expect("the server's task");
    });
    serve_client((), ours).await.expect("the handshake")
}

/// A home with a database URL that nobody listens at: port 1 is nobody's.
fn home_without_database(folder: &Path) -> Home {
    std::fs::write(folder.join("database-url"), "postgres://nobody:nothing@127.0.0.1:1/nowhere").unwrap();
    std::fs::write(folder.join("address"), "127.0.0.1:1").unwrap();
    std::fs::write(folder.join("token"), "token").unwrap();
    Home::at(folder)
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await
}

async fn refusal(client: &Client, tool: &'static str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await.expect("an answer, not a protocol error");
    assert_eq!(result.is_error, Some(true));
    assert_eq!(result.structured_content, None);
    result.content[0].as_text().expect("a text").text.clone()
}

#[tokio::test]
async fn lists_its_tools_with_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let client = client_of(Tools::of_installation(Installation::at(Home::at(folder.path())))).await;
    insta::assert_json_snapshot!(client.list_all_tools().await.unwrap());
}

#[tokio::test]
async fn introduces_itself_with_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let client = client_of(Tools::of_installation(Installation::at(Home::at(folder.path())))).await;
    let server = client.peer_info().expect("the server's introduction");
    assert_eq!(server.server_info.as_ref().map(|program| program.name.as_str()), Some("agent-memory"));
    assert!(server.instructions.as_deref().is_some_and(|text| text.contains("Search it BEFORE")));
}

#[tokio::test]
async fn answers_a_bad_argument_with_a_result_that_says_what_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let client = client_of(Tools::of_installation(Installation::at(home_without_database(folder.path())))).await;
    for (tool, arguments, expected) in [
        ("search", json!({}), "missing field `query`"),
        ("search", json!({"query": " "}), "say what to look for"),
        ("search", json!({"query": "x", "type": "file"}), "`prompt`, `call` and `note`"),
        ("search", json!({"query": "x", "dateStart": "soon"}), "ISO 8601"),
        ("search", json!({"query": "x", "limit": 1000}), "from 1 to 100"),
        ("timeline", json!({}), "neither `anchor` nor `query`"),
        ("timeline", json!({"anchor": "call-1", "depth_after": 51}), "from 0 to 50"),
        ("get_observations", json!({"ids": ["memory-1"]}), "ids look like"),
        ("get_observations", json!({"ids": ["call-1"], "max_tokens": 5}), "from 200 to 100000"),
        ("save_memory", json!({"title": "x"}), "missing field `text`"),
        ("file_history", json!({"path": "a.rs", "limit": 0}), "from 1 to 50"),
        ("find_fix", json!({"error": " "}), "say what to look for"),
        ("how", json!({}), "missing field `what`"),
        ("forget", json!({"query": "x", "dry_run": false}), "`dry_run` true"),
        ("forget", json!({}), "neither `ids` nor `query`"),
        ("update_memory", json!({"id": "call-1", "text": "x"}), "such as `note-7`"),
        ("update_memory", json!({"id": "note-1"}), "neither `text` nor `title`"),
    ] {
        let text = refusal(&client, tool, arguments).await;
        assert!(text.starts_with("error: ") && text.contains(expected) && text.contains("\nhint: "), "{tool}: {text}");
    }
}

#[tokio::test]
async fn answers_an_unknown_tool_with_a_protocol_error() {
    let folder = tempfile::tempdir().unwrap();
    let client = client_of(Tools::of_installation(Installation::at(Home::at(folder.path())))).await;
    match call(&client, "remember_everything", json!({})).await {
        Err(ServiceError::McpError(error)) => assert_eq!(error.code, ErrorCode::INVALID_PARAMS),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn says_that_nothing_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let client = client_of(Tools::of_installation(Installation::at(Home::at(folder.path())))).await;
    let text = refusal(&client, "search", json!({"query": "x"})).await;
    assert!(text.contains("not installed") && text.contains("`cargo xtask up`"), "{text}");
}

#[tokio::test]
async fn says_in_time_that_the_database_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let client = client_of(Tools::of_installation(Installation::at(home_without_database(folder.path())))).await;
    let started = Instant::now();
    let texts = tokio::join!(
        refusal(&client, "search", json!({"query": "x"})),
        refusal(&client, "timeline", json!({"anchor": "2027-05-01"})),
        refusal(&client, "get_observations", json!({"ids": ["call-1"]})),
        refusal(&client, "save_memory", json!({"text": "x"})),
        refusal(&client, "file_history", json!({"path": "a.rs"})),
        refusal(&client, "find_fix", json!({"error": "x"})),
        refusal(&client, "how", json!({"what": "x"})),
        refusal(&client, "forget", json!({"ids": ["call-1"]})),
        refusal(&client, "update_memory", json!({"id": "note-1", "text": "x"})),
    );
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    for text in [texts.0, texts.1, texts.2, texts.3, texts.4, texts.5, texts.6, texts.7, texts.8] {
        assert!(text.contains("not reachable") && text.contains("`cargo xtask status`"), "{text}");
    }
}

#[tokio::test]
async fn takes_a_pool_and_a_model_of_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let db = memory::store::connect_lazily(
        "postgres://nobody:nothing@127.0.0.1:1/nowhere",
        memory::store::Way::Direct,
        memory::settings::Database::default(),
    )
    .unwrap();
    let client = client_of(Tools::new(db, Embedder::over(folder.path().to_owned()))).await;
    let text = refusal(&client, "search", json!({"query": "x"})).await;
    assert!(text.contains("not reachable"), "{text}");
}
