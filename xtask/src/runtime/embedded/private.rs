//! A Postgres for tests: fast, without durability, gone afterwards. What a killed test run left behind is swept away by
//! the next one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use uuid::Uuid;

use super::account::Account;
use super::cluster::{self, Cluster, Durability};
use super::program::Program;
use super::{base, create_base};
use crate::files;
use crate::install::downloads::Downloads;
use crate::output::{Printer, Verbosity};
use crate::runtime::lock::Lock;
use crate::runtime::process::Process;

/// A file in an instance's folder: the process that uses it, and that process' program.
const USER_FILE: &str = "used-by";

/// A running server that nobody else uses. Dropped, it shuts down; [`Postgres::stop`] also waits and cleans up.
#[derive(Debug)]
pub struct Postgres {
    url: String,
    folder: PathBuf,
    cluster: Cluster,
}

impl Postgres {
    /// Downloads and unpacks what [`Postgres::start_private`] needs; with it the start takes two seconds.
    pub async fn ensure_program(cache: &Path, printer: &Printer) -> Result<()> {
        let account = Account::choose()?;
        let base = base(cache, &account);
        files::create_private_folder(cache)?;
        create_base(&base, &account)?;
        let program = Program::in_folder(base.join("program"), account);
        let _alone = Lock::acquire(&cache.join("lock"), printer).await?;
        sweep(&base, &program).await?;
        program.ensure(&Downloads::into_folder(cache.join("downloads"))).await
    }

    /// Starts one. `cache` is a folder that outlives it: downloads and unpacked programs stay there for the next time.
    /// A root caller's files lie below `/var/lib/agent-memory` instead, for the account that Postgres runs as.
    pub async fn start_private(cache: &Path) -> Result<Self> {
        Self::ensure_program(cache, &Printer::new(Verbosity::Quiet)).await?;
        let account = Account::choose()?;
        let base = base(cache, &account);
        let folder = base.join(format!("instance-{}", Uuid::new_v4()));
        files::create_private_folder(&folder)?;
        account.own(&folder)?;
        files::write_private(&folder.join(USER_FILE), &used_by_this_process()?)?;
        Self::start_in(folder, Program::in_folder(base.join("program"), account)).await
    }

    /// The URL of an empty database that the caller owns the whole server of.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server and removes what it wrote.
    pub async fn stop(self) -> Result<()> {
        self.cluster.stop().await?;
        files::remove(&self.folder).map(drop)
    }

    async fn start_in(folder: PathBuf, program: Program) -> Result<Self> {
        let log = folder.join("postgres.log");
        let cluster = Cluster::new(program, folder.join("data"), log, Durability::ThrowAway);
        let (port, password) = (cluster::free_port()?, files::random_secret()?);
        let started = Self { url: cluster::url(port, &password), folder, cluster };
        started.cluster.initialise(&password).await?;
        started.cluster.start(port, &password).await?;
        Ok(started)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(process) = self.cluster.process() {
            process.interrupt();
        }
    }
}

fn used_by_this_process() -> Result<String> {
    let program = std::env::current_exe().context("the system does not tell which program this is")?;
    Ok(format!("{}\n{}\n", std::process::id(), program.display()))
}

/// Stops and removes the instances whose users are gone.
async fn sweep(base: &Path, program: &Program) -> Result<()> {
    let entries = std::fs::read_dir(base).with_context(|| format!("cannot read `{}`", base.display()))?;
    for entry in entries.filter_map(Result::ok) {
        let folder = entry.path();
        if !entry.file_name().to_string_lossy().starts_with("instance-") || is_used(&folder)? {
            continue;
        }
        let (data, log) = (folder.join("data"), folder.join("postgres.log"));
        Cluster::new(program.clone(), data, log, Durability::ThrowAway).stop().await?;
        files::remove(&folder)?;
    }
    Ok(())
}

fn is_used(folder: &Path) -> Result<bool> {
    let Some(text) = files::read_if_there(&folder.join(USER_FILE))? else {
        // Just made, its user not yet written: leave it to a later sweep.
        let age = folder.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        return Ok(age.is_none_or(|age| age.as_secs() < 60));
    };
    let mut lines = text.lines();
    let user = lines.next().and_then(|line| line.parse().ok()).zip(lines.next());
    Ok(user.is_some_and(|(id, program)| Process::find(id, Path::new(program)).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_used_as_long_as_its_user_runs() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_used(folder.path()).unwrap(), "just made");
        std::fs::write(folder.path().join(USER_FILE), used_by_this_process().unwrap()).unwrap();
        assert!(is_used(folder.path()).unwrap());
        std::fs::write(folder.path().join(USER_FILE), format!("{}\n/no/such/program\n", std::process::id())).unwrap();
        assert!(!is_used(folder.path()).unwrap(), "its number has gone to another program");
    }
}
