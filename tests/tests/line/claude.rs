//! The real Claude Code, remembered: its hooks and its MCP server are ours, only its model is a script.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tests::clients::claude::{Claude, HookRun};
use tests::clients::{Report, Session, User};
use tests::model::{Block, Model, call, say};
use tests::stack::Stack;
use tests::summary;

const PROMPT: &str = "Write the inventory and count it";
const COUNT: &str = "wc -l inventory.txt && echo zanzibar-ledger";
const FAILING: &str = "cat no-such-ledger.txt";

/// Nine hooks that wait for a server in vain take far longer than this, beyond the noise of a busy machine.
const NO_DELAY: Duration = Duration::from_millis(1_500);

#[tokio::test]
async fn a_session_is_remembered_and_found_by_the_next_one() -> Result<()> {
    let Some(claude) = Claude::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "claude").await?;

    let report = works(&claude, &user).await?;
    check_undisturbed(&report, &["PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit", "SessionStart"]);
    stack.drained().await?;
    check_journal(&stack, &report, &user).await?;

    let turns = vec![
        vec![call("mcp__agent-memory__search", json!({"query": "zanzibar-ledger"}))],
        vec![say("It was counted with wc.")],
    ];
    let model = Model::start(turns).await?;
    let prompt = "How was the inventory counted?";
    let report = claude.run(Session { user: &user, model: &model, prompt, resumes: None }).await?;
    assert_eq!(report.result(), "It was counted with wc.");
    assert_eq!(report.mcp_servers(), ["agent-memory: connected"]);
    let seen = model.tool_results();
    assert!(seen.contains(COUNT), "the model sees the first session's command in: {seen}");
    Ok(())
}

#[tokio::test]
async fn a_session_without_the_server_is_undisturbed_and_remembered_later() -> Result<()> {
    let Some(claude) = Claude::find().await? else { return Ok(()) };
    let mut stack = Stack::stopped().await?;
    let user = User::registered(&stack, "claude").await?;
    let bare = User::without_hooks(&stack, "bare")?;

    let unhooked = works(&claude, &bare).await?;
    let report = works(&claude, &user).await?;
    check_undisturbed(&report, &["PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit", "SessionStart"]);
    assert!(
        report.wall < unhooked.wall * 2 + NO_DELAY,
        "{} ms with hooks and no server, {} ms without hooks",
        report.wall.as_millis(),
        unhooked.wall.as_millis()
    );
    summary::line(&format!(
        "Claude Code: a session of five turns took {} ms with hooks and no server, {} ms without hooks",
        report.wall.as_millis(),
        unhooked.wall.as_millis()
    ));
    // Claude Code does not report the hook of its own end, so the spool is asked.
    let fired = stack.spooled_events()?;
    assert_eq!(
        fired,
        [
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "PostToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PostToolUse",
            "Stop",
            "SessionEnd"
        ]
    );

    stack.start_server().await?;
    stack.drained().await?;
    check_journal(&stack, &report, &user).await
}

/// A Write, two Bash calls in one turn, a Bash call that fails, a Read.
pub(super) async fn works(claude: &Claude, user: &User) -> Result<Report> {
    let bash = |command: &str| call("Bash", json!({"command": command, "description": "Look"}));
    let turns: Vec<Vec<Block>> = vec![
        vec![say("Writing it."), call("Write", json!({"file_path": inventory(user), "content": "nut\nbolt\n"}))],
        vec![bash(COUNT), bash("sort inventory.txt")],
        vec![bash(FAILING)],
        vec![call("Read", json!({"file_path": inventory(user)}))],
        vec![say("Two lines.")],
    ];
    let model = Model::start(turns).await?;
    let report = claude.run(Session { user, model: &model, prompt: PROMPT, resumes: None }).await?;
    assert_eq!(model.turns().len(), 5, "each turn of the script was asked for once");
    assert_eq!(report.result(), "Two lines.");
    Ok(report)
}

fn inventory(user: &User) -> PathBuf {
    user.project.join("inventory.txt")
}

/// Nothing that Claude Code shows speaks of our hooks, and each of those events was handled.
fn check_undisturbed(report: &Report, events: &[&str]) {
    assert_eq!(report.stderr, "");
    assert!(!report.is_error());
    let runs = report.hooks();
    for event in events {
        assert!(runs.iter().any(|run| run.event == *event), "no hook ran for {event}: {runs:?}");
    }
    for run in runs {
        let HookRun { event, outcome, output } = run;
        assert_eq!((outcome.as_str(), output.as_str()), ("success", ""), "the hook of {event}");
    }
}

pub(super) async fn check_journal(stack: &Stack, report: &Report, user: &User) -> Result<()> {
    let sessions = stack.journal().sessions().await?;
    assert_eq!(sessions.len(), 1);
    assert_eq!((sessions[0].external_id.as_str(), sessions[0].status.as_str()), (report.session_id(), "ended"));
    let prompts = stack.journal().prompts().await?;
    let said: Vec<_> = prompts.iter().map(|row| (row.prompt.as_deref(), row.answer.as_deref())).collect();
    assert_eq!(said, [(Some(PROMPT), Some("Two lines."))]);

    let calls = stack.journal().tool_calls().await?;
    let made: Vec<_> = calls.iter().map(|call| (call.tool_name.as_str(), call.success)).collect();
    // The two calls of one turn may end in either order, but both before the next turn.
    assert_eq!(made, [("Write", true), ("Bash", true), ("Bash", true), ("Bash", false), ("Read", true)]);
    assert_eq!(calls[0].input, json!({"file_path": inventory(user), "content": "nut\nbolt\n"}));
    assert!(calls[1..3].iter().any(|call| call.input["command"] == COUNT));
    assert_eq!(calls[3].input["command"], FAILING);
    let error = calls[3].error.as_deref().unwrap_or_default();
    assert!(error.starts_with("Exit code 1") && error.contains("no-such-ledger"), "{error}");
    assert!(calls.iter().all(|call| call.duration_ms.is_some()), "{calls:?}");
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    Ok(())
}
