//! Questions about sessions of coding agents: how many a search answers is kept in `tests/recall-set/` and may only get better. Once
//! about invented sessions, once about published transcripts where the machine has them; by words alone, and with the embedding model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tests::recall_set::{Figures, RecallSet};
use tests::stack::Stack;
use tests::{embedding_model, operator, recordings, summary, wait};

/// The model's arithmetic is that of the processor, and not the same on every one: so many questions may fall on either side.
const SLACK: usize = 2;

/// Some hundred documents, with other tests on the same cores.
const PATIENCE: Duration = Duration::from_mins(4);

#[tokio::test]
async fn answers_as_many_questions_by_words_alone_as_it_ever_did() -> Result<()> {
    let stack = Stack::running().await?;
    let figures = asked_about_sessions(&stack).await?;
    kept_exactly(&figures, "figures.txt")
}

#[tokio::test]
async fn answers_as_many_questions_with_the_model_as_it_ever_did() -> Result<()> {
    let Some(stack) = with_model().await? else { return Ok(()) };
    let figures = asked_about_sessions(&stack).await?;
    kept(&figures, "figures-with-model.txt", SLACK)
}

#[tokio::test]
async fn answers_as_many_questions_about_transcripts_by_words_alone_as_it_ever_did() -> Result<()> {
    let stack = Stack::running().await?;
    let Some(figures) = asked_about_transcripts(&stack).await? else { return Ok(()) };
    kept_exactly(&figures, "transcripts-figures.txt")
}

#[tokio::test]
async fn answers_as_many_questions_about_transcripts_with_the_model_as_it_ever_did() -> Result<()> {
    let Some(stack) = with_model().await? else { return Ok(()) };
    let Some(figures) = asked_about_transcripts(&stack).await? else { return Ok(()) };
    kept(&figures, "transcripts-figures-with-model.txt", SLACK)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recall-set")
}

async fn with_model() -> Result<Option<Stack>> {
    let Some(models) = embedding_model::folder()? else { return Ok(None) };
    let mut stack = Stack::stopped().await?;
    stack.set("AGENT_MEMORY_MODELS", &models.to_string_lossy());
    stack.start_server().await?;
    wait::until("the model", async || Ok((stack.health().await?["embedding"]["state"] == "ready").then_some(())))
        .await?;
    Ok(Some(stack))
}

async fn asked_about_sessions(stack: &Stack) -> Result<Figures> {
    let set = RecallSet::read(&folder())?;
    let documents = set.store(stack).await?;
    indexed(stack).await?;
    set.ask(stack, &documents).await
}

async fn asked_about_transcripts(stack: &Stack) -> Result<Option<Figures>> {
    let transcripts = recordings::transcripts()?;
    if transcripts.is_empty() {
        summary::line("questions about recorded transcripts: NOT TESTED, this machine has none");
        return Ok(None);
    }
    let files: Vec<_> = transcripts.iter().map(|path| path.display().to_string()).collect();
    let arguments: Vec<_> =
        ["backfill", "--json", "--file"].into_iter().chain(files.iter().map(String::as_str)).collect();
    operator::json(stack, &arguments).await?;
    let set = RecallSet::about_transcripts(&folder().join("transcripts.toml"))?;
    let documents = RecallSet::documents(stack).await?;
    indexed(stack).await?;
    Ok(Some(set.ask(stack, &documents).await?))
}

/// Waits for the vectors where there is a model, and has the lexemes counted.
async fn indexed(stack: &Stack) -> Result<()> {
    let pool = stack.database().pool();
    if stack.health().await?["embedding"]["state"] == "ready" {
        wait::until_within(PATIENCE, "the vectors", async || {
            let query = "select count(*) from mem_search_index where embedding is null";
            let waiting: i64 = sqlx::query_scalar(query).fetch_one(pool).await.context("counting the vectors")?;
            Ok((waiting == 0).then_some(()))
        })
        .await?;
    }
    // Whenever the server has counted, all is counted now.
    sqlx::query(
        "update mem_search_statistics set documents = 0, documents_without_vector = 0, counted_at = '-infinity'",
    )
    .execute(pool)
    .await?;
    memory::store::count_lexemes(pool).await?;
    Ok(())
}

fn kept(figures: &Figures, file: &str, slack: usize) -> Result<()> {
    let recorded = std::fs::read_to_string(folder().join(file)).context("reading the recorded figures")?;
    let told = format!("{figures}\nnot answered:\n  {}", figures.missed.join("\n  "));
    assert!(recorded.lines().count() > 1, "nothing was recorded yet: {told}");
    assert_eq!(figures.worse_than(&recorded, slack), Vec::<String>::new(), "{told}");
    Ok(())
}

/// By words alone every machine finds the same.
fn kept_exactly(figures: &Figures, file: &str) -> Result<()> {
    kept(figures, file, 0)?;
    let recorded = std::fs::read_to_string(folder().join(file)).context("reading the recorded figures")?;
    let told = format!("{figures}\nnot answered:\n  {}", figures.missed.join("\n  "));
    assert_eq!(figures.to_string(), recorded, "better than recorded: write these figures down\n{told}");
    Ok(())
}
