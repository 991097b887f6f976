//! Whose a session, a brief, a lesson and an event in the spool are.

use anyhow::{Context, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::conversation::Conversation;
use tests::stack::Stack;
use tests::wait;

use super::super::lessons::about_to;
use super::{conversation, people, post, record, work};

/// Whose each session is, by the agent's own id, and whether it has ended.
async fn sessions(stack: &Stack) -> Result<Vec<(Option<String>, String, String)>> {
    let sessions = sqlx::query_as(
        "select person.name, regexp_replace(external_id, '^person:\\d+/', ''), status
         from mem_sessions session left join mem_people person on person.id = session.person_id
         order by session.id",
    );
    Ok(sessions.fetch_all(stack.database().pool()).await?)
}

#[tokio::test]
async fn nobody_writes_into_or_ends_the_session_of_another_by_its_id() -> Result<()> {
    let stack = Stack::running().await?;
    let [operator, ada, bob] = people(&stack).await?;
    let mut session = conversation();
    let id = session.session_id.clone();
    for person in [&ada, &operator, &bob] {
        record(&stack, person, &session.asks(&format!("The ledger of {}", person.secret))).await?;
    }
    record(&stack, &bob, &session.ends()).await?;
    let named = |name: Option<&str>, status: &str| (name.map(str::to_owned), id.clone(), status.to_owned());
    assert_eq!(
        sessions(&stack).await?,
        [named(Some("ada"), "active"), named(None, "active"), named(Some("bob"), "ended")]
    );
    // Nor by the name under which it is kept.
    let forged = Conversation { session_id: format!("person:1/{id}"), ..conversation() };
    record(&stack, &bob, &forged.ends()).await?;
    let ended: Vec<String> =
        sqlx::query_scalar("select external_id from mem_sessions where status = 'ended' order by id")
            .fetch_all(stack.database().pool())
            .await?;
    assert_eq!(ended, [format!("person:2/{id}"), format!("person:2/person:1/{id}")]);
    let transcripts: i64 =
        sqlx::query_scalar("select count(*) from mem_observation_queue where kind = 'read_transcript'")
            .fetch_one(stack.database().pool())
            .await?;
    assert_eq!(transcripts, 0, "what lies here under the path of a person's transcript is not theirs");
    Ok(())
}

#[tokio::test]
async fn briefs_hits_and_lessons_tell_nothing_of_others() -> Result<()> {
    let stack = Stack::running().await?;
    let [operator, ada, bob] = people(&stack).await?;
    work(&stack, &ada).await?;
    // As soon as ada hears of it, the server knows the lesson.
    let heard = wait::until("a lesson", async || record(&stack, &ada, &about_to(&conversation(), FORCED, "t")).await);
    assert!(heard.await?.to_string().contains(ada.secret));
    for person in [&bob, &operator] {
        let mut session = conversation();
        let told = [
            record(&stack, person, &session.starts()).await?,
            record(&stack, person, &session.asks("Why does the ledger migration test fail on zebrafinch?")).await?,
            record(&stack, person, &about_to(&session, FORCED, "t")).await?,
        ];
        assert_eq!(told, [None, None, None], "{} heard of what is ada's", person.name);
    }
    let brief = record(&stack, &ada, &conversation().starts()).await?.context("ada's own brief")?;
    assert!(brief.to_string().contains(ada.secret), "{brief}");
    Ok(())
}

const FORCED: &str = "git push --force origin main";

#[tokio::test]
async fn an_event_in_the_spool_stays_whose_it_is_when_the_server_is_killed() -> Result<()> {
    let mut stack = Stack::running().await?;
    let [operator, ada, bob] = people(&stack).await?;
    let mut held = stack.database().pool().begin().await?;
    sqlx::query("lock table mem_sessions in access exclusive mode").execute(&mut *held).await?;
    let mut ids = Vec::new();
    for person in [&operator, &ada, &bob] {
        let mut session = conversation();
        let answer = post(&stack, &person.token, &session.asks("What is in the ledger?"), "respond-async").await?;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        ids.push(session.session_id);
    }
    stack.kill_server().await?;
    held.rollback().await?;
    let files = stack.spooled()?;
    assert_eq!(files.len(), 3, "each lies in the spool");
    // Whose names nobody gave here are nobody's; who is not known is nobody either.
    let body: Value = serde_json::from_slice(&std::fs::read(&files[0])?)?;
    for (number, whose) in ["ada", "999"].into_iter().enumerate() {
        let mut body = body.clone();
        body["payload"]["session_id"] = json!(format!("forged-{whose}"));
        let name = format!("0000000000000000000{number}-00000000-0000-4000-8000-000000000000-person-{whose}.json");
        std::fs::write(stack.home().spool().join(name), body.to_string())?;
    }
    stack.start_server().await?;
    stack.drained().await?;
    let mut whose = sessions(&stack).await?;
    whose.sort();
    let mut expected: Vec<_> = [None, Some("ada"), Some("bob")]
        .into_iter()
        .zip(ids)
        .map(|(name, id)| (name.map(str::to_owned), id, "active".to_owned()))
        .collect();
    expected.sort();
    assert_eq!(whose, expected);
    assert_eq!(stack.rejected()?.len(), 2, "set aside, for the operator to look at");
    Ok(())
}
