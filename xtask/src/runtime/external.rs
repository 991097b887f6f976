//! The user's own Postgres: looked at before anything is built on it.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use memory::store::{self, ConnectError};
use tokio::net::TcpStream;

use super::postgres_url;
use crate::output::hinted;

/// The oldest Postgres that the journal's schema works on, as `server_version_num` counts.
const OLDEST: u32 = 150_000;

/// A managed Postgres may be far away.
const LISTENER_DEADLINE: Duration = Duration::from_secs(10);

/// Makes sure that the database can hold the journal: reachable, new enough, with pgvector; its schema is brought up to
/// date by that. One clear failure otherwise.
pub async fn check(url: &str) -> Result<()> {
    check_server(url).await?;
    let place = postgres_url::place(url);
    let db = store::connect(url).await.map_err(told).with_context(|| format!("cannot use the database at {place}"))?;
    let migrated = store::migrate(&db).await;
    db.close().await;
    migrated.map_err(told).with_context(|| format!("cannot use the database at {place}"))?;
    Ok(())
}

/// The same without a look into the database, which stays as it is.
pub async fn check_server(url: &str) -> Result<()> {
    let place = postgres_url::place(url);
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        let error = anyhow!("the database URL does not begin with `postgres://`");
        return Err(hinted(error, "write it as postgres://user:password@host:port/name"));
    }
    check_listener(url).await.with_context(|| format!("cannot use the database at {place}"))?;
    let db = store::connect(url).await.map_err(told).with_context(|| format!("cannot use the database at {place}"))?;
    let version = db.acquire().await.context("the database went away")?.server_version_num();
    db.close().await;
    if let Some(version) = version.filter(|version| *version < OLDEST) {
        let error = anyhow!("the database at {place} is Postgres {}", version / 10_000);
        return Err(hinted(error, "use Postgres 15 or newer, or let `cargo xtask up` bring its own"));
    }
    Ok(())
}

/// A pool of connections only says that it waited in vain; one attempt of our own says why.
async fn check_listener(url: &str) -> Result<()> {
    let Some((host, port)) = postgres_url::listener(url) else { return Ok(()) };
    let attempt = tokio::time::timeout(LISTENER_DEADLINE, TcpStream::connect((host.as_str(), port))).await;
    let trouble = match attempt {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", LISTENER_DEADLINE.as_secs()),
    };
    let error = anyhow!("{trouble}").context(format!("no Postgres is reachable at {host}:{port}"));
    Err(hinted(error, "check that Postgres runs there and that host and port in the URL are right"))
}

/// A failure of the database with its own hint.
pub fn told(error: ConnectError) -> anyhow::Error {
    let hint = error.hint();
    hinted(error, hint)
}
