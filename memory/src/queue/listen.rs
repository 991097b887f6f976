//! Waiting for work: Postgres notifies when jobs are inserted; polling finds what a notification missed.

use std::time::Duration;

use sqlx::postgres::PgListener;

use crate::store::Db;

/// Retries become due and leases run out without a notification.
const POLL: Duration = Duration::from_secs(5);

/// A subscription to new jobs. Make it before looking at the queue, so that nothing slips in between.
pub(super) struct Wakeups {
    listener: Option<PgListener>,
}

impl Wakeups {
    pub(super) async fn subscribe(db: &Db) -> Self {
        Self { listener: listen(db).await.ok() }
    }

    /// Returns when there may be work of that kind: after a notification, at the latest after the poll interval.
    pub(super) async fn wait(&mut self, db: &Db, kind: &str) {
        let Some(listener) = &mut self.listener else {
            tokio::time::sleep(POLL).await;
            self.listener = listen(db).await.ok();
            return;
        };
        if let Ok(Err(error)) = tokio::time::timeout(POLL, notified(listener, kind)).await {
            tracing::debug!(error = %error, "the queue's notifications broke off; polling until they are back");
            self.listener = None;
        }
    }
}

/// An empty notice is about every kind.
async fn notified(listener: &mut PgListener, kind: &str) -> Result<(), sqlx::Error> {
    loop {
        let notice = listener.recv().await?;
        if [kind, ""].contains(&notice.payload()) {
            return Ok(());
        }
    }
}

async fn listen(db: &Db) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(db).await?;
    listener.listen("mem_observation_queue").await?;
    Ok(listener)
}
