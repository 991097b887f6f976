//! What an agent is told without having asked: the brief at a session's start, the hits for a prompt, and the digests that both may
//! use. First through the hook alone, then with the real Claude Code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::clients::claude::Claude;
use tests::clients::{Report, Session, User};
use tests::conversation::{Call, Conversation, Event, Outcome};
use tests::model::{Block, Model, call, say};
use tests::stack::Stack;
use tests::{operator, wait};

use super::claude::{check_journal, works};

const ASKED: &str = "Fix the flaky zanzibar ledger migration test";
const FAILING: &str = "cargo test ledger_migration";
const STILL_FAILING: &str = "make package";
const NOTE: &str = "Ledger rows are never deleted, only struck through.";
pub(super) const RELEVANT: &str = "Why does the zanzibar ledger migration test fail again?";
const IRRELEVANT: &str = "Write a haiku about winter mornings in Kyoto";
pub(super) const HITS: &str = "What may help with this prompt:";
pub(super) const BRIEF: &str = "Where the last sessions stopped:";

/// The hook gives up on the server after this long.
const SERVER_DEADLINE: Duration = Duration::from_millis(240);

#[tokio::test]
async fn a_session_starts_with_what_the_last_one_left_and_hears_nothing_twice() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    let mut first = Conversation::new(&folder);
    assert_eq!(told(&stack, &first.starts()).await?, None, "an empty project has nothing to say");
    work(&stack, &mut first).await?;
    let saved = stack.post("/api/observations").json(&json!({"text": NOTE, "project": "widgets"})).send().await?;
    assert!(saved.status().is_success());
    digest_of(&stack, &first).await?;

    let (second, brief) = eventually(&stack, &folder, |session| session.starts()).await?;
    for expected in [BRIEF, ASKED, "It was the schema.", "Files changed: migrations/ledger.sql", STILL_FAILING, NOTE] {
        assert!(brief.contains(expected), "`{expected}` in {brief}");
    }
    assert!(brief.contains("never instructions"), "{brief}");
    let (_, failures) = brief.split_once("have not worked since:").context("open failures")?;
    assert!(!failures.contains(FAILING), "what worked in the end is not open: {brief}");
    assert!(brief.len() < 6_500, "{} bytes", brief.len());
    for source in ["resume", "compact", "startup"] {
        let again = second.event("SessionStart", json!({"source": source}));
        assert_eq!(told(&stack, &again).await?, None, "nothing is new after {source}");
    }

    let (mut third, hits) = eventually(&stack, &folder, |session| session.asks(RELEVANT)).await?;
    assert!(hits.contains(HITS) && hits.contains(FAILING), "{hits}");
    let mut lines = lines_of(&hits);
    assert!((1..=2).contains(&lines.len()), "{hits}");
    for prompt in [IRRELEVANT, "ok", "continue", "/compact the zanzibar ledger migration test"] {
        assert_eq!(told(&stack, &third.asks(prompt)).await?, None, "{prompt}");
    }
    // The same question again may bring up other records, none of them twice, and ends in silence.
    while let Some(more) = told(&stack, &third.asks(RELEVANT)).await? {
        lines.extend(lines_of(&more));
        ensure!(lines.len() < 20, "it does not end: {lines:?}");
    }
    let mut once = lines.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), lines.len(), "nothing is told twice: {lines:?}");

    let counted = wait::until("counting", async || {
        let stats = stack.stats().await?["unasked"].clone();
        Ok((stats["brief"]["silent"].as_i64() >= Some(1)).then_some(stats))
    });
    let counted = counted.await?;
    assert_eq!((&counted["brief"]["spoke"], &counted["brief"]["failed"]), (&json!(1), &json!(0)), "{counted}");
    assert!(counted["prompt_hits"]["spoke"].as_i64() >= Some(1), "{counted}");
    Ok(())
}

#[tokio::test]
async fn a_restart_of_the_server_repeats_nothing_and_both_can_be_turned_off() -> Result<()> {
    let mut stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    let mut first = Conversation::new(&folder);
    work(&stack, &mut first).await?;
    let (second, _) = eventually(&stack, &folder, |session| session.starts()).await?;
    stack.stop_server().await?;
    stack.start_server().await?;
    assert_eq!(told(&stack, &second.starts()).await?, None);

    operator::set(&stack, "[recall]\nbrief = false\n")?;
    let (third, _) = eventually(&stack, &folder, |session| session.asks(RELEVANT)).await?;
    assert_eq!(told(&stack, &third.starts()).await?, None);
    operator::set(&stack, "[recall]\nprompt_hits = false\n")?;
    let (mut fourth, _) = eventually(&stack, &folder, |session| session.starts()).await?;
    assert_eq!(told(&stack, &fourth.asks(RELEVANT)).await?, None);
    let counted = stack.stats().await?["unasked"].clone();
    assert!(counted["prompt_hits"]["spoke"].as_i64() >= Some(1), "{counted}");
    Ok(())
}

#[tokio::test]
async fn answers_in_time_without_context_when_the_database_is_slow_and_loses_nothing() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    work(&stack, &mut Conversation::new(&folder)).await?;
    let mut held = stack.database().pool().begin().await?;
    sqlx::query("lock table mem_injections in access exclusive mode").execute(&mut *held).await?;
    let second = Conversation::new(&folder);
    let outcome = stack.hook(&second.starts()).await?;
    assert_eq!(outcome.stdout, "");
    assert!(outcome.wall < SERVER_DEADLINE * 4, "{} ms", outcome.wall.as_millis());
    held.rollback().await?;
    assert_eq!(stack.journal().sessions().await?.len(), 2, "the event was recorded before");
    assert_eq!(stack.spooled()?.len(), 0);
    wait::until("counting the silence", async || {
        Ok((stack.stats().await?["unasked"]["brief"]["late"] == 1).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_digest_tells_a_session_and_is_written_anew_when_it_ends_again() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    let mut session = Conversation::new(&folder);
    work(&stack, &mut session).await?;
    let (id, body) = digest_of(&stack, &session).await?;
    for expected in [
        format!("Asked first: {ASKED}"),
        "Files changed: migrations/ledger.sql".to_owned(),
        format!(
            "- `{FAILING}` failed 2 times: error: relation zanzibar_ledger does not exist; then `{FAILING}` worked, after \
                 changes in migrations/ledger.sql"
        ),
        format!("- `{STILL_FAILING}` failed: make: no rule to make target 'package'"),
    ] {
        assert!(body.contains(&expected), "`{expected}` in {body}");
    }

    stack.hook(&session.event("SessionStart", json!({"source": "resume"}))).await?;
    stack.hook(&session.asks("Now package it as a tarball")).await?;
    stack.hook(&session.runs(STILL_FAILING).1).await?;
    stack.hook(&session.ends()).await?;
    let again = wait::until("the second digest", async || {
        Ok(digest(&stack, &session).await?.filter(|(_, body)| body.contains("Now package it as a tarball")))
    });
    let (same, body) = again.await?;
    assert_eq!(same, id, "in place of the first");
    assert!(body.contains(&format!("then `{STILL_FAILING}` worked")), "{body}");
    assert_eq!(count(&stack, "mem_observations").await?, 1);

    let found =
        stack.post("/api/observations/search").json(&json!({"query": "tarball", "type": ["note"]})).send().await?;
    let found: Value = found.json().await?;
    assert_eq!(found["hits"][0]["id"], format!("note-{id}"), "{found}");

    let mut little = Conversation::new(&folder);
    for event in [little.asks("What is this repository about?"), little.runs("ls").1, little.ends()] {
        stack.hook(&event).await?;
    }
    wait::until("working the queue", async || {
        let waiting: i64 =
            sqlx::query_scalar("select count(*) from mem_observation_queue where kind = 'digest_session'")
                .fetch_one(stack.database().pool())
                .await?;
        Ok((waiting == 0).then_some(()))
    })
    .await?;
    assert_eq!(count(&stack, "mem_observations").await?, 1, "of one call no digest is made");
    Ok(())
}

#[tokio::test]
async fn a_digest_goes_with_its_session_and_moves_with_it() -> Result<()> {
    let stack = Stack::running().await?;
    operator::install(&stack, "mini")?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    let other = repository(&stack.scratch().join("gadgets")).await?;
    let mut session = Conversation::new(&folder);
    work(&stack, &mut session).await?;
    work(&stack, &mut Conversation::new(&other)).await?;
    digest_of(&stack, &session).await?;

    let merged = memory::store::merge_projects(stack.database().pool(), "widgets", "gadgets").await?;
    assert_eq!(digest_project(&stack, &session).await?, ["gadgets", "gadgets"]);
    // Written anew while the projects are one, it comes back with its session all the same.
    sqlx::query("update mem_project_merges set observation_ids = '{}'").execute(stack.database().pool()).await?;
    memory::store::undo_merge(stack.database().pool(), merged.merge).await?;
    assert_eq!(digest_project(&stack, &session).await?, ["widgets", "widgets"]);

    for table in ["mem_sessions", "mem_user_prompts", "mem_tool_calls", "mem_session_events", "mem_observations"] {
        let columns = match table {
            "mem_sessions" => vec!["started_at", "last_event_at", "ended_at"],
            _ => vec!["occurred_at"],
        };
        for column in columns {
            let statement = format!("update {table} set {column} = {column} - interval '100 days'");
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(stack.database().pool()).await?;
        }
    }
    operator::set(&stack, "[retention]\nprompts_days = 30\n")?;
    operator::json(&stack, &["gc", "--json"]).await?;
    for table in ["mem_sessions", "mem_observations", "mem_search_index"] {
        assert_eq!(count(&stack, table).await?, 0, "{table}");
    }
    Ok(())
}

#[tokio::test]
async fn the_real_client_passes_both_on_to_its_model() -> Result<()> {
    let Some(claude) = Claude::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "claude").await?;
    repository(&user.project).await?;
    let bash = |command: &str| call("Bash", json!({"command": command, "description": "Look"}));
    let report = user.project.join("report.sh");
    let turns = vec![
        vec![bash("sh report.sh --zanzibar-ledger")],
        vec![call("Write", json!({"file_path": report, "content": "echo zanzibar\n"}))],
        vec![bash("sh report.sh --zanzibar-ledger")],
        vec![bash("sh no-such-package.sh")],
        vec![say("The zanzibar ledger report needs its script.")],
    ];
    let (first, seen) = asked(&claude, &user, "Fix the zanzibar ledger report", None, turns).await?;
    check_silent(&first, &seen);
    stack.drained().await?;

    // On a busy machine the deadline may pass.
    let (second, seen) = wait::until("both in what the model got", async || {
        let asked = asked(&claude, &user, "Why was the zanzibar ledger report broken?", None, Vec::new()).await?;
        Ok([BRIEF, HITS].iter().all(|told| asked.1.contains(told)).then_some(asked))
    })
    .await?;
    assert!(seen.contains("`sh no-such-package.sh`") && seen.contains("sh report.sh --zanzibar-ledger"), "{seen}");
    assert!(!second.is_error() && second.stderr.is_empty(), "{}", second.stderr);

    // It goes on: the client sends what it was told before once more, and we add nothing to it.
    let id = second.session_id();
    let (_, again) = asked(&claude, &user, IRRELEVANT, Some(id), Vec::new()).await?;
    for told in [BRIEF, HITS] {
        assert_eq!(again.matches(told).count(), seen.matches(told).count(), "{told}");
    }
    let (_, again) = asked(&claude, &user, "Why was the zanzibar ledger report broken?", Some(id), Vec::new()).await?;
    for line in again.split("\\n- [").skip(1).filter_map(|line| line.split(',').next()) {
        assert_eq!(again.matches(&format!("\\n- [{line},")).count(), 1, "{line} is told once: {again}");
    }

    let (_, seen) = asked(&claude, &user, "Translate good evening into Portuguese", None, Vec::new()).await?;
    assert!(!seen.contains(HITS), "an irrelevant prompt receives nothing: {seen}");
    Ok(())
}

#[tokio::test]
async fn with_the_database_stopped_the_session_goes_on_and_nothing_is_lost() -> Result<()> {
    let Some(claude) = Claude::find().await? else { return Ok(()) };
    let mut stack = Stack::stopped().await?;
    let user = User::registered(&stack, "claude").await?;
    repository(&user.project).await?;
    let url = stack.database().url().to_owned();
    std::fs::write(stack.home().database_url_file(), "postgres://nobody:nothing@127.0.0.1:9/none\n")?;
    stack.start_server_without_database().await?;
    let report = works(&claude, &user).await?;
    assert!(!report.is_error() && report.stderr.is_empty(), "{}", report.stderr);
    assert!(!stack.spooled()?.is_empty());
    stack.stop_server().await?;
    std::fs::write(stack.home().database_url_file(), url)?;
    stack.start_server().await?;
    stack.drained().await?;
    check_journal(&stack, &report, &user).await
}

/// One prompt to the real client; what came of it, and the last that its model was sent.
async fn asked(
    claude: &Claude,
    user: &User,
    prompt: &str,
    resumes: Option<&str>,
    turns: Vec<Vec<Block>>,
) -> Result<(Report, String)> {
    let turns = if turns.is_empty() { vec![vec![say("I see.")]] } else { turns };
    let model = Model::start(turns).await?;
    let report = claude.run(Session { user, model: &model, prompt, resumes }).await?;
    let seen = model.turns().last().context("the model was asked")?.to_string();
    Ok((report, seen))
}

fn check_silent(report: &Report, seen: &str) {
    assert!(!report.is_error() && report.stderr.is_empty(), "{}", report.stderr);
    assert!(!seen.contains(BRIEF) && !seen.contains(HITS), "an empty project says nothing: {seen}");
}

/// A repository, for what lies in a folder for temporary files is no project else.
pub(super) async fn repository(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let git = tokio::process::Command::new("git").args(["init", "--quiet"]).current_dir(folder).status().await?;
    ensure!(git.success(), "git ended with {git}");
    Ok(folder.to_owned())
}

/// A session in which one command failed and was mended, and another failed and was not.
pub(super) async fn work(stack: &Stack, session: &mut Conversation) -> Result<()> {
    let failing = |command: &str, error: &str| Call {
        tool: "Bash",
        input: json!({"command": command}),
        outcome: Outcome::Error(error.to_owned()),
    };
    let edit = Call {
        tool: "Edit",
        input: json!({"file_path": session.folder.join("migrations/ledger.sql"), "old_string": "a", "new_string": "b"}),
        outcome: Outcome::Response(json!({"filePath": "ledger.sql"})),
    };
    let error = "Exit code 101\nerror: relation zanzibar_ledger does not exist";
    let events = [
        session.asks(ASKED),
        session.calls(failing(FAILING, error)).1,
        session.calls(failing(FAILING, error)).1,
        session.calls(edit).1,
        session.runs(FAILING).1,
        session.calls(failing(STILL_FAILING, "Exit code 2\nmake: no rule to make target 'package'")).1,
        session.stops("It was the schema."),
        session.ends(),
    ];
    for event in &events {
        stack.hook(event).await?;
    }
    stack.drained().await
}

/// The first of new sessions that is told something at that event: on a busy machine the server's deadline may pass, and what was
/// not told in time is not told later.
pub(super) async fn eventually(
    stack: &Stack,
    folder: &Path,
    event: impl Fn(&mut Conversation) -> Event,
) -> Result<(Conversation, String)> {
    wait::until("being told something", async || {
        let mut session = Conversation::new(folder);
        let told = told(stack, &event(&mut session)).await?;
        Ok(told.map(|told| (session, told)))
    })
    .await
}

/// What the hook printed for the agent's model.
async fn told(stack: &Stack, event: &Event) -> Result<Option<String>> {
    let outcome = stack.hook(event).await?;
    if outcome.stdout.is_empty() {
        return Ok(None);
    }
    let printed: Value = serde_json::from_str(&outcome.stdout).context("reading what the hook printed")?;
    let specific = &printed["hookSpecificOutput"];
    assert_eq!(specific["hookEventName"], event.name.as_str());
    assert_eq!(
        printed,
        json!({"hookSpecificOutput": {
            "hookEventName": event.name, "additionalContext": specific["additionalContext"]
        }})
    );
    Ok(specific["additionalContext"].as_str().map(str::to_owned))
}

/// What was told, without ids and dates.
fn lines_of(told: &str) -> Vec<String> {
    told.lines()
        .filter(|line| line.starts_with("- "))
        .map(|line| line.split_once("] ").unwrap_or(("", line)).1.to_owned())
        .collect()
}

async fn digest(stack: &Stack, session: &Conversation) -> Result<Option<(i64, String)>> {
    let digest = sqlx::query_as(
        "select note.id, note.body from mem_observations note join mem_sessions session on session.id = note.session_id
         where note.kind = 'digest' and external_id = $1",
    );
    Ok(digest.bind(&session.session_id).fetch_optional(stack.database().pool()).await?)
}

async fn digest_of(stack: &Stack, session: &Conversation) -> Result<(i64, String)> {
    wait::until("the digest", async || digest(stack, session).await).await
}

/// Where the digest of a session belongs, and where it is found.
async fn digest_project(stack: &Stack, session: &Conversation) -> Result<Vec<String>> {
    let projects = sqlx::query_scalar(
        "select project.name from mem_observations note join mem_sessions session on session.id = note.session_id
         join mem_search_index document on document_kind = 'note' and document_id = note.id
         join lateral (values (note.project_id), (document.project_id)) place (id) on true
         join mem_projects project on project.id = place.id
         where note.kind = 'digest' and external_id = $1",
    );
    Ok(projects.bind(&session.session_id).fetch_all(stack.database().pool()).await?)
}

async fn count(stack: &Stack, table: &str) -> Result<i64> {
    let statement = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
    Ok(sqlx::query_scalar(statement).fetch_one(stack.database().pool()).await?)
}
