//! The Postgres of an installation: its port and password stay the same from start to start.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use memory::home::Home;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::account::Account;
use super::cluster::{self, Cluster, Durability};
use super::program::Program;
use super::{LENT, base, create_base};
use crate::files;
use crate::install::downloads::Downloads;
use crate::runtime::process::Process;
use crate::runtime::{ServiceState, ServiceStatus};

/// The Postgres of an installation.
#[derive(Debug, Clone)]
pub struct InstalledPostgres {
    base: PathBuf,
    program: Program,
    cluster: Cluster,
    settings: PathBuf,
}

/// What must stay the same from start to start: the content of `postgres/settings.json`, a secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Settings {
    port: u16,
    password: String,
}

impl InstalledPostgres {
    pub fn of_home(home: &Home) -> Result<Self> {
        let account = Account::choose()?;
        let base = base(&home.postgres(), &account);
        let program = Program::in_folder(base.join("program"), account);
        let log = home.logs().join("postgres.log");
        let cluster = Cluster::new(program.clone(), base.join("data"), log, Durability::Durable);
        Ok(Self { base, program, cluster, settings: home.postgres().join("settings.json") })
    }

    /// Downloads and unpacks Postgres unless that is done. A running server of an older pin is stopped first.
    pub async fn ensure_program(&self, downloads: &Downloads) -> Result<()> {
        create_base(&self.base, self.program.account())?;
        if !self.program.is_current()? {
            self.cluster.stop().await?;
        }
        self.program.ensure(downloads).await
    }

    /// Starts the server unless it runs, and gives its URL. The port stays what it was unless someone has taken it.
    pub async fn start(&self) -> Result<String> {
        let mut settings = self.settings()?;
        if self.cluster.process().is_none() {
            self.clear_remains().await?;
            self.cluster.initialise(&settings.password).await?;
            if !cluster::is_free(settings.port) {
                settings.port = cluster::free_port()?;
                self.write(&settings)?;
            }
            self.cluster.start(settings.port, &settings.password).await?;
        }
        Ok(cluster::url(settings.port, &settings.password))
    }

    /// Stops the server, and what a killed one has left of itself.
    pub async fn stop(&self) -> Result<()> {
        self.cluster.stop().await?;
        self.clear_remains().await
    }

    pub fn state(&self) -> ServiceState {
        let (status, detail) = match self.cluster.process() {
            Some(process) => (ServiceStatus::Running, format!("process {}{}", process.id, self.port_told())),
            None => (ServiceStatus::Stopped, String::new()),
        };
        ServiceState { name: "postgres", status, detail }
    }

    /// What is left of it in the system's process table: nothing, after [`InstalledPostgres::stop`].
    pub fn processes(&self) -> Vec<Process> {
        Process::all_of(&self.program.path("postgres"))
    }

    /// Removes its data, its programs and its settings. It must be stopped.
    pub fn remove(&self) -> Result<()> {
        files::remove(&self.base)?;
        if let Some(folder) = self.settings.parent() {
            files::remove(folder)?;
        }
        // A root caller's folder for all homes goes with the last of them.
        if let Account::Other { .. } = self.program.account() {
            drop(std::fs::remove_dir(LENT));
        }
        Ok(())
    }

    /// A command of one of its client programs, such as `pg_dump`, run as the account that owns them; `None` where they are not
    /// unpacked.
    pub fn client(&self, name: &str) -> Option<Command> {
        self.program.path(name).is_file().then(|| self.program.command(name))
    }

    /// Where its data lies.
    pub fn data_folder(&self) -> PathBuf {
        self.base.join("data")
    }

    /// After a crash: the children of a server that is gone end by themselves, or are ended; its pid file goes, because
    /// its number may by now be another program's, and Postgres would take that for itself.
    async fn clear_remains(&self) -> Result<()> {
        for process in self.processes() {
            if !process.wait_until_gone(Duration::from_secs(5)).await {
                process.stop(Duration::from_secs(5)).await?;
            }
        }
        self.cluster.remove_stale_pid_file()
    }

    fn settings(&self) -> Result<Settings> {
        if let Some(text) = files::read_if_there(&self.settings)? {
            return serde_json::from_str(&text)
                .with_context(|| format!("cannot understand `{}`", self.settings.display()));
        }
        let settings = Settings { port: cluster::free_port()?, password: files::random_secret()? };
        self.write(&settings)?;
        Ok(settings)
    }

    fn write(&self, settings: &Settings) -> Result<()> {
        let above = self.settings.parent().context("the settings lie in no folder")?;
        files::create_private_folder(above)?;
        // The base is the account's own where it is the same folder; a root caller's settings stay root's.
        files::write_private(&self.settings, &serde_json::to_string(settings).context("cannot write the settings")?)
    }

    fn port_told(&self) -> String {
        self.settings().map(|settings| format!(", port {}", settings.port)).unwrap_or_default()
    }
}
