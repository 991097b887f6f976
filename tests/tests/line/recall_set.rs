//! Questions about sessions of coding agents: how many a search answers is kept in `tests/recall-set/figures.txt` and may only get
//! better.

use std::path::Path;

use anyhow::{Context, Result};
use tests::recall_set::RecallSet;
use tests::stack::Stack;

#[tokio::test]
async fn answers_as_many_questions_by_words_alone_as_it_ever_did() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recall-set");
    let set = RecallSet::read(&folder)?;
    let stack = Stack::running().await?;
    let documents = set.store(&stack).await?;
    // Whenever the server has counted, all is counted now.
    sqlx::query("update mem_search_statistics set documents = 0, counted_at = '-infinity'")
        .execute(stack.database().pool())
        .await?;
    memory::store::count_lexemes(stack.database().pool()).await?;
    let figures = set.ask(&stack, &documents).await?;
    let recorded = std::fs::read_to_string(folder.join("figures.txt")).context("reading the recorded figures")?;
    let told = format!("{figures}\nnot answered:\n  {}", figures.missed.join("\n  "));
    assert_eq!(figures.worse_than(&recorded), Vec::<String>::new(), "{told}");
    assert_eq!(figures.to_string(), recorded, "better than recorded: write these figures down\n{told}");
    Ok(())
}
