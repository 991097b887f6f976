//! The past, read from what agents recorded: once, beside what hooks told, and back out again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::conversation::Conversation;
use tests::recordings;
use tests::stack::Stack;
use tests::{programs, summary, wait};
use tokio::process::Command;

#[tokio::test]
async fn every_recorded_transcript_is_backfilled_once_and_can_be_taken_back() -> Result<()> {
    let transcripts = recordings::transcripts()?;
    if transcripts.is_empty() {
        summary::line("recorded transcripts: NOT TESTED, this machine has none");
        return Ok(());
    }
    let stack = Stack::stopped().await?;
    let operator = Operator::of(&stack);
    let before = counts(&stack).await?;
    let first = operator.backfills(&transcripts).await?;
    let mut files = 0;
    for file in first.agents().flat_map(|agent| agent["files"].as_array().into_iter().flatten()) {
        files += 1;
        assert_eq!(file["error"], Value::Null, "{}", file["path"]);
        let read = &file["taken"]["read"];
        let name = Path::new(file["path"].as_str().unwrap_or_default()).file_name().unwrap_or_default();
        summary::line(&format!(
            "transcript {}: {} prompts, {} calls, {} joined; skipped {}",
            name.to_string_lossy(),
            read["prompts"],
            read["calls"],
            read["joined_calls"],
            read["skipped"]
        ));
        for reason in read["skipped"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            assert!(!reason.starts_with("unknown") && reason != "not JSON", "{}: {reason}", file["path"]);
        }
    }
    assert_eq!(files, transcripts.len());
    assert!(first.inserted() > 300, "{}", first.0);
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));

    let stored = counts(&stack).await?;
    let second = operator.backfills(&transcripts).await?;
    assert_eq!((second.inserted(), counts(&stack).await?), (0, stored));

    for run in first.runs().into_iter().chain(second.runs()) {
        operator.runs(&["backfill", "--rollback", &run.to_string()]).await?;
    }
    assert_eq!(counts(&stack).await?, before);
    Ok(())
}

#[tokio::test]
async fn a_recorded_session_told_by_its_hooks_and_its_transcript_is_one_session() -> Result<()> {
    for recording in recordings::of("claude-code-2.1.332")? {
        let transcripts = recordings::transcripts_of(&recording)?;
        ensure!(!transcripts.is_empty(), "{} has no transcript", recording.name);
        let mut told = Vec::new();
        for hooks_come_first in [true, false] {
            let stack = Stack::running().await?;
            let operator = Operator::of(&stack);
            let hooks = async || -> Result<()> {
                for event in &recording.events {
                    stack.hook(event).await?;
                }
                stack.drained().await
            };
            let first_run = if hooks_come_first { None } else { Some(operator.backfills(&transcripts).await?) };
            hooks().await?;
            let live = (stack.journal().prompts().await?.len(), stack.journal().tool_calls().await?.len());
            if hooks_come_first {
                operator.backfills(&transcripts).await?;
            }
            let both = (stack.journal().prompts().await?.len(), stack.journal().tool_calls().await?.len());
            assert_eq!(both, live, "{}: no row twice, and none that only one knows", recording.name);
            assert_eq!(stack.journal().sessions().await?.len(), 1);
            if let Some(run) = first_run {
                for run in run.runs() {
                    operator.runs(&["backfill", "--rollback", &run.to_string()]).await?;
                }
                let kept = (stack.journal().prompts().await?.len(), stack.journal().tool_calls().await?.len());
                assert_eq!(kept, live, "what hooks have told of since stays");
            }
            let calls = stack.journal().tool_calls().await?;
            told.push(calls.into_iter().map(|call| (call.tool_use_id, call.success, call.prompt)).collect::<Vec<_>>());
        }
        let [hooks_first, transcript_first] = &mut told[..] else { unreachable!("there are two orders") };
        hooks_first.sort();
        transcript_first.sort();
        assert_eq!(hooks_first, transcript_first);
    }
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_session_adds_what_its_hooks_missed() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = stack.scratch().join("widgets");
    std::fs::create_dir_all(&folder)?;
    let mut session = Conversation::new(&folder);
    let asked = session.asks("count the files");
    stack.hook(&session.starts()).await?;
    stack.hook(&asked).await?;
    let lines = transcript(&session.session_id, &session.prompt_id, &folder);
    std::fs::write(folder.join(format!("{}.jsonl", session.session_id)), written(&lines))?;
    stack.hook(&session.ends()).await?;

    let calls = wait::until("the reading of the transcript", async || {
        let calls = stack.journal().tool_calls().await?;
        Ok((!calls.is_empty()).then_some(calls))
    });
    let calls = calls.await.with_context(|| stack.server_output())?;
    assert_eq!(calls[0].input, json!({ "command": "ls" }));
    assert_eq!(calls[0].prompt.as_deref(), Some("count the files"));
    assert_eq!(stack.journal().prompts().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn reads_only_what_is_asked_for_and_stores_nothing_in_a_dry_run() -> Result<()> {
    let stack = Stack::stopped().await?;
    let operator = Operator::of(&stack);
    let projects = operator.home.join(".claude/projects/-w");
    std::fs::create_dir_all(&projects)?;
    let (wanted, other, hidden) =
        (operator.home.join("widgets"), operator.home.join("gadgets"), operator.home.join("secret"));
    for folder in [&wanted, &other, &hidden] {
        // A bare folder among temporary files would be no project.
        let made = Command::new("git").args(["init", "--quiet"]).arg(folder).status().await?;
        ensure!(made.success(), "git could not make a repository");
    }
    std::fs::write(hidden.join(".agent-memory.toml"), "capture = false\n")?;
    for (session, folder) in [("s1", &wanted), ("s2", &other), ("s3", &hidden)] {
        let lines = transcript(session, &format!("p-{session}"), folder);
        std::fs::write(projects.join(format!("{session}.jsonl")), written(&lines))?;
    }
    std::fs::write(projects.join("broken.jsonl"), "{ not json\n\u{0}\n")?;

    let dry = operator.runs(&["backfill", "claude", "--dry-run", "--json"]).await?;
    assert_eq!(dry.agents().map(|agent| agent["total"]["read"]["calls"].clone()).collect::<Vec<_>>(), [json!(2)]);
    assert_eq!(stack.journal().row_count().await?, 0);

    operator.runs(&["backfill", "claude", "--since", "2027-01-01", "--json"]).await?;
    assert!(stack.journal().sessions().await?.is_empty());
    let told = operator.runs(&["backfill", "claude", "--project", "widgets", "--json"]).await?;
    let sessions = stack.journal().sessions().await?;
    assert_eq!(sessions.iter().map(|session| session.project.as_str()).collect::<Vec<_>>(), ["widgets"]);
    assert_eq!((sessions[0].status.as_str(), sessions[0].end_reason.as_deref()), ("ended", Some("transcript")));
    let read = &told.agents().next().context("one agent")?["total"]["read"];
    // A prompt and a call; an answer without its prompt is nothing.
    assert_eq!(read["left_out"]["other project"], json!(2));
    assert_eq!(read["left_out"]["excluded folder"], json!(2));
    assert_eq!(read["skipped"]["not JSON"], json!(2));

    let listed = operator.runs(&["backfill", "--list", "--json"]).await?;
    assert_eq!(listed.0[0]["status"], "done");
    let unknown = operator.run(&["backfill", "--rollback", "99"]).await?;
    assert_eq!(unknown.status.code(), Some(1));
    Ok(())
}

#[tokio::test]
async fn a_file_that_cannot_be_stored_does_not_stop_the_others() -> Result<()> {
    let stack = Stack::stopped().await?;
    let operator = Operator::of(&stack);
    let folder = operator.home.join("w");
    std::fs::create_dir_all(&folder)?;
    let (bad, good) = (operator.home.join("bad.jsonl"), operator.home.join("good.jsonl"));
    std::fs::write(&bad, written(&transcript("bad", "p1", &folder)))?;
    std::fs::write(&good, written(&transcript("good", "p2", &folder)))?;
    // Stands for whatever the database may refuse of one file.
    sqlx::query("alter table mem_sessions add constraint mem_sessions_test check (external_id <> 'bad')")
        .execute(stack.database().pool())
        .await?;
    let path = |path: &Path| path.display().to_string();
    let output = operator.run(&["backfill", "claude", "--json", "--file", &path(&bad), &path(&good)]).await?;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.jsonl"));
    let sessions = stack.journal().sessions().await?;
    assert_eq!(sessions.iter().map(|session| session.external_id.as_str()).collect::<Vec<_>>(), ["good"]);
    Ok(())
}

#[tokio::test]
async fn takes_the_notes_of_claude_mem_once_with_their_dates_and_back_out() -> Result<()> {
    let stack = Stack::stopped().await?;
    let operator = Operator::of(&stack);
    let before = counts(&stack).await?;
    let file = stack.scratch().join("claude-mem.db");
    write_claude_mem(&file).await?;
    let path = file.display().to_string();
    let arguments = ["backfill", "--from", "claude-mem", &path, "--json"];
    let dry = operator.runs(&["backfill", "--from", "claude-mem", &path, "--json", "--dry-run"]).await?;
    assert_eq!((&dry.0["read"], counts(&stack).await?), (&json!(3), before.clone()));

    let first = operator.runs(&arguments).await?;
    assert_eq!(first.0["inserted"]["notes"], json!(3));
    let query = "select o.kind, o.title, o.body, p.name, o.source, o.occurred_at::text
                 from mem_observations o join mem_projects p on p.id = o.project_id order by o.occurred_at";
    let notes: Vec<(String, String, String, String, String, String)> =
        sqlx::query_as(query).fetch_all(stack.database().pool()).await?;
    let kinds: Vec<_> = notes.iter().map(|note| (note.0.as_str(), note.1.as_str(), note.3.as_str())).collect();
    assert_eq!(
        kinds,
        [
            ("note", "use the token ‹private›", "widgets"),
            ("note", "Retries doubled the charge", "widgets"),
            ("digest", "make retries safe", "widgets"),
        ]
    );
    assert!(
        notes[1].2.contains("- the key is per order") && notes[1].2.contains("Changed: src/pay.rs"),
        "{}",
        notes[1].2
    );
    assert!(notes[1].5.starts_with("2026-01-02"), "{}", notes[1].5);
    assert!(notes.iter().all(|note| note.4 == "import" && !note.2.contains("hunter2")));

    let second = operator.runs(&arguments).await?;
    assert_eq!((&second.0["inserted"]["notes"], &second.0["known"]), (&json!(0), &json!(3)));
    for run in [&first, &second] {
        operator.runs(&["backfill", "--rollback", &run.0["run"].to_string()]).await?;
    }
    assert_eq!(counts(&stack).await?, before);

    let wrong = stack.scratch().join("wrong.db");
    std::fs::write(&wrong, "no database")?;
    let refused = operator.run(&["backfill", "--from", "claude-mem", &wrong.display().to_string()]).await?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("wrong.db"));
    Ok(())
}

/// A database with the columns that claude-mem 13 has, and a row of each kind.
async fn write_claude_mem(path: &Path) -> Result<()> {
    use sqlx::ConnectOptions as _;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.context("making a database")?;
    let statements = "
        create table sdk_sessions (id integer primary key, content_session_id text not null, memory_session_id text unique,
            project text not null, started_at text not null, started_at_epoch integer not null, status text not null);
        create table observations (id integer primary key, memory_session_id text not null, project text not null, text text,
            type text not null, title text, subtitle text, facts text, narrative text, concepts text, files_read text,
            files_modified text, prompt_number integer, created_at text not null, created_at_epoch integer not null);
        create table session_summaries (id integer primary key, memory_session_id text not null, project text not null,
            request text, investigated text, learned text, completed text, next_steps text, files_read text,
            files_edited text, notes text, created_at text not null, created_at_epoch integer not null);
        create table user_prompts (id integer primary key, content_session_id text not null, prompt_number integer not null,
            prompt_text text not null, created_at text not null, created_at_epoch integer not null);
        insert into sdk_sessions values (1, 's-1', 'm-1', 'widgets', '', 0, 'completed');
        insert into observations values (7, 'm-1', 'widgets', null, 'bugfix', 'Retries doubled the charge', null,
            '[\"the key is per order\", \"the gateway keeps it a day\"]', 'A retry was a second charge.', '[\"payment\"]',
            '[]', '[\"src/pay.rs\"]', 1, '2026-01-02T10:00:00.000Z', 1767348000000);
        insert into session_summaries values (1, 'm-1', 'widgets', 'make retries safe', null, 'keys are per order',
            'added a key', null, null, '[\"src/pay.rs\"]', null, '2026-01-03T10:00:00.000Z', 1767434400000);
        insert into user_prompts values (1, 's-1', 1, 'use the token <private>hunter2</private>',
            '2026-01-01T10:00:00.000Z', 1767261600000);
    ";
    for statement in statements.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut connection).await?;
    }
    Ok(())
}

/// Runs the operator's program with a home folder of its own.
struct Operator<'a> {
    stack: &'a Stack,
    home: PathBuf,
}

/// What the program printed, as JSON.
struct Told(Value);

impl Told {
    fn agents(&self) -> impl Iterator<Item = &Value> {
        let agents = self.0["agents"].as_array().into_iter().flatten();
        agents.filter(|agent| agent["files"].as_array().is_some_and(|files| !files.is_empty()))
    }

    fn runs(&self) -> Vec<i64> {
        self.agents().filter_map(|agent| agent["run"].as_i64()).collect()
    }

    fn inserted(&self) -> i64 {
        let counts = self.agents().flat_map(|agent| agent["total"]["inserted"].as_object().into_iter().flatten());
        counts.filter_map(|(_, count)| count.as_i64()).sum()
    }
}

impl<'a> Operator<'a> {
    fn of(stack: &'a Stack) -> Self {
        Self { stack, home: stack.scratch().join("operator") }
    }

    async fn backfills(&self, files: &[PathBuf]) -> Result<Told> {
        let files: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
        let mut arguments = vec!["backfill", "--json", "--file"];
        arguments.extend(files.iter().map(String::as_str));
        self.runs(&arguments).await
    }

    async fn runs(&self, arguments: &[&str]) -> Result<Told> {
        let output = self.run(arguments).await?;
        ensure!(output.status.success(), "{arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
        Ok(Told(serde_json::from_slice(&output.stdout).unwrap_or_default()))
    }

    async fn run(&self, arguments: &[&str]) -> Result<std::process::Output> {
        std::fs::create_dir_all(&self.home)?;
        Command::new(programs::xtask().await?)
            .args(arguments)
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .env("HOME", &self.home)
            .env("AGENT_MEMORY_HOME", self.stack.home().root())
            .output()
            .await
            .context("running the operator's program")
    }
}

/// What a run may insert, table by table; its own row stays for the list.
async fn counts(stack: &Stack) -> Result<Vec<i64>> {
    let mut counts = Vec::new();
    for table in [
        "mem_projects",
        "mem_project_aliases",
        "mem_sessions",
        "mem_user_prompts",
        "mem_tool_calls",
        "mem_session_events",
        "mem_observations",
        "mem_outputs",
        "mem_search_index",
        "mem_observation_queue",
    ] {
        let query = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        counts.push(sqlx::query_scalar(query).fetch_one(stack.database().pool()).await?);
    }
    Ok(counts)
}

/// A prompt, a call and an answer as Claude Code writes them.
fn transcript(session: &str, prompt: &str, folder: &Path) -> Vec<Value> {
    let line = |second: u32, kind: &str, message: Value| {
        json!({
            "type": kind, "uuid": format!("{session}-{second}"), "sessionId": session, "cwd": folder, "promptId": prompt,
            "timestamp": format!("2026-11-28T10:00:{second:02}.000Z"), "message": message,
        })
    };
    let call =
        json!([{ "type": "tool_use", "id": format!("toolu-{session}"), "name": "Bash", "input": { "command": "ls" } }]);
    let result = json!([{ "type": "tool_result", "tool_use_id": format!("toolu-{session}"), "content": "a" }]);
    let answer = json!([{ "type": "text", "text": "One." }]);
    vec![
        line(1, "user", json!({ "role": "user", "content": "count the files" })),
        line(2, "assistant", json!({ "id": "m1", "model": "model-1", "content": call })),
        line(3, "user", json!({ "role": "user", "content": result })),
        line(4, "assistant", json!({ "id": "m2", "model": "model-1", "content": answer })),
    ]
}

fn written(lines: &[Value]) -> String {
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}
