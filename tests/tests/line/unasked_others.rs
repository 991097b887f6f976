//! Codex and Gemini CLI are told unasked too, each in its own form; and what they were told is not taken for what the user said.

use anyhow::{Context, Result};
use tests::clients::codex::Codex;
use tests::clients::gemini::Gemini;
use tests::clients::{Session, User};
use tests::conversation::Conversation;
use tests::model::{Model, say};
use tests::stack::Stack;
use tests::wait;

use super::unasked::{BRIEF, HITS, RELEVANT, repository, work};

#[tokio::test]
async fn codex_passes_both_on_to_its_model() -> Result<()> {
    let Some(codex) = Codex::find().await? else { return Ok(()) };
    let (stack, user) = remembering("codex").await?;
    wait::until("both in what the model got", async || {
        let model = Model::start(vec![vec![say("I see.")]]).await?;
        let report = codex.run(Session { user: &user, model: &model, prompt: RELEVANT, resumes: None }).await?;
        assert_eq!(report.complaints(), [""; 0]);
        was_told(&model)
    })
    .await?;
    check_said(&stack, "codex").await
}

#[tokio::test]
async fn gemini_cli_passes_both_on_to_its_model() -> Result<()> {
    let Some(gemini) = Gemini::find().await? else { return Ok(()) };
    let (stack, user) = remembering("gemini").await?;
    wait::until("both in what the model got", async || {
        let model = Model::start(vec![vec![say("I see.")]]).await?;
        gemini.run(Session { user: &user, model: &model, prompt: RELEVANT, resumes: None }).await?;
        was_told(&model)
    })
    .await?;
    check_said(&stack, "gemini-cli").await
}

/// An installation that remembers a session in the user's project.
async fn remembering(agent: &str) -> Result<(Stack, User)> {
    let stack = Stack::running().await?;
    let user = User::registered(&stack, agent).await?;
    repository(&user.project).await?;
    work(&stack, &mut Conversation::new(&user.project)).await?;
    Ok((stack, user))
}

/// Whether both are in what the model was sent. On a busy machine the deadline may pass; then another session is asked.
fn was_told(model: &Model) -> Result<Option<()>> {
    let seen = model.turns().last().context("the model was asked")?.to_string();
    Ok([BRIEF, HITS].iter().all(|told| seen.contains(told)).then_some(()))
}

async fn check_said(stack: &Stack, agent: &str) -> Result<()> {
    wait::until("the session's end", async || {
        let sessions = stack.journal().sessions().await?;
        let mut own = sessions.iter().filter(|session| session.agent == agent);
        Ok((own.all(|session| session.status == "ended") && stack.spooled()?.is_empty()).then_some(()))
    })
    .await?;
    stack.journal().transcripts_read().await?;
    let said: Vec<String> = sqlx::query_scalar(
        "select prompt from mem_user_prompts prompt join mem_sessions session on session.id = session_id where agent = $1",
    )
    .bind(agent)
    .fetch_all(stack.database().pool())
    .await?;
    let sessions = stack.journal().sessions().await?.into_iter().filter(|session| session.agent == agent).count();
    assert_eq!(said, vec![RELEVANT; sessions], "what was told is no prompt");
    Ok(())
}
