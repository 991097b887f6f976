//! Lessons: what stops a call, once, with the real Claude Code; what the gate says to each agent; what comes of it, and what is mined.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::clients::claude::Claude;
use tests::clients::{Session, User};
use tests::conversation::{Call, Conversation, Event, Outcome};
use tests::model::{Model, call, say};
use tests::stack::Stack;
use tests::{operator, recordings, summary, wait};

use super::unasked::repository;

pub(super) const RULE: &str = "Never force-push: somebody else's commits were lost that way. Use --force-with-lease.";
pub(super) const PATTERN: &str = "git push( .*)? --force( |$)";
pub(super) const FORCED: &str = "git push --force origin main";
const LEASED: &str = "git push --force-with-lease origin main";

#[tokio::test]
async fn the_real_client_is_stopped_once_and_the_repeated_call_runs() -> Result<()> {
    let Some(claude) = Claude::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let user = User::registered(&stack, "claude").await?;
    pushable(&user.project).await?;
    let lesson = add(&stack, &["--severity", "critical", "--pattern", PATTERN]).await?;

    let bash = |command: &str| vec![call("Bash", json!({"command": command, "description": "Push"}))];
    let turns = vec![bash(FORCED), bash(FORCED), bash(LEASED), vec![say("Pushed.")]];
    let model = Model::start(turns).await?;
    let first = claude.run(Session { user: &user, model: &model, prompt: "Push it", resumes: None }).await?;
    assert_eq!(first.result(), "Pushed.");
    let results = results(&model);
    assert_eq!(results.len(), 3, "{results:?}");
    for expected in [RULE, "Lesson ", "critical", "repeat the call"] {
        assert!(results[0].contains(expected), "the model reads `{expected}` instead of a result: {}", results[0]);
    }
    for ran in &results[1..] {
        assert!(!ran.contains(RULE) && ran.contains("up-to-date"), "it ran: {ran}");
    }

    let model = Model::start(vec![bash(FORCED), bash(LEASED), vec![say("Pushed.")]]).await?;
    let second = claude.run(Session { user: &user, model: &model, prompt: "Push it", resumes: None }).await?;
    let seen = self::results(&model);
    assert!(seen[0].contains(RULE) && !seen[1].contains(RULE), "a second session is stopped again: {seen:?}");

    // What ran is in the journal, what was stopped is not.
    stack.drained().await?;
    let ran: Vec<_> =
        stack.journal().tool_calls().await?.into_iter().map(|call| call.input["command"].clone()).collect();
    assert_eq!(ran, [FORCED, LEASED, LEASED]);
    for (session, expected) in [(first, "fired, overridden same"), (second, "fired, obeyed changed")] {
        wait::until("the outcome", async || {
            let told = events(&stack, lesson, session.session_id()).await?;
            Ok((told == expected).then_some(()))
        })
        .await
        .with_context(|| format!("expected {expected}"))?;
    }
    let stats = operator::json(&stack, &["lessons", "stats", "--json"]).await?;
    assert_eq!((&stats[0]["fired"], &stats[0]["obeyed"], &stats[0]["overridden"]), (&json!(2), &json!(1), &json!(1)));
    Ok(())
}

#[tokio::test]
async fn what_an_agent_wrote_informs_until_a_person_accepts_it() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    let created = stack.post("/api/lessons").json(&json!({
        "rule": RULE, "severity": "critical", "trigger_tool": "Bash", "trigger_pattern": PATTERN }));
    let created: Value = created.send().await?.error_for_status()?.json().await?;
    let id = created["id"].as_i64().context("its number")?;
    let mut session = Conversation::new(&folder);
    stack.hook(&session.starts()).await?;
    stack.hook(&session.asks("Push it")).await?;
    let reply = said(&stack, &about_to(&session, FORCED, "t1")).await?;
    let output = &reply["hookSpecificOutput"];
    assert!(output["additionalContext"].as_str().is_some_and(|text| text.contains(RULE)), "{reply}");
    assert_eq!(output.get("permissionDecision"), None, "{reply}");
    assert_eq!(gate(&stack, "claude-code", &about_to(&session, FORCED, "t2")).await?, None, "once a session");

    accept(&stack, id, &[]).await?;
    let other = Conversation::new(&folder);
    let reply = said(&stack, &about_to(&other, FORCED, "t1")).await?;
    assert_eq!(reply["hookSpecificOutput"]["permissionDecision"], "deny", "{reply}");
    // Another action of the same lesson is stopped on its own; the same one, however it is spelt, is not stopped again.
    let reply = said(&stack, &about_to(&other, "git push --force origin topic", "t2")).await?;
    assert_eq!(reply["hookSpecificOutput"]["permissionDecision"], "deny", "{reply}");
    for command in [FORCED, "/usr/bin/git push -f origin main", "ls", "echo 'git push --force'", LEASED] {
        assert_eq!(gate(&stack, "claude-code", &about_to(&other, command, "t3")).await?, None, "{command}");
    }
    operator::run(&stack, &["lessons", "retire", &id.to_string()], &[]).await?;
    let third = Conversation::new(&folder);
    wait::until("the retirement", async || {
        Ok(gate(&stack, "claude-code", &about_to(&third, "git push --force x", "t")).await?.is_none().then_some(()))
    })
    .await
}

#[tokio::test]
async fn each_agent_is_stopped_in_its_own_words_and_a_person_can_be_asked() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    add(&stack, &["--severity", "warning", "--pattern", PATTERN]).await?;
    add(&stack, &["--severity", "critical", "--pattern", "terraform destroy", "--ask"]).await?;
    let session = Conversation::new(&folder);
    let gemini =
        session.event("BeforeTool", json!({"tool_name": "run_shell_command", "tool_input": {"command": FORCED}}));
    let reply = eventually_said(&stack, "gemini-cli", &gemini).await?;
    assert_eq!(reply["decision"], "deny");
    assert!(reply["reason"].as_str().is_some_and(|reason| reason.contains(RULE)), "{reply}");

    let session = Conversation::new(&folder);
    let reply = eventually_said(&stack, "codex", &about_to(&session, FORCED, "t1")).await?;
    assert_eq!(reply["hookSpecificOutput"]["permissionDecision"], "deny", "{reply}");
    // A warning stops the first of a session.
    assert_eq!(gate(&stack, "codex", &about_to(&session, "git push --force x", "t2")).await?, None);
    let destroy = about_to(&session, "terraform destroy", "t3");
    assert_eq!(said(&stack, &destroy).await?["hookSpecificOutput"]["permissionDecision"], "ask");
    assert_eq!(
        said(&stack, &destroy).await?["hookSpecificOutput"]["permissionDecision"],
        "ask",
        "a person is asked each time"
    );

    operator::set(&stack, "[lessons]\ngate = false\n")?;
    let other = Conversation::new(&folder);
    assert_eq!(gate(&stack, "claude-code", &about_to(&other, FORCED, "t1")).await?, None, "it can be turned off");
    Ok(())
}

#[tokio::test]
async fn a_lesson_of_one_project_is_silent_in_another() -> Result<()> {
    let stack = Stack::running().await?;
    let here = repository(&stack.scratch().join("widgets")).await?;
    let there = repository(&stack.scratch().join("gadgets")).await?;
    for folder in [&here, &there] {
        stack.hook(&Conversation::new(folder).starts()).await?;
    }
    add(&stack, &["--severity", "critical", "--pattern", PATTERN, "--project", "widgets"]).await?;
    // The session itself is unknown: its folder tells the project.
    let reply = said(&stack, &about_to(&Conversation::new(&here), FORCED, "t1")).await?;
    assert_eq!(reply["hookSpecificOutput"]["permissionDecision"], "deny", "{reply}");
    assert_eq!(gate(&stack, "claude-code", &about_to(&Conversation::new(&there), FORCED, "t1")).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_call_goes_ahead_when_the_server_is_slow_or_gone() -> Result<()> {
    const HOOK_DEADLINE: Duration = Duration::from_millis(300);
    let mut stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    add(&stack, &["--severity", "critical", "--pattern", PATTERN]).await?;
    said(&stack, &about_to(&Conversation::new(&folder), FORCED, "t1")).await?;

    let mut held = stack.database().pool().begin().await?;
    sqlx::query("lock table mem_lesson_events in access exclusive mode").execute(&mut *held).await?;
    let session = Conversation::new(&folder);
    let slow = stack.hook(&about_to(&session, FORCED, "t1")).await?;
    held.rollback().await?;
    // What was not said was not recorded either.
    let reply = said(&stack, &about_to(&session, FORCED, "t2")).await?;
    assert_eq!(reply["hookSpecificOutput"]["permissionDecision"], "deny", "{reply}");
    stack.stop_server().await?;
    let gone = stack.hook(&about_to(&Conversation::new(&folder), FORCED, "t1")).await?;
    for (outcome, what) in [(slow, "slow"), (gone, "gone")] {
        assert_eq!(outcome.stdout, "", "{what}");
        assert!(outcome.wall < HOOK_DEADLINE * 4, "{what}: {} ms", outcome.wall.as_millis());
    }
    assert_eq!(stack.spooled()?.len(), 0, "that a call was about to run is nothing to be kept");
    Ok(())
}

#[tokio::test]
async fn a_bad_trigger_is_refused_with_what_would_be_right() -> Result<()> {
    let stack = Stack::running().await?;
    for (pattern, told) in [("(", "no regular expression"), (".*", "nearly every call"), (r"(a)\1", "backreferences")] {
        let told_by_operator = operator::run(&stack, &["lessons", "add", RULE, "--pattern", pattern], &[]).await?;
        assert_eq!(told_by_operator.code, Some(1));
        assert!(
            told_by_operator.stderr.contains(told) && told_by_operator.stderr.contains("hint:"),
            "{told_by_operator:?}"
        );
        let refused =
            stack.post("/api/lessons").json(&json!({"rule": RULE, "trigger_pattern": pattern})).send().await?;
        assert_eq!(refused.status(), 400);
        let body: Value = refused.json().await?;
        assert!(body["message"].as_str().is_some_and(|message| message.contains(told)), "{body}");
    }
    let long = stack.post("/api/lessons").json(&json!({"rule": "x".repeat(1_501)})).send().await?;
    assert_eq!(long.status(), 400);
    let none: i64 = sqlx::query_scalar("select count(*) from mem_lessons").fetch_one(stack.database().pool()).await?;
    assert_eq!(none, 0);
    Ok(())
}

#[tokio::test]
async fn proposes_what_failed_in_two_sessions_and_what_was_corrected() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    let failed = |session: &Conversation| {
        let outcome = Outcome::Error("Exit code 1\nMissing script: \"test\"".to_owned());
        session.calls(Call { tool: "Bash", input: json!({"command": "cd web && npm test"}), outcome }).1
    };
    let mut one = Conversation::new(&folder);
    for event in [one.asks("Run the tests"), failed(&one), one.runs("npm test -- --run").1, one.ends()] {
        stack.hook(&event).await?;
    }
    stack.drained().await?;
    mined(&stack).await?;
    assert_eq!(proposals(&stack).await?, Vec::<String>::new(), "a single failure is none");

    let mut two = Conversation::new(&folder);
    for event in [two.asks("Run the tests"), failed(&two), two.runs("npm test -- --run").1] {
        stack.hook(&event).await?;
    }
    stack.hook(&two.runs("npm install left-pad").1).await?;
    stack.hook(&two.asks("No, use pnpm here.")).await?;
    let edit = Call {
        tool: "Edit",
        input: json!({"file_path": folder.join("src/generated.rs"), "old_string": "a", "new_string": "b"}),
        outcome: Outcome::Response(json!({"filePath": "src/generated.rs"})),
    };
    stack.hook(&two.calls(edit).1).await?;
    stack.hook(&two.asks("Don't edit generated files, change the generator")).await?;
    stack.hook(&two.ends()).await?;
    let told = wait::until("the proposals", async || {
        let told = proposals(&stack).await?;
        Ok((told.len() == 3).then_some(told))
    });
    let expected = [
        r"Don't edit generated files, change the generator (^|/)generated\.rs$",
        "No, use pnpm here. npm install( |$)",
        "`npm test` fails here npm test$",
    ];
    assert_eq!(told.await?, expected);
    let listed = operator::json(&stack, &["lessons", "list", "--status", "proposed", "--json"]).await?;
    for lesson in listed.as_array().context("a list")? {
        assert!(lesson["evidence"].as_array().is_some_and(|evidence| evidence.len() >= 2), "{lesson}");
        assert_eq!((&lesson["author"], &lesson["may_stop"]), (&json!("mined"), &json!(false)), "{lesson}");
    }
    // A proposal fires nothing, and is not made twice, even when it was retired.
    let session = Conversation::new(&folder);
    assert_eq!(gate(&stack, "claude-code", &about_to(&session, "npm test", "t1")).await?, None);
    let id = listed[0]["id"].to_string();
    operator::run(&stack, &["lessons", "retire", &id], &[]).await?;
    mined(&stack).await?;
    assert_eq!(proposals(&stack).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn mines_recorded_transcripts_without_repeating_itself() -> Result<()> {
    let transcripts = recordings::transcripts()?;
    if transcripts.is_empty() {
        summary::line("lessons from recorded transcripts: NOT TESTED, this machine has none");
        return Ok(());
    }
    let stack = Stack::running().await?;
    let files: Vec<_> = transcripts.iter().map(|path| path.display().to_string()).collect();
    let arguments: Vec<_> =
        ["backfill", "--json", "--file"].into_iter().chain(files.iter().map(String::as_str)).collect();
    operator::json(&stack, &arguments).await?;
    // What is old is not mined: these were recorded years ago.
    sqlx::query("update mem_tool_calls set occurred_at = occurred_at + (now() - timestamptz '2025-10-10')")
        .execute(stack.database().pool())
        .await?;
    sqlx::query("update mem_user_prompts set occurred_at = occurred_at + (now() - timestamptz '2025-10-10')")
        .execute(stack.database().pool())
        .await?;
    mine_all(&stack).await?;
    let first = proposals(&stack).await?;
    mine_all(&stack).await?;
    assert_eq!(proposals(&stack).await?, first, "nothing is proposed twice");
    let unfounded: i64 =
        sqlx::query_scalar("select count(*) from mem_lessons where cardinality(evidence) < 2 or project_id is null")
            .fetch_one(stack.database().pool())
            .await?;
    assert_eq!(unfounded, 0);
    summary::line(&format!("lessons mined from {} transcripts: {first:?}", transcripts.len()));
    Ok(())
}

/// A checkout with a commit and a remote that takes pushes.
async fn pushable(folder: &Path) -> Result<()> {
    let remote = folder.with_extension("git");
    let script = format!(
        "git init --quiet --bare '{remote}' && git init --quiet --initial-branch=main . && git remote add origin '{remote}' && \
         git -c user.name=x -c user.email=x@example.com commit --quiet --allow-empty -m one && git push --quiet origin main",
        remote = remote.display()
    );
    let status = tokio::process::Command::new("sh").args(["-c", &script]).current_dir(folder).status().await?;
    ensure!(status.success(), "git ended with {status}");
    Ok(())
}

/// Keeps a person's lesson; its number, once the server knows it.
pub(super) async fn add(stack: &Stack, arguments: &[&str]) -> Result<i64> {
    let told = operator::run(stack, &[&["lessons", "add", RULE], arguments].concat(), &[]).await?;
    ensure!(told.code == Some(0), "{}", told.stderr);
    let id: i64 = sqlx::query_scalar("select max(id) from mem_lessons").fetch_one(stack.database().pool()).await?;
    known(stack, id).await?;
    Ok(id)
}

pub(super) async fn accept(stack: &Stack, id: i64, arguments: &[&str]) -> Result<()> {
    let told = operator::run(stack, &[&["lessons", "accept", &id.to_string()], arguments].concat(), &[]).await?;
    ensure!(told.code == Some(0), "{}", told.stderr);
    // The server is told by the database, as it is of a lesson that another server changes.
    wait::until("the permission", async || Ok(held(stack).await?.contains(&(id, true)).then_some(()))).await
}

/// Waits until the server holds that lesson.
pub(super) async fn known(stack: &Stack, id: i64) -> Result<()> {
    wait::until("the lesson", async || Ok(held(stack).await?.iter().any(|(known, _)| *known == id).then_some(()))).await
}

/// The lessons that the server holds about these commands, and whether they stop calls.
async fn held(stack: &Stack) -> Result<Vec<(i64, bool)>> {
    let command = format!("{FORCED}; terraform destroy");
    let request = stack.post("/api/lessons/match");
    let tried: Value =
        request.json(&json!({"tool_name": "Bash", "tool_input": {"command": command}})).send().await?.json().await?;
    let lessons = tried["lessons"].as_array().into_iter().flatten();
    Ok(lessons.map(|lesson| (lesson["id"].as_i64().unwrap_or_default(), lesson["stops"] == true)).collect())
}

pub(super) fn about_to(session: &Conversation, command: &str, id: &str) -> Event {
    session.event("PreToolUse", json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id}))
}

/// What the hook prints, as JSON.
async fn gate(stack: &Stack, agent: &str, event: &Event) -> Result<Option<Value>> {
    let outcome = stack.hook_of(agent, event).await?;
    if outcome.stdout.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(&outcome.stdout).map(Some).with_context(|| outcome.stdout.clone())
}

pub(super) async fn said(stack: &Stack, event: &Event) -> Result<Value> {
    eventually_said(stack, "claude-code", event).await
}

async fn eventually_said(stack: &Stack, agent: &str, event: &Event) -> Result<Value> {
    wait::until("a lesson", async || gate(stack, agent, event).await).await
}

/// What the model got back for each of its calls, in order.
fn results(model: &Model) -> Vec<String> {
    let turns = model.turns();
    let messages = turns.last().and_then(|turn| turn["messages"].as_array().cloned()).unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].to_string()).collect()
}

/// The outcomes that a lesson had in a session, in order.
async fn events(stack: &Stack, lesson: i64, session: &str) -> Result<String> {
    let told: Option<String> = sqlx::query_scalar(
        "select string_agg(outcome || coalesce(' ' || retry, ''), ', ' order by id) from mem_lesson_events
         where lesson_id = $1 and session = $2",
    )
    .bind(lesson)
    .bind(session)
    .fetch_one(stack.database().pool())
    .await?;
    Ok(told.unwrap_or_default())
}

/// Titles and patterns of what waits for a person, in the order of the alphabet.
async fn proposals(stack: &Stack) -> Result<Vec<String>> {
    let told = sqlx::query_scalar(
        "select title || ' ' || trigger_pattern from mem_lessons where status = 'proposed' order by title collate \"C\"",
    );
    Ok(told.fetch_all(stack.database().pool()).await?)
}

async fn mined(stack: &Stack) -> Result<()> {
    let reply = stack.post("/api/lessons/propose").json(&json!({"project": "widgets"})).send().await?;
    ensure!(reply.status().is_success(), "{}", reply.text().await?);
    Ok(())
}

async fn mine_all(stack: &Stack) -> Result<()> {
    let keys: Vec<String> = sqlx::query_scalar("select identity_key from mem_projects where merged_into is null")
        .fetch_all(stack.database().pool())
        .await?;
    for key in keys {
        let reply = stack.post("/api/lessons/propose").json(&json!({"project": key})).send().await?;
        ensure!(reply.status().is_success() || reply.status() == 404, "{key}: {}", reply.text().await?);
    }
    Ok(())
}
