//! Keeps the index in order beside the events that fill it.

use std::time::Duration;

use memory::store::{self, Db, StoreError};
use tokio_util::sync::CancellationToken;

/// How often to look whether the index has grown enough to be counted again.
const INTERVAL: Duration = Duration::from_secs(10);
/// Rows that are made again in one transaction.
const BATCH: i64 = 100;

pub(crate) async fn keep_until(db: &Db, shutdown: &CancellationToken) {
    let mut is_working = true;
    loop {
        let Some(kept) = shutdown.run_until_cancelled(Box::pin(keep(db))).await else { return };
        // Once: a database that is away is told of by everyone who needs it.
        if let Err(error) = &kept
            && is_working
        {
            tracing::warn!(error = error as &dyn std::error::Error, "the index could not be kept in order");
        }
        is_working = kept.is_ok();
        if shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

async fn keep(db: &Db) -> Result<(), StoreError> {
    let mut made = 0;
    loop {
        match store::reindex(db, BATCH).await? {
            0 => break,
            more => made += more,
        }
    }
    if made > 0 {
        tracing::info!(index.rows = made, "made rows of the index again that an earlier version had made");
    }
    store::count_lexemes(db).await?;
    Ok(())
}
