//! A real session that is told twice, by its hooks and by what the client itself wrote down, is remembered once: no row
//! twice, none missing, whichever came first.

use anyhow::{Context, Result};
use tests::clients::claude::Claude;
use tests::clients::codex::Codex;
use tests::clients::gemini::Gemini;
use tests::clients::{Report, User};
use tests::stack::Stack;
use tests::wait;

use super::{claude, codex, gemini};

#[tokio::test]
async fn claude_code_backfilled_after_its_hooks() -> Result<()> {
    let Some(client) = Claude::find().await? else { return Ok(()) };
    let told = Told::live("claude", async |user| claude::works(&client, user).await).await?;
    claude::check_journal(&told.stack, &told.report, &told.user).await?;
    told.backfilled_again().await?;
    claude::check_journal(&told.stack, &told.report, &told.user).await
}

#[tokio::test]
async fn claude_code_backfilled_before_its_hooks() -> Result<()> {
    let Some(client) = Claude::find().await? else { return Ok(()) };
    let told = Told::late("claude", async |user| claude::works(&client, user).await).await?;
    claude::check_journal(&told.stack, &told.report, &told.user).await
}

#[tokio::test]
async fn codex_backfilled_after_its_hooks() -> Result<()> {
    let Some(client) = Codex::find().await? else { return Ok(()) };
    let told = Told::live("codex", async |user| codex::works(&client, user).await).await?;
    codex::check_journal(&told.stack, &told.report).await?;
    told.backfilled_again().await?;
    codex::check_journal(&told.stack, &told.report).await
}

#[tokio::test]
async fn codex_backfilled_before_its_hooks() -> Result<()> {
    let Some(client) = Codex::find().await? else { return Ok(()) };
    let told = Told::late("codex", async |user| codex::works(&client, user).await).await?;
    codex::check_journal(&told.stack, &told.report).await
}

#[tokio::test]
async fn gemini_cli_backfilled_after_its_hooks() -> Result<()> {
    let Some(client) = Gemini::find().await? else { return Ok(()) };
    let told = Told::live("gemini", async |user| gemini::works(&client, user).await).await?;
    gemini::check_journal(&told.stack, &told.report, &told.user).await?;
    told.backfilled_again().await?;
    gemini::check_journal(&told.stack, &told.report, &told.user).await
}

#[tokio::test]
async fn gemini_cli_backfilled_before_its_hooks() -> Result<()> {
    let Some(client) = Gemini::find().await? else { return Ok(()) };
    let told = Told::late("gemini", async |user| gemini::works(&client, user).await).await?;
    gemini::check_journal(&told.stack, &told.report, &told.user).await
}

/// A session that the journal knows.
struct Told {
    agent: &'static str,
    stack: Stack,
    user: User,
    report: Report,
}

impl Told {
    /// By its hooks, while it ran.
    async fn live(agent: &'static str, works: impl AsyncFnOnce(&User) -> Result<Report>) -> Result<Self> {
        let stack = Stack::running().await?;
        let user = User::registered(&stack, agent).await?;
        let report = works(&user).await?;
        let told = Self { agent, stack, user, report };
        told.ended().await?;
        Ok(told)
    }

    /// By a backfill, and then by its hooks, whose events had waited: these change nothing.
    async fn late(agent: &'static str, works: impl AsyncFnOnce(&User) -> Result<Report>) -> Result<Self> {
        let mut stack = Stack::stopped().await?;
        let user = User::registered(&stack, agent).await?;
        let report = works(&user).await?;
        // A client need not wait for the hook of its own end.
        wait::until("the last hook", async || {
            Ok(stack.spooled_events()?.iter().any(|name| name == "SessionEnd").then_some(()))
        })
        .await?;
        let aside = stack.scratch().join("aside");
        std::fs::create_dir(&aside)?;
        let mut waiting = Vec::new();
        for path in stack.spooled()? {
            let destination = aside.join(path.file_name().context("a spooled event without a name")?);
            std::fs::rename(&path, &destination)?;
            waiting.push((destination, path));
        }

        stack.start_server().await?;
        user.xtask(&stack, &["backfill", agent]).await?;
        let told = Self { agent, stack, user, report };
        let before = told.stack.journal().remembered().await?;
        assert!(before["mem_user_prompts"] > 0 && before["mem_tool_calls"] > 0, "the backfill found it: {before:?}");
        for (aside, path) in waiting {
            std::fs::rename(aside, path)?;
        }
        told.stack.drained().await?;
        told.ended().await?;
        assert_eq!(told.stack.journal().remembered().await?, before);
        Ok(told)
    }

    /// A backfill of a session that is known changes nothing.
    async fn backfilled_again(&self) -> Result<()> {
        let before = self.stack.journal().remembered().await?;
        self.user.xtask(&self.stack, &["backfill", self.agent]).await?;
        assert_eq!(self.stack.journal().remembered().await?, before);
        Ok(())
    }

    /// Waits until all is told, also what the server itself reads from the transcript.
    async fn ended(&self) -> Result<()> {
        wait::until("the session's end", async || {
            let sessions = self.stack.journal().sessions().await?;
            let is_ended = sessions.first().is_some_and(|session| session.status == "ended");
            Ok((is_ended && self.stack.spooled()?.is_empty()).then_some(()))
        })
        .await?;
        self.stack.journal().transcripts_read().await
    }
}
