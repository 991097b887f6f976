//! What the server says about itself at `/api/health`, as `docs/architecture.md` describes it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A healthy server answers in a millisecond; a stopped one refuses as fast.
const DEADLINE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    pub status: String,
    pub version: String,
    pub database: DatabaseHealth,
    pub embedding: EmbeddingHealth,
    pub queue: QueueHealth,
    pub spool: SpoolHealth,
    /// A server from before these were told says nothing of them.
    #[serde(default)]
    pub storage: Option<StorageHealth>,
    #[serde(default)]
    pub memory: Option<MemoryHealth>,
    /// The door to other machines; nothing where there is none.
    #[serde(default)]
    pub network: Option<NetworkHealth>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatabaseHealth {
    pub state: String,
    pub schema_version: Option<i64>,
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingHealth {
    pub state: String,
    pub model: Option<String>,
    pub message: Option<String>,
}

/// Unknown while the database is away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueHealth {
    pub pending: Option<i64>,
    pub dead: Option<i64>,
    /// The kinds of jobs that the server works.
    #[serde(default)]
    pub handles: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpoolHealth {
    pub waiting: u64,
    #[serde(default)]
    pub waiting_bytes: u64,
    pub rejected: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageHealth {
    /// `ok` or `metadata_only`.
    pub state: String,
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryHealth {
    pub resident_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkHealth {
    pub address: SocketAddr,
    /// `open` or `closed`.
    pub state: String,
    pub message: Option<String>,
}

/// Whether a server takes a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    Yes,
    No,
}

impl Health {
    pub fn database_is_up(&self) -> bool {
        self.database.state == "up"
    }
}

/// Asks the server at an address.
pub async fn fetch(address: SocketAddr) -> Result<Health> {
    let answer = client()?.get(format!("http://{address}/api/health")).send().await;
    let answer = answer.with_context(|| format!("nothing answers at {address}"))?;
    let answer = answer.error_for_status().context("the server refuses to say how it is")?;
    answer.json().await.context("what answers there is not our server")
}

/// Asks the server at an address whether it takes this token.
pub async fn accepts(address: SocketAddr, token: &str) -> Result<Accepts> {
    let request = client()?.get(format!("http://{address}/api/admin/stats")).bearer_auth(token);
    let answer = request.send().await.with_context(|| format!("nothing answers at {address}"))?;
    Ok(if answer.status() == reqwest::StatusCode::UNAUTHORIZED { Accepts::No } else { Accepts::Yes })
}

fn client() -> Result<reqwest::Client> {
    reqwest::Client::builder()
        // The server is on this machine, whatever proxy the environment names.
        .no_proxy()
        .timeout(DEADLINE)
        .build()
        .context("cannot make an HTTP client")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A server that is well.
    pub(crate) fn healthy() -> Health {
        let text = r#"{"status": "ok", "version": "0.1.0",
            "database": {"state": "up", "schema_version": 10, "message": null},
            "embedding": {"state": "ready", "model": "mini@0a1b2c3d", "message": null},
            "queue": {"pending": 0, "dead": 0, "handles": ["embed_document"]},
            "spool": {"waiting": 0, "waiting_bytes": 0, "rejected": 0},
            "storage": {"state": "ok", "message": null}, "memory": {"resident_bytes": 90000000}}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn reads_the_documented_shape_with_the_database_up_and_down() {
        let text = r#"{"status": "ok", "version": "0.1.0",
            "database": {"state": "up", "schema_version": 10, "message": null},
            "embedding": {"state": "unloaded", "model": "m", "message": null},
            "queue": {"pending": 0, "dead": 0}, "spool": {"waiting": 0, "rejected": 0}}"#;
        let health: Health = serde_json::from_str(text).unwrap();
        assert!(health.database_is_up());
        let text = text.replace(r#""up", "schema_version": 10"#, r#""down", "schema_version": null"#);
        let health: Health = serde_json::from_str(&text.replace(r#""pending": 0, "dead": 0"#, "")).unwrap();
        assert!(!health.database_is_up());
        assert_eq!(health.queue.pending, None);
    }
}
