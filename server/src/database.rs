//! The ways to the database, waiting for it and bringing its schema up to date, while the server already answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use memory::settings::{self, EVENT_CONNECTIONS};
use memory::store::{self, ConnectError, Db, Way, check_pooler, connect_lazily};
use tokio_util::sync::CancellationToken;

use crate::Config;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The server's pools of connections.
pub(crate) struct Pools {
    pub(crate) db: Db,
    /// Of its own: searches must never hold up an agent.
    pub(crate) journal: Db,
    /// For notices, locks and work that no transaction may be around.
    pub(crate) direct: Db,
}

impl Pools {
    pub(crate) fn of(config: &Config) -> anyhow::Result<Self> {
        let limits = config.settings.database;
        let events = settings::Database { connections: EVENT_CONNECTIONS, ..limits };
        let Some(pooled) = &config.pooled_database_url else {
            let open = |limits| connect_lazily(&config.database_url, Way::Direct, limits);
            let db = open(limits).context("reading the database URL")?;
            let journal = open(events).context("reading the database URL")?;
            return Ok(Self { direct: db.clone(), db, journal });
        };
        let open = |limits| connect_lazily(pooled, Way::Pooled, limits).context("reading the pooled database URL");
        // One hears notices, two are retention's, and the rest of them is never opened.
        let direct = connect_lazily(&config.database_url, Way::Direct, events).context("reading the database URL")?;
        Ok(Self { db: open(limits)?, journal: open(events)?, direct })
    }
}

/// Whether the schema is there. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Database {
    problem: Arc<Mutex<Option<String>>>,
    ready: CancellationToken,
}

/// Proof that the schema is there.
#[derive(Debug)]
pub(crate) struct Prepared;

impl Database {
    pub(crate) fn is_prepared(&self) -> bool {
        self.ready.is_cancelled()
    }

    /// Waits until the schema is there; `false` if the server stops before that.
    pub(crate) async fn prepared_before(&self, shutdown: &CancellationToken) -> bool {
        shutdown.run_until_cancelled(self.ready.cancelled()).await.is_some()
    }

    /// Why the schema is not there yet, if something stands in the way.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tries until the schema is there; `None` if the server stops before that. What waiting cannot mend is an error.
    pub(crate) async fn prepare(
        &self,
        db: &Db,
        direct: &Db,
        shutdown: &CancellationToken,
    ) -> Result<Option<Prepared>, ConnectError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let Some(migrated) = shutdown.run_until_cancelled(make_ready(db, direct)).await else { return Ok(None) };
            let error = match migrated {
                Ok(()) => break,
                Err(error @ (ConnectError::Unreachable(_) | ConnectError::Authentication(_))) => error,
                Err(error) => return Err(error),
            };
            if self.problem().is_none() {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    hint = error.hint(),
                    "waiting for the database"
                );
            }
            *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            if shutdown.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return Ok(None);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.ready.cancel();
        tracing::info!("the schema is up to date");
        Ok(Some(Prepared))
    }
}

/// Migrates by the direct way, and looks whether the pooled one, where there is one, can be gone.
async fn make_ready(db: &Db, direct: &Db) -> Result<(), ConnectError> {
    store::migrate(direct).await?;
    check_pooler(db, direct).await
}
