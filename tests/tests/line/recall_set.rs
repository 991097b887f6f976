//! Questions about sessions of coding agents: how many a search answers is kept in `tests/recall-set/figures.txt` and may only get
//! better.

use std::path::Path;

use anyhow::{Context, Result};
use tests::recall_set::RecallSet;
use tests::stack::Stack;
use tests::wait;

#[tokio::test]
async fn answers_as_many_questions_by_words_alone_as_it_ever_did() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recall-set");
    let set = RecallSet::read(&folder)?;
    let stack = Stack::running().await?;
    let documents = set.store(&stack).await?;
    wait::until("the counting of lexemes", async || {
        let counted: bool = sqlx::query_scalar(
            "select documents * 1.1 >= (select count(*) from mem_search_index) from mem_search_statistics",
        )
        .fetch_one(stack.database().pool())
        .await?;
        Ok(counted.then_some(()))
    })
    .await?;
    let figures = set.ask(&stack, &documents).await?;
    let recorded = std::fs::read_to_string(folder.join("figures.txt")).context("reading the recorded figures")?;
    let told = format!("{figures}\nnot answered:\n  {}", figures.missed.join("\n  "));
    assert_eq!(figures.worse_than(&recorded), Vec::<String>::new(), "{told}");
    assert_eq!(figures.to_string(), recorded, "better than recorded: write these figures down\n{told}");
    Ok(())
}
