//! The doctor on a home where everything is wrong that can be: each thing is found, with a code, a reason and a command.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::conversation::Conversation;
use tests::stack::Stack;
use tests::{operator, programs, wait};

/// What the doctor must find, whatever else it finds.
const PROVOKED: [&str; 10] = [
    "disk.ceiling",
    "hooks.silent",
    "index.model_mismatch",
    "linkage.low",
    "outcomes.assumed",
    "queue.dead",
    "queue.unhandled",
    "spool.rejected",
    "spool.stuck",
    "token.refused",
];

#[tokio::test]
async fn finds_everything_that_is_wrong_and_names_the_command_that_mends_it() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    operator::install(&stack, "mini")?;
    stack.start_server().await?;
    let claude = register(&stack).await?;
    let found = diagnose(&stack, &claude).await?;
    let wrong: Vec<_> = PROVOKED.iter().filter(|code| found.codes.contains(**code)).collect();
    assert!(wrong.is_empty(), "nothing was provoked yet: {wrong:?}");

    let session = Conversation::new(stack.scratch());
    for number in 0..12 {
        stack.post_bare(&session.runs(&format!("echo {number}")).1).await?;
    }
    spoil_journal(&stack).await?;
    spoil_spool(&stack).await?;
    let transcripts = PathBuf::from(&claude).join("projects/-home-dev-widgets");
    std::fs::create_dir_all(&transcripts)?;
    std::fs::write(transcripts.join("s.jsonl"), "{}\n")?;
    operator::set(&stack, "[disk]\nceiling_bytes = \"1 MiB\"\n")?;
    std::fs::write(stack.home().token_file(), "another\n")?;

    let found = diagnose(&stack, &claude).await?;
    let missed: Vec<_> = PROVOKED.iter().filter(|code| !found.codes.contains(**code)).collect();
    assert!(missed.is_empty(), "not found: {missed:?} in {:#}", found.findings);
    assert_eq!(found.code, Some(1));
    for finding in found.findings.as_array().into_iter().flatten().filter(|finding| finding["verdict"] != "ok") {
        assert!(finding["mend"].as_str().is_some_and(|mend| !mend.is_empty()), "{finding}");
    }
    let dead = found.of("queue.dead");
    assert!(dead["why"].as_str().is_some_and(|why| why.contains("the model choked")), "{dead}");
    let rejected = found.of("spool.rejected");
    assert!(rejected["why"].as_str().is_some_and(|why| why.contains("not JSON")), "{rejected}");

    for command in [
        &["queue", "retry", "--kind", "embed_document"][..],
        &["queue", "drop", "--all", "--kind", "brew_tea"],
        &["re-embed"],
    ] {
        assert_eq!(operator::run(&stack, command, &[]).await?.code, Some(0), "{command:?}");
    }
    std::fs::write(stack.home().token_file(), stack.token())?;
    let found = diagnose(&stack, &claude).await?;
    for mended in ["queue.dead", "queue.unhandled", "token.refused"] {
        assert!(!found.codes.contains(mended), "{:#}", found.of(mended));
    }
    Ok(())
}

#[tokio::test]
async fn says_what_is_wrong_with_the_settings() -> Result<()> {
    let stack = Stack::stopped().await?;
    operator::install(&stack, "mini")?;
    operator::set(&stack, "[retention]\nfor_ever = true\n")?;
    let found = diagnose(&stack, &stack.scratch().as_os_str().to_owned()).await?;
    let finding = found.of("settings.invalid");
    assert!(finding["message"].as_str().is_some_and(|message| message.contains("for_ever")), "{finding}");
    let refused = operator::run(&stack, &["gc"], &[]).await?;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("for_ever") && refused.stderr.contains("hint:"), "{}", refused.stderr);
    Ok(())
}

struct Found {
    code: Option<i32>,
    codes: BTreeSet<String>,
    findings: Value,
}

impl Found {
    fn of(&self, code: &str) -> Value {
        let all = self.findings.as_array().into_iter().flatten();
        all.clone().find(|finding| finding["code"] == code).cloned().unwrap_or_default()
    }
}

async fn diagnose(stack: &Stack, claude: &OsString) -> Result<Found> {
    let told = operator::run(stack, &["doctor", "--json"], &[("CLAUDE_CONFIG_DIR", claude.clone())]).await?;
    let findings: Value =
        serde_json::from_str(&told.stdout).with_context(|| format!("{} {}", told.stdout, told.stderr))?;
    let codes = findings.as_array().into_iter().flatten().filter_map(|finding| finding["code"].as_str());
    Ok(Found { code: told.code, codes: codes.map(str::to_owned).collect(), findings })
}

/// Registers the hooks with a Claude Code of its own; gives its folder.
async fn register(stack: &Stack) -> Result<OsString> {
    stack.install(&programs::hook().await?)?;
    stack.install(&programs::mcp().await?)?;
    let folder = stack.scratch().join("claude");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.into_os_string();
    let told = operator::run(stack, &["register", "claude"], &[("CLAUDE_CONFIG_DIR", folder.clone())]).await?;
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    Ok(folder)
}

async fn spoil_journal(stack: &Stack) -> Result<()> {
    for statement in [
        "insert into mem_observation_queue (kind, payload, status, attempts, last_error)
         values ('embed_document', '{\"document\": \"call-1\"}', 'dead', 8, 'the model choked'), ('brew_tea', '{}', 'pending', 0, null)",
        "insert into mem_embedding_models (name, dimensions) values ('another@1', 3)",
        "update mem_search_index set embedding = array_fill(0.1, array[768])::vector,
             embedding_model_id = (select id from mem_embedding_models where name = 'another@1')
         where document_id = (select min(document_id) from mem_search_index)",
        "update mem_tool_calls set outcome_is_assumed = true, occurred_at = occurred_at - interval '2 days'
         where id = (select min(id) from mem_tool_calls)",
        "update mem_sessions set last_event_at = now() - interval '3 hours'",
    ] {
        sqlx::query(statement).execute(stack.database().pool()).await.with_context(|| statement.to_owned())?;
    }
    Ok(())
}

/// An envelope of an agent that nobody knows yet, since hours, and one that is none.
async fn spoil_spool(stack: &Stack) -> Result<()> {
    let unknown = stack.home().spool().join("00000000000000000001-7c9f0f0e-5b52-4c56-9d5a-0d7a3f6a1b11.json");
    let envelope = json!({
        "envelope": 1, "event_id": "7c9f0f0e-5b52-4c56-9d5a-0d7a3f6a1b11", "agent": "agent-of-tomorrow", "event": "Stop",
        "occurred_at_us": 1, "cwd": null, "git": null, "payload": {},
    });
    std::fs::write(&unknown, envelope.to_string())?;
    let long_ago = SystemTime::now() - Duration::from_hours(5);
    std::fs::File::options().append(true).open(&unknown)?.set_modified(long_ago)?;
    std::fs::write(stack.home().spool().join("00000000000000000002-broken.json"), "{\"envelope\"")?;
    wait::until("setting the broken file aside", async || Ok((stack.rejected()?.len() == 1).then_some(()))).await
}
