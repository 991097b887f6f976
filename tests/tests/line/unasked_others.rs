//! Codex and Gemini CLI are told unasked too, each in its own form; and what they were told is not taken for what the user said.

use anyhow::{Context, Result, ensure};
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
    let model = Model::start(vec![vec![say("I see.")]]).await?;
    let report = codex.run(Session { user: &user, model: &model, prompt: RELEVANT, resumes: None }).await?;
    assert_eq!(report.complaints(), [""; 0]);
    check_told(&stack, &model, "codex").await
}

#[tokio::test]
async fn gemini_cli_passes_both_on_to_its_model() -> Result<()> {
    let Some(gemini) = Gemini::find().await? else { return Ok(()) };
    let (stack, user) = remembering("gemini").await?;
    let model = Model::start(vec![vec![say("I see.")]]).await?;
    gemini.run(Session { user: &user, model: &model, prompt: RELEVANT, resumes: None }).await?;
    check_told(&stack, &model, "gemini-cli").await
}

/// An installation that remembers a session in the user's project.
async fn remembering(agent: &str) -> Result<(Stack, User)> {
    let stack = Stack::running().await?;
    let user = User::registered(&stack, agent).await?;
    repository(&user.project).await?;
    work(&stack, &mut Conversation::new(&user.project)).await?;
    Ok((stack, user))
}

async fn check_told(stack: &Stack, model: &Model, agent: &str) -> Result<()> {
    let seen = model.turns().last().context("the model was asked")?.to_string();
    ensure!(seen.contains(BRIEF), "no brief in {seen}");
    ensure!(seen.contains(HITS), "no hits in {seen}");
    wait::until("the session's end", async || {
        let sessions = stack.journal().sessions().await?;
        let own = sessions.iter().find(|session| session.agent == agent);
        Ok((own.is_some_and(|session| session.status == "ended") && stack.spooled()?.is_empty()).then_some(()))
    })
    .await?;
    stack.journal().transcripts_read().await?;
    let said: Vec<String> = sqlx::query_scalar(
        "select prompt from mem_user_prompts prompt join mem_sessions session on session.id = session_id where agent = $1",
    )
    .bind(agent)
    .fetch_all(stack.database().pool())
    .await?;
    assert_eq!(said, [RELEVANT], "what was told is no prompt");
    Ok(())
}
