//! What a real Claude Code was once seen to send, sent again.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use serde_json::Value;
use tests::recordings::{self, Recording};
use tests::stack::Stack;
use tests::summary;

#[tokio::test]
async fn keeps_every_prompt_and_call_of_the_recorded_sessions() -> Result<()> {
    let recordings = recordings::claude_code()?;
    if recordings.is_empty() {
        summary::line("recorded hook payloads: NOT TESTED, this machine has none");
    }
    for recording in recordings {
        check(&recording).await?;
        summary::line(&format!("recorded hook payloads: {}, {} events", recording.name, recording.events.len()));
    }
    Ok(())
}

async fn check(recording: &Recording) -> Result<()> {
    let stack = Stack::running().await?;
    for event in &recording.events {
        stack.hook(event).await?;
    }
    stack.drained().await?;
    assert_eq!(stack.rejected()?, [] as [std::path::PathBuf; 0]);

    let prompts = stack.journal().prompts().await?;
    let asked: HashMap<&str, &str> = fields(recording, &["UserPromptSubmit"])
        .map(|payload| (text(payload, "prompt_id"), text(payload, "prompt")))
        .collect();
    for (id, prompt) in &asked {
        let row = prompts.iter().find(|row| row.prompt_id == *id);
        assert_eq!(row.and_then(|row| row.prompt.as_deref()), Some(*prompt));
    }
    for payload in fields(recording, &["Stop"]) {
        let row = prompts.iter().find(|row| row.prompt_id == text(payload, "prompt_id"));
        assert_eq!(row.and_then(|row| row.answer.as_deref()), payload["last_assistant_message"].as_str());
    }

    let calls = stack.journal().tool_calls().await?;
    let mut seen = HashSet::new();
    for payload in fields(recording, &["PostToolUse", "PostToolUseFailure"]) {
        let id = text(payload, "tool_use_id");
        seen.insert(id);
        let Some(row) = calls.iter().find(|row| row.tool_use_id == id) else { panic!("{id} is missing") };
        assert_eq!(row.input, payload["tool_input"]);
        assert_eq!(row.tool_name, text(payload, "tool_name"));
        assert_eq!(row.error.as_deref(), payload["error"].as_str());
        assert_eq!(row.success, payload["error"].is_null());
        assert_eq!(row.duration_ms, payload["duration_ms"].as_i64());
        assert_eq!(row.subagent_type.as_deref(), payload["agent_type"].as_str());
        assert_eq!(row.prompt.as_deref(), asked.get(text(payload, "prompt_id")).copied());
    }
    assert_eq!(calls.len(), seen.len(), "no call is there that was not made");
    Ok(())
}

fn fields<'a>(recording: &'a Recording, names: &'a [&str]) -> impl Iterator<Item = &'a Value> {
    recording.events.iter().filter(|event| names.contains(&event.name.as_str())).map(|event| &event.payload)
}

fn text<'a>(payload: &'a Value, name: &str) -> &'a str {
    payload[name].as_str().unwrap_or_default()
}
