//! The recall tools as an agent sees them: over the stdio of the real program, and at the server's `/mcp`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::clients::claude::Claude;
use tests::clients::{Session, User};
use tests::conversation::Conversation;
use tests::mcp_client::{OverHttp, OverStdio, Peer};
use tests::model::{Model, call, say};
use tests::stack::Stack;

const TOOLS: [&str; 12] = [
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
    "update_memory",
];

/// From the program's start to its answer to `tools/list`.
const HANDSHAKE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn lists_its_tools_within_100_ms_of_its_start() -> Result<()> {
    let stack = Stack::stopped().await?;
    check_handshake(&stack).await
}

#[tokio::test]
async fn lists_its_tools_as_fast_with_the_database_away_and_then_says_so() -> Result<()> {
    let stack = Stack::stopped().await?;
    std::fs::write(stack.home().database_url_file(), "postgres://nobody:nothing@127.0.0.1:9/none\n")?;
    check_handshake(&stack).await?;

    let mut peer = OverStdio::start(stack.home().root()).await?;
    peer.initialize().await?;
    let response = peer.call("search", json!({"query": "anything"})).await?;
    assert_eq!(response["result"]["isError"], true, "{response}");
    let text = text(&response);
    assert!(text.contains("database") && text.contains("cargo xtask"), "it says what is away and what to do: {text}");
    Ok(())
}

#[tokio::test]
async fn ends_well_when_its_stdin_closes_before_any_request() -> Result<()> {
    let stack = Stack::stopped().await?;
    let status = OverStdio::start(stack.home().root()).await?.close().await?;
    assert!(status.success(), "it ended with {status}");
    Ok(())
}

#[tokio::test]
async fn ends_well_when_its_stdin_closes_after_use() -> Result<()> {
    let stack = Stack::stopped().await?;
    let mut peer = OverStdio::start(stack.home().root()).await?;
    peer.initialize().await?;
    let status = peer.close().await?;
    assert!(status.success(), "it ended with {status}");
    Ok(())
}

#[tokio::test]
async fn every_tool_works_over_stdio() -> Result<()> {
    let stack = Stack::running().await?;
    let mut peer = OverStdio::start(stack.home().root()).await?;
    let introduction = peer.initialize().await?;
    assert!(introduction["instructions"].as_str().is_some_and(|text| text.contains("search")), "{introduction}");
    check_tools(&stack, &mut peer).await
}

#[tokio::test]
async fn every_tool_works_over_http() -> Result<()> {
    let stack = Stack::running().await?;
    check_tools(&stack, &mut OverHttp::connect(&stack).await?).await
}

#[tokio::test]
async fn every_tool_works_over_stdio_without_the_server() -> Result<()> {
    let stack = Stack::stopped().await?;
    let mut peer = OverStdio::start(stack.home().root()).await?;
    peer.initialize().await?;
    let saved = structured(&peer.call("save_memory", json!({"text": "The quokka test is flaky on Mondays"})).await?);
    let found = structured(&peer.call("search", json!({"query": "quokka"})).await?);
    assert!(found.to_string().contains(saved["id"].as_str().context("an id")?), "{found}");
    Ok(())
}

#[tokio::test]
async fn says_what_is_wrong_with_a_call_over_stdio() -> Result<()> {
    let stack = Stack::stopped().await?;
    let mut peer = OverStdio::start(stack.home().root()).await?;
    peer.initialize().await?;
    check_refusals(&mut peer).await
}

#[tokio::test]
async fn says_what_is_wrong_with_a_call_over_http() -> Result<()> {
    let stack = Stack::running().await?;
    check_refusals(&mut OverHttp::connect(&stack).await?).await
}

#[tokio::test]
async fn shows_the_same_tools_over_stdio_and_http() -> Result<()> {
    let stack = Stack::running().await?;
    let mut stdio = OverStdio::start(stack.home().root()).await?;
    stdio.initialize().await?;
    let over_stdio = stdio.request("tools/list", json!({})).await?;
    let over_http = OverHttp::connect(&stack).await?.request("tools/list", json!({})).await?;
    // What the schemas are, a snapshot in `mcp` holds.
    assert_eq!(over_http["result"]["tools"], over_stdio["result"]["tools"]);
    Ok(())
}

#[tokio::test]
async fn claude_code_calls_every_tool() -> Result<()> {
    let Some(claude) = Claude::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "claude").await?;
    let mut session = Conversation::new(stack.scratch());
    stack.post_bare(&session.asks("Find the axolotl crate")).await?;
    stack.post_bare(&session.runs("cargo search axolotl").1).await?;
    let saved = stack.post("/api/observations").json(&json!({"text": "The axolotl crate is yanked"})).send().await?;
    let note: Value = saved.json().await?;

    let calls = [
        ("search", json!({"query": "axolotl"}), "cargo search axolotl"),
        ("get_observations", json!({"ids": [note["id"]]}), "is yanked"),
        ("timeline", json!({"anchor": note["id"]}), "The axolotl crate is yanked"),
        ("file_history", json!({"path": "src/axolotl.rs"}), "No recorded call names this file"),
        ("find_fix", json!({"error": "axolotl not found"}), "No recorded call failed like this"),
        ("how", json!({"what": "find the axolotl crate"}), "last_worked"),
        ("save_memory", json!({"text": "Salamander does the same"}), "note-"),
        ("update_memory", json!({"id": note["id"], "text": "The axolotl crate is back"}), "supersedes"),
        ("forget", json!({"query": "salamander"}), "Nothing was removed"),
        (
            "create_lesson",
            json!({"rule": "Pin the quetzal", "trigger_pattern": "cargo add quetzal"}),
            "informs from now on",
        ),
        ("search_lessons", json!({"query": "quetzal"}), "Pin the quetzal"),
        ("propose_lessons", json!({"project": "(unfiled)"}), "wait for the user"),
    ];
    let mut names: Vec<_> = calls.iter().map(|(tool, ..)| *tool).collect();
    names.sort_unstable();
    assert_eq!(names, TOOLS, "each tool once");
    let turns = calls.iter().map(|(tool, input, _)| vec![call(&format!("mcp__agent-memory__{tool}"), input.clone())]);
    let model = Model::start(turns.chain([vec![say("Done.")]]).collect()).await?;
    let report = claude.run(Session { user: &user, model: &model, prompt: "Use the memory", resumes: None }).await?;
    assert_eq!(report.result(), "Done.", "{}", report.stderr);
    let seen = model.tool_results();
    for (tool, _, expected) in calls {
        assert!(seen.contains(expected), "{tool} gives {expected:?}: {seen}");
    }
    Ok(())
}

/// The best of a few starts, because a busy machine's scheduling is not the program's doing.
async fn check_handshake(stack: &Stack) -> Result<()> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let mut peer = OverStdio::start(stack.home().root()).await?;
        peer.initialize().await?;
        let answer = peer.request("tools/list", json!({})).await?;
        best = best.min(start.elapsed());
        let tools = answer["result"]["tools"].as_array().context("a list of tools")?;
        let mut names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, TOOLS);
    }
    assert!(best < HANDSHAKE, "the fastest of five took {} ms", best.as_millis());
    Ok(())
}

/// Uses each tool once, on a journal with one prompt, one call and the note that is saved here.
async fn check_tools(stack: &Stack, peer: &mut impl Peer) -> Result<()> {
    let mut session = Conversation::new(stack.scratch());
    stack.post_bare(&session.asks("Find the axolotl crate")).await?;
    stack.post_bare(&session.runs("cargo search axolotl").1).await?;

    let note = json!({"text": "The axolotl crate is yanked; use salamander", "title": "Axolotl"});
    let saved = structured(&peer.call("save_memory", note).await?);
    let note_id = saved["id"].as_str().context("the saved note's id")?.to_owned();

    let found = structured(&peer.call("search", json!({"query": "axolotl", "limit": 10})).await?);
    let hits = found["hits"].as_array().context("a list of hits")?;
    let ids: Vec<_> = hits.iter().filter_map(|hit| hit["id"].as_str()).collect();
    assert_eq!(ids.len(), 3, "the prompt, the call and the note: {found}");
    assert!(ids.contains(&note_id.as_str()), "{found}");

    let whole = structured(&peer.call("get_observations", json!({"ids": ids})).await?).to_string();
    assert!(whole.contains("Find the axolotl crate") && whole.contains("cargo search axolotl"), "{whole}");
    assert!(whole.contains("use salamander"), "{whole}");

    let call_id = ids.iter().find(|id| id.starts_with("call")).context("the call's id")?;
    let around = structured(&peer.call("timeline", json!({"anchor": call_id, "depth_before": 5})).await?).to_string();
    assert!(around.contains("Find the axolotl crate"), "{around}");

    let ways = structured(&peer.call("how", json!({"what": "find the axolotl crate"})).await?);
    assert_eq!(ways["commands"][0]["command"], "cargo search axolotl", "{ways}");
    let fixes = structured(&peer.call("find_fix", json!({"error": "axolotl"})).await?);
    assert_eq!(fixes["fixes"], json!([]), "nothing failed: {fixes}");
    let history = structured(&peer.call("file_history", json!({"path": "src/axolotl.rs"})).await?);
    assert_eq!(history["touches"], json!([]), "nobody touched it: {history}");

    let change = json!({"id": note_id, "text": "The axolotl crate is back; salamander is not needed"});
    let updated = structured(&peer.call("update_memory", change).await?);
    assert_eq!(updated["supersedes"], json!(note_id));
    let doomed = json!({"ids": [updated["id"]], "dry_run": false});
    let forgotten = structured(&peer.call("forget", doomed).await?);
    assert_eq!(
        forgotten["documents"].as_array().map(Vec::len),
        Some(2),
        "the note and what it superseded: {forgotten}"
    );
    let found = structured(&peer.call("search", json!({"query": "salamander"})).await?);
    assert_eq!(found["shown"], 0, "{found}");

    let rule = json!({"rule": "Pin the quetzal crate", "severity": "critical", "trigger_pattern": "cargo add quetzal"});
    let lesson = structured(&peer.call("create_lesson", rule).await?);
    let lessons = structured(&peer.call("search_lessons", json!({"query": "quetzal"})).await?);
    assert_eq!(
        (&lessons["lessons"][0]["id"], &lessons["lessons"][0]["stops"]),
        (&lesson["id"], &json!(false)),
        "{lessons}"
    );
    let found = structured(&peer.call("search", json!({"query": "quetzal"})).await?);
    assert_eq!(found["hits"][0]["headline"], "Pin the quetzal crate", "a search finds lessons too: {found}");
    Ok(())
}

/// A tool's own refusal is a result that the model can read; an unknown tool is the protocol's error.
async fn check_refusals(peer: &mut impl Peer) -> Result<()> {
    for (tool, arguments) in [
        ("search", json!({})),
        ("search", json!({"query": 7})),
        ("search", json!({"query": "  "})),
        ("search", json!({"query": "x", "dateStart": "the day before yesterday"})),
        ("get_observations", json!({"ids": ["call-999999999"]})),
        ("timeline", json!({"anchor": "nonsense"})),
        ("save_memory", json!({"title": "no text"})),
    ] {
        let response = peer.call(tool, arguments.clone()).await?;
        let refused = response["result"]["isError"] == true || response["error"]["code"] == -32602;
        assert!(refused, "{tool} with {arguments} gave {response}");
    }
    for (tool, arguments) in [
        ("forget", json!({"query": "x", "dry_run": false})),
        ("forget", json!({"ids": ["call-999999999"], "dry_run": false})),
        ("update_memory", json!({"id": "note-999999999", "text": "x"})),
        ("file_history", json!({"path": "//"})),
        ("create_lesson", json!({"rule": "x", "trigger_pattern": ".*"})),
        ("create_lesson", json!({"rule": "x", "severity": "deadly"})),
        ("create_lesson", json!({"rule": " "})),
        ("propose_lessons", json!({"project": "no such project"})),
    ] {
        let response = peer.call(tool, arguments.clone()).await?;
        assert_eq!(response["result"]["isError"], true, "{tool} with {arguments} gave {response}");
    }
    let response = peer.call("forget_everything", json!({})).await?;
    assert_eq!(response["error"]["code"], -32602, "{response}");
    let response = peer.call("search", json!({"query": "still there?"})).await?;
    assert!(response["result"].is_object(), "it goes on after a refusal: {response}");
    Ok(())
}

/// The structured content of a call that went well; the text beside it must say the same.
fn structured(response: &Value) -> Value {
    let result = &response["result"];
    assert_ne!(result["isError"], true, "{response}");
    let content = result["structuredContent"].clone();
    assert!(content.is_object(), "{response}");
    assert!(!text(response).is_empty(), "old clients get text: {response}");
    content
}

fn text(response: &Value) -> String {
    let blocks = response["result"]["content"].as_array();
    blocks.into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
}
