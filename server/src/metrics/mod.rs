//! `GET /metrics`: what happened since the start, and how things stand, in Prometheus' text format (docs/metrics.md).
//!
//! `cached` keeps what costs something to find out, `page` writes the numbers down. No label holds anything that an agent or a person
//! chose: a kind of job, a rule's id and the like are ours.

mod cached;
mod page;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use memory::queue::{self, KindState};
use memory::store::{BackupNews, Stats, backup_news, stats};
use prometheus::TextEncoder;

use crate::App;
use crate::error::ApiError;
use crate::spool::SpoolState;
use cached::{Cached, Interval};

/// Two scrapes in short order, of two Prometheus servers say, read the same.
const OFTEN: Interval = Interval { least: Duration::from_secs(5), rest: 20 };
/// Counting the whole journal reads its tables.
const SELDOM: Interval = Interval { least: Duration::from_mins(2), rest: 200 };

/// What costs something to find out. Cheap to clone; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    started_at: DateTime<Utc>,
    queue: Arc<Cached<Vec<KindState>>>,
    backups: Arc<Cached<BackupNews>>,
    journal: Arc<Cached<Stats>>,
    spool: Arc<Cached<SpoolState>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started_at: Utc::now(),
            queue: Arc::new(Cached::each(OFTEN)),
            backups: Arc::new(Cached::each(OFTEN)),
            journal: Arc::new(Cached::each(SELDOM)),
            spool: Arc::new(Cached::each(OFTEN)),
        }
    }
}

/// How things stand. What could not be found out in time is `None` and not told.
struct Standing {
    queue: Option<Vec<KindState>>,
    backups: Option<BackupNews>,
    journal: Option<Stats>,
    spool: Option<SpoolState>,
}

impl Metrics {
    async fn standing(&self, app: &App) -> Standing {
        let folder = app.spool.clone();
        let spool = self.spool.get(async { tokio::task::spawn_blocking(move || folder.state()).await.ok() });
        if !app.database.is_prepared() {
            return Standing { queue: None, backups: None, journal: None, spool: spool.await };
        }
        let (queue, backups, journal, spool) = tokio::join!(
            self.queue.get(async { queue::kinds(&app.db).await.ok() }),
            self.backups.get(async { backup_news(&app.db).await.ok() }),
            self.journal.get(async { stats(&app.db).await.ok() }),
            spool,
        );
        Standing { queue, backups, journal, spool }
    }
}

/// Whatever the database does, what is known without it is told.
pub(crate) async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, ApiError> {
    let standing = app.metrics.standing(&app).await;
    let mut families = app.counters.families();
    families.extend(page::families(&app, &standing, Utc::now()).map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "the metrics cannot be written");
        ApiError::Internal
    })?);
    let text = TextEncoder::new().encode_to_string(&families).map_err(|_| ApiError::Internal)?;
    Ok(([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text))
}
