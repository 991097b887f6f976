//! Where an installation runs: in containers, as background processes with a private Postgres, or as a background
//! process with the user's own Postgres. What is installed is remembered in `installation.json`; starting, stopping and
//! looking are dispatched from here.

pub mod docker;
pub mod embedded;
pub mod external;
pub mod lock;
mod log_line;
pub mod moved_home;
pub mod postgres_url;
pub mod process;
pub mod server;
pub mod stopped;
pub mod tools;

use std::fmt::{self, Display};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use memory::home::Home;
use serde::{Deserialize, Serialize};

use embedded::InstalledPostgres;
pub(crate) use log_line::readable;
use server::{Server, Started};

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
    /// Where the home lay then: what lies outside of it is found by that after a move. Older versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
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

/// Starts what is installed; what runs already is left alone.
pub async fn start(installation: &Installation, home: &Home, printer: &Printer) -> Result<()> {
    moved_home::refuse_copy(home)?;
    match installation.runtime {
        RuntimeKind::Docker => docker::start(&docker::require().await?, home, printer).await,
        RuntimeKind::Embedded => start_embedded(installation.address, home, printer).await,
        RuntimeKind::External => start_server(installation.address, home, printer).await,
    }
}

/// Starts the embedded Postgres, leaves its URL behind, and starts the server. Of the two, what had to be started is
/// stopped again where the server does not come up.
pub async fn start_embedded(address: SocketAddr, home: &Home, printer: &Printer) -> Result<()> {
    Server::of_home(home).check_address(address)?;
    let postgres = InstalledPostgres::of_home(home)?;
    let step = printer.step("Starting Postgres");
    let ran_before = postgres.state().status == ServiceStatus::Running;
    let url = postgres.start().await?;
    if ran_before {
        step.skip();
    } else {
        step.done(format!("Started Postgres at {}", postgres_url::place(&url)));
    }
    if files::write_private_if_changed(&home.database_url_file(), &format!("{url}\n"))? {
        Server::of_home(home).stop().await?;
    }
    let started = start_server(address, home, printer).await;
    if started.is_err() && !ran_before {
        postgres.stop().await?;
    }
    started
}

/// Starts the server as a background process.
pub async fn start_server(address: SocketAddr, home: &Home, printer: &Printer) -> Result<()> {
    let step = printer.step("Starting the server");
    match Server::of_home(home).start(address).await? {
        Started::Now(health) => step.done(format!("Started the server {} at http://{address}", health.version)),
        Started::Before(_) => step.skip(),
    }
    Ok(())
}

/// Stops everything, and fails if a process or a port is left.
pub async fn stop(installation: &Installation, home: &Home, printer: &Printer) -> Result<()> {
    if installation.runtime == RuntimeKind::Docker {
        docker::down(&docker::require().await?, home, printer).await?;
    } else {
        stop_processes(installation, home).await?;
    }
    if TcpStream::connect_timeout(&installation.address, Duration::from_millis(200)).is_ok() {
        bail!("something still answers at {}, and it is no process of ours", installation.address);
    }
    Ok(())
}

async fn stop_processes(installation: &Installation, home: &Home) -> Result<()> {
    let server = Server::of_home(home);
    server.stop().await?;
    let mut left = server.processes();
    if installation.runtime == RuntimeKind::Embedded {
        let postgres = InstalledPostgres::of_home(home)?;
        postgres.stop().await?;
        left.extend(postgres.processes());
    }
    if let Some(process) = left.first() {
        bail!("process {} of `{}` is still there", process.id, process.program().display());
    }
    Ok(())
}

/// Removes what any runtime of this home keeps outside of it: also what a move left behind, and tools that were fetched for the user's
/// own Postgres. Everything must be stopped.
pub async fn purge(installation: &Installation, home: &Home, printer: &Printer) -> Result<()> {
    if installation.runtime == RuntimeKind::Docker || docker::is_installed(home) {
        docker::purge(&docker::require().await?, home, printer).await?;
    }
    let postgres = InstalledPostgres::of_home(home)?;
    postgres.stop().await?;
    postgres.remove()
}

/// The services as they are now.
pub async fn states(installation: &Installation, home: &Home) -> Result<Vec<ServiceState>> {
    Ok(match installation.runtime {
        RuntimeKind::Docker => docker::state(&docker::require().await?, home).await?,
        RuntimeKind::Embedded => {
            vec![InstalledPostgres::of_home(home)?.state(), Server::of_home(home).state(installation.address).await]
        }
        RuntimeKind::External => vec![Server::of_home(home).state(installation.address).await],
    })
}
