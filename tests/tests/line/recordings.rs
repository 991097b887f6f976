//! What real agents were once seen to send, sent again.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use serde_json::Value;
use tests::recordings::{self, Recording};
use tests::stack::Stack;
use tests::summary;

#[tokio::test]
async fn keeps_every_prompt_and_call_of_claude_code() -> Result<()> {
    for recording in recorded("claude-code-2.1.332")? {
        check_claude_code(&recording).await?;
    }
    Ok(())
}

#[tokio::test]
async fn keeps_every_prompt_and_call_of_codex() -> Result<()> {
    for recording in recorded("codex-0.171.0")? {
        check_codex(&recording).await?;
    }
    Ok(())
}

#[tokio::test]
async fn keeps_every_prompt_and_call_of_gemini_cli() -> Result<()> {
    for recording in recorded("gemini-cli-0.61.0")? {
        check_gemini_cli(&recording).await?;
    }
    Ok(())
}

fn recorded(client: &str) -> Result<Vec<Recording>> {
    let recordings = recordings::of(client)?;
    if recordings.is_empty() {
        summary::line(&format!("recorded hook payloads of {client}: NOT TESTED, this machine has none"));
    }
    for recording in &recordings {
        summary::line(&format!("recorded hook payloads: {}, {} events", recording.name, recording.events.len()));
    }
    Ok(recordings)
}

/// Sends all events through the real hook; nothing may be refused.
async fn replayed(agent: &str, recording: &Recording) -> Result<Stack> {
    let stack = Stack::running().await?;
    for event in &recording.events {
        stack.hook_of(agent, event).await?;
    }
    stack.drained().await?;
    assert_eq!(stack.rejected()?, [] as [std::path::PathBuf; 0]);
    Ok(stack)
}

async fn check_claude_code(recording: &Recording) -> Result<()> {
    let stack = replayed("claude-code", recording).await?;
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

async fn check_codex(recording: &Recording) -> Result<()> {
    let stack = replayed("codex", recording).await?;
    let prompts = stack.journal().prompts().await?;
    let asked: HashMap<&str, &str> = fields(recording, &["UserPromptSubmit"])
        .map(|payload| (text(payload, "turn_id"), text(payload, "prompt")))
        .collect();
    assert_eq!(prompts.len(), asked.len());
    for row in &prompts {
        assert_eq!(row.prompt.as_deref(), asked.get(row.prompt_id.as_str()).copied());
    }
    for payload in fields(recording, &["Stop"]) {
        let row = prompts.iter().find(|row| row.prompt_id == text(payload, "turn_id"));
        assert_eq!(row.and_then(|row| row.answer.as_deref()), payload["last_assistant_message"].as_str());
    }
    let calls = stack.journal().tool_calls().await?;
    let made: Vec<_> = fields(recording, &["PostToolUse"]).collect();
    assert_eq!(calls.len(), made.len());
    for payload in made {
        let id = text(payload, "tool_use_id");
        let Some(row) = calls.iter().find(|row| row.tool_use_id == id) else { panic!("{id} is missing") };
        assert_eq!((&row.input, row.tool_name.as_str()), (&payload["tool_input"], text(payload, "tool_name")));
        // Line ends at the end of an output are not kept.
        let output = row.output_preview.as_deref().unwrap_or_default();
        assert_eq!(output, text(payload, "tool_response").trim_end());
        assert_eq!(row.prompt.as_deref(), asked.get(text(payload, "turn_id")).copied());
    }
    check_session(&stack, recording, fields(recording, &["SessionStart"]).find_map(|start| start["model"].as_str()))
        .await
}

async fn check_gemini_cli(recording: &Recording) -> Result<()> {
    let stack = replayed("gemini-cli", recording).await?;
    let prompts = stack.journal().prompts().await?;
    let said: Vec<_> = prompts.iter().map(|row| (row.prompt.as_deref(), row.answer.as_deref())).collect();
    let told: Vec<_> = fields(recording, &["AfterAgent"])
        .map(|payload| (payload["prompt"].as_str(), payload["prompt_response"].as_str()))
        .collect();
    assert_eq!(said, told);
    let calls = stack.journal().tool_calls().await?;
    let made: Vec<_> =
        calls.iter().map(|row| (row.tool_name.as_str(), &row.input, row.success, row.prompt.as_deref())).collect();
    let prompt = prompts.first().and_then(|row| row.prompt.as_deref());
    let told: Vec<_> = fields(recording, &["AfterTool"])
        .map(|payload| {
            let has_failed = text(&payload["tool_response"], "llmContent").contains("\nExit Code: ");
            (text(payload, "tool_name"), &payload["tool_input"], !has_failed, prompt)
        })
        .collect();
    assert!(told.iter().any(|call| !call.2), "one of the recorded commands failed");
    assert_eq!(made, told);
    check_session(&stack, recording, None).await
}

async fn check_session(stack: &Stack, recording: &Recording, model: Option<&str>) -> Result<()> {
    let sessions = stack.journal().sessions().await?;
    let [session] = sessions.as_slice() else { panic!("one session was recorded: {sessions:?}") };
    let id = recording.events.first().map(|event| text(&event.payload, "session_id"));
    assert_eq!((Some(session.external_id.as_str()), session.status.as_str()), (id, "ended"));
    assert_eq!(session.model.as_deref(), model);
    Ok(())
}

fn fields<'a>(recording: &'a Recording, names: &'a [&str]) -> impl Iterator<Item = &'a Value> {
    recording.events.iter().filter(|event| names.contains(&event.name.as_str())).map(|event| &event.payload)
}

fn text<'a>(payload: &'a Value, name: &str) -> &'a str {
    payload[name].as_str().unwrap_or_default()
}
