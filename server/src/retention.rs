//! The policy of what is kept for how long, applied once a day by whichever server comes first.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use memory::store::{Db, retention};
use tokio_util::sync::CancellationToken;

use crate::storage::Folders;

/// How often to look whether a day has passed: a laptop sleeps, and a server is not always up at the same hour.
const INTERVAL: Duration = Duration::from_mins(30);

pub(crate) async fn apply_daily_until(db: &Db, folders: &Folders, shutdown: &CancellationToken) {
    let mut due_at = Utc::now();
    loop {
        if Utc::now() >= due_at {
            // A stop must not wait for it: what is removed so far is removed, and the next run goes on.
            if shutdown.run_until_cancelled(Box::pin(apply(db, folders))).await.is_none() {
                return;
            }
            due_at = Utc::now() + TimeDelta::days(1);
        }
        if shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

async fn apply(db: &Db, folders: &Folders) {
    let policy = folders.settings().retention;
    match retention::apply_daily(db, &policy, "server").await {
        Ok(None) => {}
        Ok(Some(report)) => {
            tracing::info!(rows = report.rows(), bytes = report.bytes(), "applied the retention policy");
            if report.rows() > 0
                && let Err(error) = retention::vacuum(db).await
            {
                tracing::warn!(error = &error as &dyn std::error::Error, "the space could not be made ready for use");
            }
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the retention policy could not be applied");
        }
    }
}
