//! The server's log: of a bounded size, one JSON object a line where the settings say so, and with nothing of what is remembered or
//! asked in it; nor is there in the metrics.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::canaries::{Canary, canaries};
use tests::conversation::{Call, Conversation, Outcome};
use tests::mcp_client::{OverHttp, Peer};
use tests::stack::Stack;

/// A word that stands in all that is sent, and must not stand in a log.
const PRIVATE: &str = "axolotlprivate";

#[tokio::test]
async fn holds_nothing_of_what_is_recorded_asked_or_not_understood() -> Result<()> {
    let (stack, _) = logging_json("10 MB").await?;
    let all = canaries(8);
    let mut session = Conversation::new(stack.scratch());
    stack.hook(&session.starts()).await?;
    let mut peer = OverHttp::connect(&stack).await?;
    for canary in all.iter().step_by(5) {
        send(&stack, &mut session, canary).await?;
        let text = format!("{} {PRIVATE}", canary.text);
        for tool in ["search", "find_fix", "how", "timeline", "file_history", "no_such_tool"] {
            let wrong =
                json!({"query": text, "error": text, "goal": text, "path": text, "since": text, "kinds": [text]});
            peer.request("tools/call", json!({"name": tool, "arguments": wrong})).await?;
        }
        peer.call("search", json!({"query": text})).await?;
        stack.post("/api/observations/search").json(&json!({"query": text, "project": text})).send().await?;
    }
    let told = [stack.server_output(), stack.metrics().await?];
    assert!(told[0].contains("a body is no event"), "the log is where it is looked for:\n{}", told[0]);
    for text in &told {
        assert!(!text.contains(PRIVATE), "{text}");
        for canary in &all {
            assert!(!text.contains(&canary.secret), "it holds a {}", canary.kind);
        }
    }
    Ok(())
}

/// As a prompt, in a call, and in bodies that are no events, each broken in another way.
async fn send(stack: &Stack, session: &mut Conversation, canary: &Canary) -> Result<()> {
    let text = format!("{} {PRIVATE}", canary.text);
    stack.post_bare(&session.asks(&text)).await?;
    let response = json!({"stdout": text, "stderr": ""});
    let call = Call { tool: "Bash", input: json!({"command": text}), outcome: Outcome::Response(response) };
    stack.post_bare(&session.calls(call).1).await?;
    let broken = [
        text.clone(),
        json!(text).to_string(),
        json!([text]).to_string(),
        json!({"session_id": {"a": text}, "hook_event_name": "Stop"}).to_string(),
        json!({"session_id": "s", "hook_event_name": [text]}).to_string(),
        json!({"envelope": text, "event_id": text, "payload": text}).to_string(),
        json!({"envelope": 1, "event_id": "x", "agent": text, "event": text, "occurred_at_us": text, "payload": {}})
            .to_string(),
    ];
    for body in broken {
        stack.post("/api/hooks/claude-code").body(body).send().await?;
    }
    Ok(())
}

#[tokio::test]
async fn is_put_aside_when_it_has_grown_long_and_only_so_many_files_stay() -> Result<()> {
    let (stack, folder) = logging_json("2 kB").await?;
    for _ in 0..60 {
        stack.client().get(stack.url("/metrics")).send().await?;
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let text = std::fs::read_to_string(entry.path())?;
        assert!(text.len() < 4_000, "{} bytes", text.len());
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).with_context(|| format!("`{line}` is no JSON"))?;
            assert!(line["message"].is_string() && line["timestamp"].is_string(), "{line}");
        }
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["server.log", "server.log.1", "server.log.2"]);
    Ok(())
}

/// A server that logs JSON into the home's folder for logs.
async fn logging_json(max_bytes: &str) -> Result<(Stack, std::path::PathBuf)> {
    let mut stack = Stack::stopped().await?;
    std::fs::create_dir_all(stack.home().config())?;
    let settings = format!("[logs]\nmax_bytes = \"{max_bytes}\"\nfiles = 2\nformat = \"json\"\n");
    std::fs::write(stack.home().config().join("settings.toml"), settings)?;
    let folder = stack.home().logs();
    stack.set("AGENT_MEMORY_LOG_FILE", &folder.join("server.log").display().to_string());
    stack.start_server().await?;
    Ok((stack, folder))
}
