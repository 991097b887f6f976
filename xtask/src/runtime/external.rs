//! The user's own Postgres: looked at before anything is built on it.

use anyhow::{Context, Result, anyhow};
use memory::store::{self, ConnectError};

use super::postgres_url;
use crate::output::hinted;

/// The oldest Postgres that the journal's schema works on, as `server_version_num` counts.
const OLDEST: u32 = 150_000;

/// Makes sure that the database can hold the journal: reachable, new enough, with pgvector; its schema is brought up to
/// date by that. One clear failure otherwise.
pub async fn check(url: &str) -> Result<()> {
    let place = postgres_url::place(url);
    let db = store::connect(url).await.map_err(told).with_context(|| format!("cannot use the database at {place}"))?;
    let version = db.acquire().await.context("the database went away")?.server_version_num();
    if let Some(version) = version.filter(|version| *version < OLDEST) {
        let error = anyhow!("the database at {place} is Postgres {}", version / 10_000);
        return Err(hinted(error, "use Postgres 15 or newer, or let `cargo xtask up` bring its own"));
    }
    let migrated = store::migrate(&db).await;
    db.close().await;
    migrated.map_err(told).with_context(|| format!("cannot use the database at {place}"))?;
    Ok(())
}

/// A failure of the database with its own hint.
pub fn told(error: ConnectError) -> anyhow::Error {
    let hint = error.hint();
    hinted(error, hint)
}
