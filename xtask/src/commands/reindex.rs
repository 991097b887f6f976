//! `reindex`: makes the search index again from the journal. It may run beside everything else and may be broken off at any moment.

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store::{self, Db};

use crate::journal;
use crate::output::{HintExt, Printer, Step};

/// Documents in one transaction: events that touch one of them wait for it.
const BATCH: i64 = 200;

pub(super) async fn run(home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let step = printer.step("Making the index again");
    let made = make(&db, &step).await.context("cannot make the index again");
    db.close().await;
    let Made { documents, missing, removed } =
        made.hint("what was made stays; run `cargo xtask reindex` again when `cargo xtask doctor` finds nothing")?;
    step.done(format!(
        "Made {documents} documents of the index again ({missing} were missing, {removed} had no record any more)"
    ));
    Ok(())
}

#[derive(Default)]
struct Made {
    documents: usize,
    missing: usize,
    removed: u64,
}

async fn make(db: &Db, step: &Step) -> Result<Made, store::StoreError> {
    let all = store::count_documents(db).await?;
    let mut made = Made::default();
    let mut behind = None;
    loop {
        let rebuilt = store::rebuild(db, behind, BATCH).await?;
        made.documents += rebuilt.documents;
        made.missing += rebuilt.missing;
        step.say(format!("Making the index again: {} of {all} documents", made.documents));
        match rebuilt.last {
            Some(last) => behind = Some(last),
            None => break,
        }
    }
    made.removed = store::remove_orphans(db).await?;
    Ok(made)
}
