//! A session that is told twice, by hooks and by its transcript, is one session: nothing doubled, nothing missing, whichever
//! came first.

use anyhow::Result;
use chrono::{DateTime, Duration, Utc};
use memory::access::Who;
use memory::event::{Agent, Capped, Event, EventKind, Key, MAX_PROMPT_BYTES, Origin, Outcome, ToolCall};
use memory::project::Checkout;
use memory::store::{ProjectCache, Recorded, record};
use serde_json::json;
use tests::database::Database;
use tests::journal::{Journal, ToolCall as Row};
use uuid::Uuid;

const TOLD: Origin = Origin::Transcript { run: None };

#[tokio::test]
async fn a_transcript_settles_what_a_hook_left_open() -> Result<()> {
    let database = Database::fresh().await?;
    let hook = [prompt(0, given("p"), "break it"), call(1, Origin::Hook, given("c"), "false", Outcome::Assumed)];
    assert_eq!(tell(&database, hook).await?, [Recorded::Stored; 2]);
    assert!(calls(&database).await?[0].success, "taken for a success so far");

    let failed = || call(1, TOLD, given("c"), "false", Outcome::Failed { error: "Exit code 1".into() });
    assert_eq!(tell(&database, [failed()]).await?, [Recorded::Amended]);
    let rows = calls(&database).await?;
    assert_eq!((rows.len(), rows[0].success, rows[0].error.as_deref()), (1, false, Some("Exit code 1")));
    assert_eq!(tell(&database, [failed()]).await?, [Recorded::Known]);
    Ok(())
}

#[tokio::test]
async fn a_transcript_does_not_overrule_what_a_hook_saw() -> Result<()> {
    let database = Database::fresh().await?;
    tell(&database, [call(1, Origin::Hook, given("c"), "ls", Outcome::Succeeded)]).await?;
    let failed = call(1, TOLD, given("c"), "ls", Outcome::Failed { error: "no".into() });
    assert_eq!(tell(&database, [failed]).await?, [Recorded::Known]);
    assert!(calls(&database).await?[0].success);
    Ok(())
}

#[tokio::test]
async fn events_without_ids_meet_by_their_content_in_either_order() -> Result<()> {
    // The same command twice: two calls, told by both.
    let hooks = || {
        [
            prompt(0, derived("a"), "run it twice"),
            call(1, Origin::Hook, derived("b"), "make", Outcome::Succeeded),
            call(2, Origin::Hook, derived("c"), "make", Outcome::Succeeded),
        ]
    };
    let transcript = || {
        [
            Event { origin: TOLD, ..prompt(0, given("u1"), "run it twice") },
            call(1, TOLD, given("t1"), "make", Outcome::Succeeded),
            call(2, TOLD, given("t2"), "make", Outcome::Succeeded),
        ]
    };
    for (first, second) in [(hooks(), transcript()), (transcript(), hooks())] {
        let database = Database::fresh().await?;
        assert_eq!(tell(&database, first.clone()).await?, [Recorded::Stored; 3]);
        assert_eq!(tell(&database, second.clone()).await?, [Recorded::Known; 3]);
        let once = Journal::of(database.pool()).dump().await?;
        assert_eq!(tell(&database, first).await?, [Recorded::Known; 3]);
        assert_eq!(tell(&database, second).await?, [Recorded::Known; 3]);
        assert_eq!(Journal::of(database.pool()).dump().await?, once);
        let rows = calls(&database).await?;
        let keys: Vec<_> = rows.iter().map(|row| row.tool_use_id.as_str()).collect();
        assert_eq!(keys, ["t1", "t2"], "the agent's own ids win");
        assert!(rows.iter().all(|row| row.prompt.as_deref() == Some("run it twice")));
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_names_no_prompt_served_the_latest_one_before_it() -> Result<()> {
    let database = Database::fresh().await?;
    let make = |at, id, command| call(at, Origin::Hook, derived(id), command, Outcome::Succeeded);
    // The second prompt comes last, out of the spool, and takes the call that is its own.
    let events = [prompt(0, derived("a"), "one"), make(1, "b", "x"), make(4, "c", "y"), prompt(3, derived("d"), "two")];
    tell(&database, events).await?;
    let served: Vec<_> = calls(&database).await?.into_iter().map(|row| (row.prompt, row.turn_index)).collect();
    assert_eq!(served, [(Some("one".into()), Some(0)), (Some("two".into()), Some(1))]);

    let answer = |at, text: &str| event(at, EventKind::TurnEnded { prompt_id: None, answer: capped(text) });
    tell(&database, [answer(2, "did one"), answer(5, "did two")]).await?;
    let prompts = Journal::of(database.pool()).prompts().await?;
    let answers: Vec<_> = prompts.iter().map(|row| row.answer.as_deref()).collect();
    assert_eq!(answers, [Some("did one"), Some("did two")]);
    Ok(())
}

async fn tell(database: &Database, events: impl IntoIterator<Item = Event>) -> Result<Vec<Recorded>> {
    let mut tx = database.pool().begin().await?;
    let mut projects = ProjectCache::default();
    let events: Vec<_> = events.into_iter().collect();
    let recorded = record(&mut tx, &mut projects, &events).await?;
    tx.commit().await?;
    Ok(recorded)
}

async fn calls(database: &Database) -> Result<Vec<Row>> {
    Journal::of(database.pool()).tool_calls().await
}

fn event(at_s: i64, kind: EventKind) -> Event {
    Event {
        id: Uuid::new_v4(),
        agent: Agent::GeminiCli,
        who: Who::Operator,
        session: "s".into(),
        occurred_at: start() + Duration::seconds(at_s),
        checkout: Checkout { folder: Some("/home/dev/widgets".into()), git: None },
        transcript_path: None,
        model: None,
        origin: Origin::Hook,
        kind,
    }
}

fn prompt(at_s: i64, key: Key, text: &str) -> Event {
    event(at_s, EventKind::PromptSubmitted { key, prompt: capped(text), source: None })
}

fn call(at_s: i64, origin: Origin, key: Key, command: &str, outcome: Outcome) -> Event {
    let call = ToolCall {
        key,
        prompt_id: None,
        tool_name: "run_shell_command".into(),
        input: json!({ "command": command }),
        output_preview: None,
        output: None,
        outcome,
        duration_ms: None,
        subagent: None,
        commit_sha: None,
        truncated_at_bytes: None,
    };
    Event { origin, ..event(at_s, EventKind::ToolCalled(Box::new(call))) }
}

fn capped(text: &str) -> Capped {
    Capped::new(text, MAX_PROMPT_BYTES)
}

fn given(id: &str) -> Key {
    Key::Given(id.into())
}

fn derived(id: &str) -> Key {
    Key::Derived(id.into())
}

fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000, 0).expect("a time of this year")
}
