//! The Postgres of an installation: its port and password stay the same from start to start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use memory::home::Home;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::account::Account;
use super::cluster::{self, Cluster, Durability};
use super::program::Program;
use super::{LENT, base, create_base};
use crate::files;
use crate::install::downloads::Downloads;
use crate::output::hinted;
use crate::runtime::process::Process;
use crate::runtime::{ServiceState, ServiceStatus, moved_home};

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
    /// Where programs and data lie, once there are data: a home that is moved keeps those outside of it. Older versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<PathBuf>,
}

impl Settings {
    fn read(path: &Path) -> Result<Option<Self>> {
        let Some(text) = files::read_if_there(path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).with_context(|| format!("cannot understand `{}`", path.display()))
    }
}

/// Where a root caller's Postgres lies: where it always did; before that was written down, by the path that the home has, or had.
fn lent_base(home: &Home, settings: &Path, account: &Account) -> Result<PathBuf> {
    if let Some(base) = Settings::read(settings)?.and_then(|settings| settings.base) {
        return Ok(base);
    }
    let own = base(&home.postgres(), account);
    if own.join("data").exists() {
        return Ok(own);
    }
    let former = moved_home::former(home).map(|former| base(&Home::at(former).postgres(), account));
    Ok(former.filter(|base| base.join("data").exists()).unwrap_or(own))
}

impl InstalledPostgres {
    pub fn of_home(home: &Home) -> Result<Self> {
        let account = Account::choose()?;
        let settings = home.postgres().join("settings.json");
        let base = match &account {
            Account::Caller => base(&home.postgres(), &account),
            Account::Other { .. } => lent_base(home, &settings, &account)?,
        };
        let program = Program::in_folder(base.join("program"), account);
        let log = home.logs().join("postgres.log");
        let cluster = Cluster::new(program.clone(), base.join("data"), log, Durability::Durable);
        Ok(Self { base, program, cluster, settings })
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
            self.check_data_is_there(&settings)?;
            self.cluster.initialise(&settings.password).await?;
            if !cluster::is_free(settings.port) {
                settings.port = cluster::free_port()?;
                self.write(&settings)?;
            }
            self.cluster.start(settings.port, &settings.password).await?;
        }
        if settings.base.as_ref() != Some(&self.base) {
            settings.base = Some(self.base.clone());
            self.write(&settings)?;
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

    /// Removes its programs and keeps its data. It must be stopped.
    pub fn remove_program(&self) -> Result<()> {
        files::remove(&self.base.join("program")).map(drop)
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

    /// An empty database must not take the place of one that is gone.
    fn check_data_is_there(&self, settings: &Settings) -> Result<()> {
        if settings.base.is_none() || self.data_folder().exists() {
            return Ok(());
        }
        let error =
            anyhow!("the data of the embedded Postgres are gone: there is no `{}`", self.data_folder().display());
        let hint = format!(
            "put that folder back where it was. To begin anew without it, remove `{}` and run `cargo xtask up`; `cargo xtask restore` then \
             puts a backup in place",
            self.settings.display()
        );
        Err(hinted(error, hint))
    }

    /// Whether it holds data, running or not.
    pub fn has_data(&self) -> bool {
        self.data_folder().exists()
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
        if let Some(settings) = Settings::read(&self.settings)? {
            return Ok(settings);
        }
        let settings = Settings { port: cluster::free_port()?, password: files::random_secret()?, base: None };
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
