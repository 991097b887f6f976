//! One data directory of Postgres and the server on it: created, started and stopped with Postgres' own programs.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::process::Command;
use uuid::Uuid;

use super::program::Program;
use crate::files;
use crate::output::hinted;
use crate::runtime::postgres_url::{self, NAME};
use crate::runtime::process::Process;

/// How long Postgres may take to start (crash recovery included) or to stop.
const DEADLINE_SECONDS: &str = "120";
const DEADLINE: Duration = Duration::from_secs(130);

/// A file in the data directory that `postgresql.conf` includes: all that we set.
const CONFIGURATION_FILE: &str = "agent-memory.conf";

/// A file in the data directory that says that our database has been created in it.
const DATABASE_CREATED_FILE: &str = "agent-memory.database-created";

/// What a server may lose when the machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    Durable,
    /// For tests: a crash of the machine may lose everything.
    ThrowAway,
}

/// A data directory and how to run it.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    program: Program,
    data: PathBuf,
    log: PathBuf,
    durability: Durability,
}

impl Cluster {
    /// The folder above `data` must belong to the program's account.
    pub(super) fn new(program: Program, data: PathBuf, log: PathBuf, durability: Durability) -> Self {
        Self { program, data, log, durability }
    }

    /// The process of the running server.
    pub(super) fn process(&self) -> Option<Process> {
        let text = std::fs::read_to_string(self.pid_file()).ok()?;
        let id = text.lines().next()?.trim().parse().ok()?;
        Process::find(id, &self.program.path("postgres"))
    }

    /// Creates the data directory unless it is there, whole or not at all.
    pub(super) async fn initialise(&self, password: &str) -> Result<()> {
        if self.data.exists() {
            return self.check_version();
        }
        let above = self.data.parent().context("the data directory has no parent")?;
        let unfinished = above.join(format!(".tmp-{}", Uuid::new_v4()));
        let password_file = above.join(format!(".tmp-{}", Uuid::new_v4()));
        files::write_private(&password_file, &format!("{password}\n"))?;
        self.program.account().own(&password_file)?;
        let created = self.run_initdb(&unfinished, &password_file).await;
        files::remove(&password_file)?;
        if let Err(error) = created {
            files::remove(&unfinished)?;
            return Err(error);
        }
        std::fs::rename(&unfinished, &self.data).with_context(|| format!("cannot create `{}`", self.data.display()))
    }

    /// Starts the server on a port of 127.0.0.1 and makes sure that our database is in it.
    pub(super) async fn start(&self, port: u16, password: &str) -> Result<()> {
        files::write_private_if_changed(&self.configuration(), &configuration(port, self.durability))?;
        self.program.account().own(&self.configuration())?;
        // The server keeps it short.
        let log = files::open_for_appending(&self.log)?;
        // Without --log the server writes to what it inherits: a file that its account need not be able to open.
        let mut command = self.control("start");
        command.stdout(log.try_clone().context("cannot share the log")?).stderr(log);
        let outcome = with_deadline(command.status()).await?;
        if !outcome.success() {
            // It may still be on its way; the first failure is the one to tell.
            drop(self.stop().await);
            let tail = files::tail(&self.log, 8);
            let error = anyhow!("{tail}").context("Postgres did not start");
            return Err(hinted(error, format!("the whole log is `{}`", self.log.display())));
        }
        self.create_database(port, password).await
    }

    /// Stops the server, without waiting for its clients; nothing to do where none runs.
    pub(super) async fn stop(&self) -> Result<()> {
        let Some(process) = self.process() else { return Ok(()) };
        let mut command = self.control("stop");
        command.args(["--mode", "fast"]);
        // What it says matters less than whether the process is gone.
        let outcome = finish(command).await;
        if process.wait_until_gone(Duration::from_secs(1)).await {
            return Ok(());
        }
        outcome?;
        bail!("Postgres (process {}) does not stop", process.id)
    }

    /// Removes the pid file of a server that is gone. No process of the program may be left.
    pub(super) fn remove_stale_pid_file(&self) -> Result<()> {
        if self.process().is_none() {
            files::remove(&self.pid_file())?;
        }
        Ok(())
    }

    fn pid_file(&self) -> PathBuf {
        self.data.join("postmaster.pid")
    }

    fn configuration(&self) -> PathBuf {
        self.data.join(CONFIGURATION_FILE)
    }

    fn control(&self, verb: &str) -> Command {
        let mut command = self.program.command("pg_ctl");
        command.args([verb, "--silent", "--wait", "--timeout", DEADLINE_SECONDS, "--pgdata"]).arg(&self.data);
        command
    }

    async fn run_initdb(&self, data: &Path, password_file: &Path) -> Result<()> {
        let mut command = self.program.command("initdb");
        command
            .args(["--username", NAME, "--encoding=UTF8", "--data-checksums", "--no-instructions"])
            // The same order and case rules on every system, whatever locales it has.
            .args(["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"])
            .args(["--auth-host=scram-sha-256", "--auth-local=reject"])
            .arg("--pwfile")
            .arg(password_file)
            .arg("--pgdata")
            .arg(data);
        if self.durability == Durability::ThrowAway {
            command.arg("--no-sync");
        }
        finish(command).await.context("cannot create the data directory of Postgres")?;
        let main = data.join("postgresql.conf");
        let text = std::fs::read_to_string(&main).context("cannot read Postgres' configuration")?;
        files::write_private(&main, &format!("{text}\ninclude '{CONFIGURATION_FILE}'\n"))?;
        self.program.account().own(&main)
    }

    fn check_version(&self) -> Result<()> {
        let found = files::read_if_there(&self.data.join("PG_VERSION"))?.unwrap_or_default();
        if found.trim() != POSTGRES_MAJOR {
            let place = self.data.display();
            let error = anyhow!("`{place}` holds data of Postgres `{}`, not {POSTGRES_MAJOR}", found.trim());
            return Err(hinted(error, "move that folder away (it keeps your data), then run `cargo xtask up`"));
        }
        Ok(())
    }

    async fn create_database(&self, port: u16, password: &str) -> Result<()> {
        let marker = self.data.join(DATABASE_CREATED_FILE);
        if marker.exists() {
            return Ok(());
        }
        // As the account that owns the programs: root runs nothing that another account could have changed. That account, which
        // holds the data too, is all that can read this environment.
        let mut command = self.program.command("createdb");
        command.env("PGPASSWORD", password);
        command.args(["--host=127.0.0.1", "--port", &port.to_string(), "--username", NAME, "--no-password", NAME]);
        match finish(command).await {
            Ok(()) => {}
            // An earlier start came this far and no further.
            Err(error) if format!("{error:#}").contains("already exists") => {}
            Err(error) => return Err(error.context("cannot create the database")),
        }
        files::write_private(&marker, "")?;
        self.program.account().own(&marker)
    }
}

/// The major version of the pinned Postgres.
pub(super) const POSTGRES_MAJOR: &str = "18";

/// A port of 127.0.0.1 that nobody listens on now.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free on 127.0.0.1")?;
    Ok(listener.local_addr().context("the system does not tell the port")?.port())
}

/// Whether nobody listens on a port of 127.0.0.1.
pub(super) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The URL of our database on a port of 127.0.0.1.
pub(super) fn url(port: u16, password: &str) -> String {
    postgres_url::own(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), password)
}

fn configuration(port: u16, durability: Durability) -> String {
    let mut text = format!(
        "# Written by agent-memory at each start.\n\
         listen_addresses = '127.0.0.1'\n\
         port = {port}\n\
         unix_socket_directories = ''\n\
         cluster_name = 'agent-memory'\n\
         shared_buffers = '128MB'\n\
         log_line_prefix = '%m [%p] '\n\
         # Without details, which quote what is stored, and without the statement that failed.\n\
         log_error_verbosity = 'terse'\n\
         log_min_error_statement = 'panic'\n"
    );
    if durability == Durability::ThrowAway {
        // Many tests at once, each with a server's pool and others beside it.
        text.push_str("max_connections = 400\nfsync = off\nfull_page_writes = off\nsynchronous_commit = off\n");
    }
    text
}

/// Runs a command to its end; a failure tells what the command said.
async fn finish(mut command: Command) -> Result<()> {
    let Output { status, stdout, stderr } =
        with_deadline(command.stdout(Stdio::piped()).stderr(Stdio::piped()).output()).await?;
    if status.success() {
        return Ok(());
    }
    let said = if stderr.is_empty() { stdout } else { stderr };
    bail!("{}", String::from_utf8_lossy(&said).trim())
}

async fn with_deadline<T>(running: impl Future<Output = std::io::Result<T>>) -> Result<T> {
    tokio::time::timeout(DEADLINE, running)
        .await
        .context("Postgres' own program takes too long")?
        .context("cannot start Postgres' own program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listens_on_loopback_only_and_on_no_socket_file() {
        let text = configuration(5433, Durability::Durable);
        assert!(text.contains("listen_addresses = '127.0.0.1'\n"));
        assert!(text.contains("unix_socket_directories = ''\n"));
        assert!(text.contains("\nlog_error_verbosity = 'terse'\nlog_min_error_statement = 'panic'\n"), "{text}");
        assert!(!text.contains("fsync"), "durable servers keep Postgres' own defaults");
    }

    #[test]
    fn a_port_that_someone_listens_on_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }
}
