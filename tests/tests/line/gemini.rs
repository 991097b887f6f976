//! The real Gemini CLI, remembered: its hooks and its MCP server are ours, only its model is a script.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use tests::clients::gemini::{self, Gemini};
use tests::clients::{Report, Session, User};
use tests::model::{Block, Model, call, say};
use tests::stack::Stack;
use tests::{summary, wait};

const PROMPT: &str = "Write the inventory and count it";
const COUNT: &str = "wc -l inventory.txt && echo zanzibar-ledger";
const SORT: &str = "sort inventory.txt";
const FAILING: &str = "cat no-such-ledger.txt";

#[tokio::test]
async fn a_session_is_remembered_and_found_when_it_is_resumed() -> Result<()> {
    let Some(gemini) = Gemini::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "gemini").await?;

    let report = works(&gemini, &user).await?;
    check_undisturbed(&report);
    check_journal(&stack, &report, &user).await?;

    let turns = vec![
        vec![call("mcp_agent-memory_search", json!({"query": "zanzibar-ledger"}))],
        vec![say("It was counted with wc.")],
    ];
    let model = Model::start(turns).await?;
    let prompt = "How was the inventory counted?";
    let session = Session { user: &user, model: &model, prompt, resumes: Some(report.session_id()) };
    let second = gemini.run(session).await?;
    check_undisturbed(&second);
    assert_eq!(second.said(), "It was counted with wc.");
    let seen = model.tool_results();
    assert!(seen.contains(COUNT), "the model sees the first session's command in: {seen}");

    ended(&stack, 2).await?;
    assert_eq!(stack.journal().sessions().await?.len(), 1, "one session went on");
    let prompts = stack.journal().prompts().await?;
    let said: Vec<_> = prompts.iter().map(|row| (row.prompt.as_deref(), row.answer.as_deref())).collect();
    assert_eq!(said[1], (Some(prompt), Some("It was counted with wc.")));
    let calls = stack.journal().tool_calls().await?;
    let search = calls.last().expect("calls were made");
    assert_eq!((search.tool_name.as_str(), search.success), ("mcp_agent-memory_search", true));
    assert_eq!((&search.input, search.prompt.as_deref()), (&json!({"query": "zanzibar-ledger"}), Some(prompt)));
    Ok(())
}

#[tokio::test]
async fn a_session_without_the_server_is_undisturbed_and_remembered_later() -> Result<()> {
    let Some(gemini) = Gemini::find().await? else { return Ok(()) };
    let mut stack = Stack::stopped().await?;
    let user = User::registered(&stack, "gemini").await?;

    let report = works(&gemini, &user).await?;
    check_undisturbed(&report);
    let wall_ms = report.wall.as_millis();
    summary::line(&format!("Gemini CLI: a session of six turns took {wall_ms} ms with hooks and no server"));
    let calls = ["AfterTool"; 6];
    let fired = [&["SessionStart", "BeforeAgent"], calls.as_slice(), &["AfterAgent", "SessionEnd"]].concat();
    // The client does not wait for the hook of its own end.
    wait::until("the last hook", async || Ok((stack.spooled_events()?.len() >= fired.len()).then_some(()))).await?;
    assert_eq!(stack.spooled_events()?, fired);

    stack.start_server().await?;
    stack.drained().await?;
    check_journal(&stack, &report, &user).await
}

/// No hook of Gemini CLI names the model; its chat file does.
#[tokio::test]
async fn the_model_is_taken_from_the_chat() -> Result<()> {
    let Some(gemini) = Gemini::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "gemini").await?;
    let model = Model::start(vec![vec![say("Hello.")]]).await?;
    gemini.run(Session { user: &user, model: &model, prompt: "Hello?", resumes: None }).await?;
    let named = wait::until("reading the chat", async || {
        let sessions = stack.journal().sessions().await?;
        Ok(sessions.into_iter().find_map(|session| session.model))
    });
    assert_eq!(named.await?, gemini::MODEL);
    Ok(())
}

/// A file written, two commands in one turn, a command that fails, a file read, one that is not there.
pub(super) async fn works(gemini: &Gemini, user: &User) -> Result<Report> {
    let turns = vec![
        vec![say("Writing it."), call("write_file", write_input(user))],
        vec![command(COUNT), command(SORT)],
        vec![command(FAILING)],
        vec![call("read_file", json!({"file_path": inventory(user)}))],
        vec![call("read_file", json!({"file_path": "no-such-ledger.txt"}))],
        vec![say("Two lines.")],
    ];
    let model = Model::start(turns).await?;
    let report = gemini.run(Session { user, model: &model, prompt: PROMPT, resumes: None }).await?;
    assert_eq!(model.turns().len(), 6, "each turn of the script was asked for once");
    assert_eq!(report.said(), "Writing it.Two lines.");
    Ok(report)
}

fn command(line: &str) -> Block {
    call("run_shell_command", json!({"command": line}))
}

fn inventory(user: &User) -> PathBuf {
    user.project.join("inventory.txt")
}

fn write_input(user: &User) -> Value {
    json!({"file_path": inventory(user), "content": "nut\nbolt\n"})
}

/// Nothing that Gemini CLI shows speaks of our hooks or of our server.
fn check_undisturbed(report: &Report) {
    for word in ["hook", "Hook", "MCP", "agent-memory"] {
        assert!(!report.stderr.contains(word), "{}", report.stderr);
    }
}

/// Waits until the session has its last event: the client does not wait for the hook of its own end.
async fn ended(stack: &Stack, prompts: usize) -> Result<()> {
    wait::until("the session's end", async || {
        let sessions = stack.journal().sessions().await?;
        let is_ended = sessions.iter().all(|session| session.status == "ended") && !sessions.is_empty();
        Ok((is_ended && stack.journal().prompts().await?.len() >= prompts && stack.spooled()?.is_empty()).then_some(()))
    })
    .await
}

pub(super) async fn check_journal(stack: &Stack, report: &Report, user: &User) -> Result<()> {
    ended(stack, 1).await?;
    let sessions = stack.journal().sessions().await?;
    let [session] = sessions.as_slice() else { panic!("one session was made: {sessions:?}") };
    assert_eq!((session.agent.as_str(), session.external_id.as_str()), ("gemini-cli", report.session_id()));
    let prompts = stack.journal().prompts().await?;
    let said: Vec<_> = prompts.iter().map(|row| (row.prompt.as_deref(), row.answer.as_deref())).collect();
    assert_eq!(said, [(Some(PROMPT), Some("Writing it.\nTwo lines."))]);

    let mut calls = stack.journal().tool_calls().await?;
    // The two calls of one turn may end in either order, but both before the next turn.
    calls[1..3].sort_by_key(|call| call.input["command"] != COUNT);
    let made: Vec<_> = calls.iter().map(|call| (call.tool_name.as_str(), call.success, call.input.clone())).collect();
    let shell = |line: &str| json!({"command": line});
    assert_eq!(
        made,
        [
            ("write_file", true, write_input(user)),
            ("run_shell_command", true, shell(COUNT)),
            ("run_shell_command", true, shell(SORT)),
            ("run_shell_command", false, shell(FAILING)),
            ("read_file", true, json!({"file_path": inventory(user)})),
            ("read_file", false, json!({"file_path": "no-such-ledger.txt"})),
        ]
    );
    assert!(calls.iter().all(|call| call.success == call.error.is_none()), "{calls:?}");
    let output = calls[1].output_preview.as_deref().unwrap_or_default();
    assert!(output.contains("2 inventory.txt\nzanzibar-ledger"), "{output}");
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    Ok(())
}
