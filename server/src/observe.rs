//! What can be seen from outside: health for everyone, numbers for the operator.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context as _;
use axum::Json;
use axum::extract::State;
use memory::embed::EmbedState;
use memory::store::{InjectionCounts, Stats, StoreError, injection_counts, schema_version, stats as read_stats};
use serde::Serialize;
use serde_json::{Value, json};

use crate::counters::Counts;
use crate::error::ApiError;
use crate::network::NetworkDoor;
use crate::storage::Keeping;
use crate::{App, HANDLED_JOBS};

/// Health is asked often and must answer even when the database does not.
const DATABASE_DEADLINE: Duration = Duration::from_secs(1);

/// `GET /api/health`: 200 for as long as the server answers; what is wrong stands in the body.
pub(crate) async fn health(State(app): State<App>) -> Json<Value> {
    let database = database_health(&app).await;
    let spool = app.spool.clone();
    let spool = tokio::task::spawn_blocking(move || spool.state()).await.ok();
    let embedding = match app.embedder.state() {
        EmbedState::Unloaded => json!({ "state": "unloaded" }),
        EmbedState::Ready { model } => json!({ "state": "ready", "model": model }),
        EmbedState::Unavailable { message } => json!({ "state": "unavailable", "message": message }),
    };
    let queue = database.get("queue").cloned().unwrap_or_default();
    let set_aside = spool.is_none_or(|spool| spool.rejected > 0) || queue["dead"].as_i64().is_some_and(|dead| dead > 0);
    let storage = app.storage.state();
    let well =
        database["state"] == "up" && embedding["state"] != "unavailable" && storage.state == Keeping::Ok && !set_aside;
    let (mut database, mut queue) = (database, queue);
    if let Some(members) = database.as_object_mut() {
        members.remove("queue");
    }
    if let Some(members) = queue.as_object_mut() {
        members.insert("handles".to_owned(), json!(HANDLED_JOBS));
    }
    Json(json!({
        "status": if well { "ok" } else { "degraded" },
        "version": env!("CARGO_PKG_VERSION"),
        "database": database,
        "embedding": embedding,
        "queue": queue,
        "spool": spool,
        "storage": storage,
        "network": app.network.as_ref().map(NetworkDoor::state),
        "memory": { "resident_bytes": resident_bytes() },
    }))
}

/// What this process holds of the machine's memory, where the system tells it in a file.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

async fn database_health(app: &App) -> Value {
    if !app.database.is_prepared() {
        let message = app.database.problem().unwrap_or_else(|| "the schema is being brought up to date".to_owned());
        return json!({ "state": "down", "message": message });
    }
    let asked = tokio::time::timeout(DATABASE_DEADLINE, async {
        let version = schema_version(&app.db).await?;
        let queue = memory::queue::depth(&app.db).await?;
        Ok::<_, memory::queue::QueueError>((version, queue))
    });
    match asked.await {
        Ok(Ok((version, queue))) => json!({ "state": "up", "schema_version": version, "queue": queue }),
        Ok(Err(error)) => json!({ "state": "down", "message": error.to_string() }),
        Err(_) => json!({ "state": "down", "message": "it did not answer within a second" }),
    }
}

#[derive(Serialize)]
pub(crate) struct Numbers {
    journal: Stats,
    linkage_ratio: Option<f64>,
    events: Counts,
    /// How often agents were told something unasked, by occasion.
    unasked: BTreeMap<String, InjectionCounts>,
}

/// `GET /api/admin/stats`: the journal's counts, and what came in since the start.
pub(crate) async fn stats(State(app): State<App>) -> Result<Json<Numbers>, ApiError> {
    let told = async { Ok::<_, StoreError>((read_stats(&app.db).await?, injection_counts(&app.db).await?)) };
    let (journal, unasked) = told.await.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "the journal's counts could not be read");
        ApiError::DatabaseAway
    })?;
    Ok(Json(Numbers { linkage_ratio: journal.linkage_ratio(), events: app.counters.read(), journal, unasked }))
}

/// Asks a running server for its health, for container health checks: a few lines instead of a client in the image.
pub fn check_health(address: SocketAddr) -> anyhow::Result<()> {
    const DEADLINE: Duration = Duration::from_secs(2);
    let address =
        if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address };
    let mut stream =
        TcpStream::connect_timeout(&address, DEADLINE).with_context(|| format!("connecting to {address}"))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    write!(stream, "GET /api/health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("reading the answer")?;
    anyhow::ensure!(
        answer.starts_with("HTTP/1.1 200"),
        "{address} answered: {}",
        answer.lines().next().unwrap_or_default()
    );
    anyhow::ensure!(answer.contains("\"state\":\"up\""), "the server at {address} has no database");
    Ok(())
}
