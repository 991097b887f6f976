//! The real Codex, remembered: its hooks and its MCP server are ours, only its model is a script.

use anyhow::Result;
use serde_json::{Value, json};
use tests::clients::codex::{self, Codex};
use tests::clients::{Report, Session, User};
use tests::journal::ToolCall;
use tests::model::{Block, Model, call, say};
use tests::stack::Stack;
use tests::summary;

const PROMPT: &str = "Write the inventory and count it";
const PATCH: &str = "*** Begin Patch\n*** Add File: inventory.txt\n+nut\n+bolt\n*** End Patch\n";
const COUNT: &str = "wc -l inventory.txt && echo zanzibar-ledger";
const SORT: &str = "sort inventory.txt";
const FAILING: &str = "cat no-such-ledger.txt";
const READ: &str = "cat inventory.txt";

#[tokio::test]
async fn a_session_is_remembered_and_found_when_it_is_resumed() -> Result<()> {
    let Some(codex) = Codex::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "codex").await?;

    let report = works(&codex, &user).await?;
    check_undisturbed(&report);
    stack.drained().await?;
    check_journal(&stack, &report).await?;

    let turns = vec![
        vec![call("mcp__agent_memory__search", json!({"query": "zanzibar-ledger"}))],
        vec![say("It was counted with wc.")],
    ];
    let model = Model::start(turns).await?;
    let prompt = "How was the inventory counted?";
    let session = Session { user: &user, model: &model, prompt, resumes: Some(report.session_id()) };
    let second = codex.run(session).await?;
    assert_eq!(second.last_message(), "It was counted with wc.");
    let seen = model.tool_results();
    assert!(seen.contains(COUNT), "the model sees the first session's command in: {seen}");

    stack.drained().await?;
    let sessions = stack.journal().sessions().await?;
    let [session] = sessions.as_slice() else { panic!("one session went on: {sessions:?}") };
    assert_eq!((session.external_id.as_str(), session.status.as_str()), (report.session_id(), "ended"));
    let prompts = stack.journal().prompts().await?;
    let said: Vec<_> = prompts.iter().map(|row| (row.prompt.as_deref(), row.answer.as_deref())).collect();
    assert_eq!(said, [(Some(PROMPT), Some("Two lines.")), (Some(prompt), Some("It was counted with wc."))]);
    let calls = stack.journal().tool_calls().await?;
    let search = calls.last().expect("calls were made");
    assert_eq!((search.tool_name.as_str(), search.success), ("mcp__agent_memory__search", true));
    assert_eq!((&search.input, search.prompt.as_deref()), (&json!({"query": "zanzibar-ledger"}), Some(prompt)));
    Ok(())
}

#[tokio::test]
async fn a_session_without_the_server_is_undisturbed_and_remembered_later() -> Result<()> {
    let Some(codex) = Codex::find().await? else { return Ok(()) };
    let mut stack = Stack::stopped().await?;
    let user = User::registered(&stack, "codex").await?;

    let report = works(&codex, &user).await?;
    check_undisturbed(&report);
    let wall_ms = report.wall.as_millis();
    summary::line(&format!("Codex: a session of five turns took {wall_ms} ms with hooks and no server"));
    let calls = ["PostToolUse"; 5];
    let fired = [&["SessionStart", "UserPromptSubmit"], calls.as_slice(), &["Stop", "SessionEnd"]].concat();
    assert_eq!(stack.spooled_events()?, fired);

    stack.start_server().await?;
    stack.drained().await?;
    check_journal(&stack, &report).await
}

/// Codex runs no hook after a call that it refuses, nor after a patch within a command, and tells none whether a command
/// failed. All that stands in its rollout.
#[tokio::test]
async fn what_no_hook_tells_is_taken_from_the_rollout() -> Result<()> {
    let Some(codex) = Codex::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "codex").await?;
    let refused = "*** Begin Patch\n*** Update File: no-such-ledger.txt\n@@\n-nut\n+bolt\n*** End Patch\n";
    let in_a_command = format!("apply_patch <<'EOF'\n{PATCH}EOF\n");
    let turns = vec![
        vec![call("apply_patch", json!(refused))],
        vec![command(&in_a_command)],
        vec![command(FAILING)],
        vec![call("mcp__agent_memory__get_observations", json!({"ids": "none"}))],
        vec![command(READ)],
        vec![say("Done.")],
    ];
    let model = Model::start(turns).await?;
    codex.run(Session { user: &user, model: &model, prompt: PROMPT, resumes: None }).await?;
    stack.drained().await?;
    stack.journal().transcripts_read().await?;

    let calls = stack.journal().tool_calls().await?;
    let made: Vec<_> = calls.iter().map(|call| (call.success, text(&call.input))).collect();
    assert_eq!(
        made,
        [(false, refused), (true, in_a_command.as_str()), (false, FAILING), (false, "none"), (true, READ)],
        "{calls:?}"
    );
    assert!(calls[2].error.as_deref().is_some_and(|error| error.contains("no-such-ledger")), "{:?}", calls[2]);
    assert!(calls.iter().filter(|call| call.tool_name == "Bash").all(|call| call.duration_ms.is_some()), "{calls:?}");
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    Ok(())
}

/// A patch, two commands in one turn, a command that fails, a file read.
pub(super) async fn works(codex: &Codex, user: &User) -> Result<Report> {
    let turns = vec![
        vec![say("Writing it."), call("apply_patch", json!(PATCH))],
        vec![command(COUNT), command(SORT)],
        vec![command(FAILING)],
        vec![command(READ)],
        vec![say("Two lines.")],
    ];
    let model = Model::start(turns).await?;
    let report = codex.run(Session { user, model: &model, prompt: PROMPT, resumes: None }).await?;
    assert_eq!(model.turns().len(), 5, "each turn of the script was asked for once");
    assert_eq!(report.last_message(), "Two lines.");
    assert_eq!(std::fs::read_to_string(user.project.join("inventory.txt"))?, "nut\nbolt\n");
    Ok(report)
}

/// As the model calls it; hooks are told of `Bash` and `command`.
fn command(line: &str) -> Block {
    call("exec_command", json!({"cmd": line}))
}

/// Nothing that Codex shows speaks of our hooks or of our server.
fn check_undisturbed(report: &Report) {
    assert_eq!(report.complaints(), [""; 0]);
    assert!(!report.stderr.contains("hook"), "{}", report.stderr);
}

pub(super) async fn check_journal(stack: &Stack, report: &Report) -> Result<()> {
    let sessions = stack.journal().sessions().await?;
    let [session] = sessions.as_slice() else { panic!("one session was made: {sessions:?}") };
    assert_eq!((session.agent.as_str(), session.external_id.as_str()), ("codex", report.session_id()));
    assert_eq!((session.status.as_str(), session.model.as_deref()), ("ended", Some(codex::MODEL)));
    let prompts = stack.journal().prompts().await?;
    let said: Vec<_> = prompts.iter().map(|row| (row.prompt.as_deref(), row.answer.as_deref())).collect();
    assert_eq!(said, [(Some(PROMPT), Some("Two lines."))]);

    let mut calls = stack.journal().tool_calls().await?;
    // The two calls of one turn may end in either order, but both before the next turn.
    calls[1..3].sort_by_key(|call| text(&call.input) != COUNT);
    let made: Vec<_> = calls.iter().map(|call| (call.tool_name.as_str(), &call.input)).collect();
    let input = |line: &str| json!({"command": line});
    let inputs = [PATCH, COUNT, SORT, FAILING, READ].map(input);
    let tools = ["apply_patch", "Bash", "Bash", "Bash", "Bash"];
    assert_eq!(made, tools.into_iter().zip(&inputs).collect::<Vec<_>>());
    let worked = |call: &&ToolCall| text(&call.input) != FAILING;
    assert!(calls.iter().filter(worked).all(|call| call.success && call.error.is_none()), "{calls:?}");
    let output = calls[1].output_preview.as_deref().unwrap_or_default();
    assert!(output.contains("2 inventory.txt\nzanzibar-ledger"), "{output}");
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    Ok(())
}

/// The one text in a call's input.
fn text(input: &Value) -> &str {
    let mut members = input.as_object().into_iter().flat_map(|members| members.values());
    members.find_map(Value::as_str).unwrap_or_default()
}
