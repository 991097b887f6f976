//! Where an installation runs: in containers, as background processes with a private Postgres, or as a background
//! process with the user's own Postgres. What is installed is remembered in `installation.json`; starting, stopping and
//! looking are dispatched from here.

pub mod docker;
pub mod embedded;
pub mod external;
pub mod postgres_url;
pub mod process;
pub mod server;

use std::fmt::{self, Display};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use memory::home::Home;
use serde::{Deserialize, Serialize};

use crate::cli::Service;
use crate::files;
use crate::output::{HintExt, Printer};

/// The three ways to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeKind {
    /// Containers in a Docker engine.
    Docker,
    /// Our own Postgres and the server as background processes.
    Embedded,
    /// The user's Postgres, and the server as a background process.
    External,
}

impl Display for RuntimeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Docker => "docker",
            Self::Embedded => "embedded",
            Self::External => "external",
        })
    }
}

/// What `up` has installed: the content of `installation.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    pub version: String,
    pub runtime: RuntimeKind,
    pub address: SocketAddr,
    /// Where the database is, without user and password.
    pub database: String,
    pub embedding_model: String,
    pub installed_at: DateTime<Utc>,
}

impl Installation {
    /// What is installed, or `None` where nothing is.
    pub fn read(home: &Home) -> Result<Option<Self>> {
        let path = home.installation_file();
        let Some(text) = files::read_if_there(&path)? else { return Ok(None) };
        let installation = serde_json::from_str(&text)
            .with_context(|| format!("cannot understand `{}`", path.display()))
            .hint("run `cargo xtask up`; it writes the file anew")?;
        Ok(Some(installation))
    }

    /// What is installed, or the failure that says how to install it.
    pub fn require(home: &Home) -> Result<Self> {
        Self::read(home)?
            .with_context(|| format!("nothing is installed in `{}`", home.root().display()))
            .hint("run `cargo xtask up`")
    }

    pub fn write(&self, home: &Home) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("cannot write the installation as JSON")?;
        files::write_private(&home.installation_file(), &format!("{text}\n"))
    }
}

/// One service as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceState {
    /// `postgres` or `server`.
    pub name: &'static str,
    pub status: ServiceStatus,
    /// Where and how, in a few words: `process 4711, port 5433` or `container agent-memory-server`.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceStatus {
    Running,
    /// It runs and does not do its work (yet).
    Unhealthy,
    Stopped,
}

impl Display for ServiceStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Running => "running",
            Self::Unhealthy => "unhealthy",
            Self::Stopped => "stopped",
        })
    }
}

/// Which lines of which log.
#[derive(Debug, Clone, Copy)]
pub struct LogRequest {
    /// All services if `None`.
    pub service: Option<Service>,
    pub follow: bool,
    pub lines: usize,
}
