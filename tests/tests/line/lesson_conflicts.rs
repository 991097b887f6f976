//! Lessons that meet: an agent's and a person's about the same call, and what two projects learnt before they became one.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Outcome};
use tests::stack::Stack;
use tests::{operator, wait};

use super::lessons::{FORCED, PATTERN, RULE, about_to, accept, add, known, said};
use super::unasked::repository;

const DENY: &str = "/hookSpecificOutput/permissionDecision";

#[tokio::test]
async fn what_an_agent_wrote_does_not_stand_before_what_a_person_wrote() -> Result<()> {
    let stack = Stack::running().await?;
    let folder = repository(&stack.scratch().join("widgets")).await?;
    let by_agent =
        json!({ "rule": "Push as you like", "severity": "critical", "trigger_pattern": format!("{PATTERN}.*") });
    let created: Value = stack.post("/api/lessons").json(&by_agent).send().await?.error_for_status()?.json().await?;
    let agents = created["id"].as_i64().context("its number")?;
    known(&stack, agents).await?;
    let persons = add(&stack, &["--severity", "warning", "--pattern", PATTERN]).await?;
    let session = Conversation::new(&folder);
    let reply = said(&stack, &about_to(&session, FORCED, "t1")).await?;
    assert_eq!(reply.pointer(DENY), Some(&json!("deny")), "{reply}");
    assert!(reply.to_string().contains(RULE), "{reply}");

    // A person allows it in the middle of a session in which it has informed.
    operator::run(&stack, &["lessons", "retire", &persons.to_string()], &[]).await?;
    let other = Conversation::new(&folder);
    let informs = wait::until("the retirement", async || {
        let session = Conversation::new(&folder);
        let reply = said(&stack, &about_to(&session, FORCED, "t0")).await?;
        Ok((reply.pointer(DENY).is_none()).then_some(()))
    });
    informs.await?;
    let reply = said(&stack, &about_to(&other, FORCED, "t1")).await?;
    assert_eq!(reply.pointer(DENY), None, "{reply}");
    accept(&stack, agents, &[]).await?;
    let reply = said(&stack, &about_to(&other, FORCED, "t2")).await?;
    assert_eq!(reply.pointer(DENY), Some(&json!("deny")), "{reply}");
    Ok(())
}

#[tokio::test]
async fn projects_that_learnt_the_same_can_be_merged() -> Result<()> {
    let stack = Stack::running().await?;
    for name in ["widgets", "gadgets"] {
        let folder = repository(&stack.scratch().join(name)).await?;
        for _ in 0..2 {
            let mut session = Conversation::new(&folder);
            let outcome = Outcome::Error("Exit code 1\nMissing script".to_owned());
            let failed = Call { tool: "Bash", input: json!({"command": "npm test"}), outcome };
            for event in [session.asks("Test it"), session.calls(failed).1, session.runs("npm test -- --run").1] {
                stack.hook(&event).await?;
            }
        }
        stack.drained().await?;
        wait::until("the proposal", async || {
            let reply = stack.post("/api/lessons/propose").json(&json!({"project": name})).send().await?;
            let proposals: Value = reply.error_for_status()?.json().await?;
            Ok((proposals["lessons"].as_array().map(Vec::len) == Some(1)).then_some(()))
        })
        .await?;
    }
    let told = operator::run(&stack, &["project", "merge", "gadgets", "widgets"], &[]).await?;
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let both: i64 = sqlx::query_scalar(
        "select count(*) from mem_lessons lesson join mem_projects project on project.id = lesson.project_id
         where project.name = 'widgets' and status = 'proposed'",
    )
    .fetch_one(stack.database().pool())
    .await?;
    assert_eq!(both, 2);
    Ok(())
}
