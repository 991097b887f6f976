//! Postgres' client programs as processes of this machine. Passwords reach them in their environment, which other users cannot read.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{Receiver, Sender};

use super::RESTORE_OPTIONS;
use crate::output::HintExt;
use crate::runtime::embedded::{self, InstalledPostgres};
use crate::runtime::postgres_url;

/// Pieces of an archive: large enough that passing them on costs nothing beside making them.
const PIECE_BYTES: usize = 128 * 1024;
const VERSION_DEADLINE: Duration = Duration::from_secs(10);

/// Where packages leave each version's own programs: `<place>/<major>/bin`.
const PLACES: [&str; 3] = ["/usr/lib/postgresql", "/opt/homebrew/opt/postgresql@", "/usr/pgsql-"];

/// Programs of one version.
#[derive(Debug)]
pub struct LocalTools {
    whose: Whose,
    major: u32,
}

#[derive(Debug)]
enum Whose {
    Embedded(InstalledPostgres),
    /// In this folder; of the search path if `None`.
    Machine(Option<PathBuf>),
}

impl LocalTools {
    /// Those that came with the embedded Postgres; `None` where it is not unpacked.
    pub(super) fn embedded(postgres: InstalledPostgres) -> Option<Self> {
        postgres.client("pg_dump")?;
        Some(Self { whose: Whose::Embedded(postgres), major: embedded::major() })
    }

    /// This machine's own for a server of that major version: the same, else newer ones.
    pub(super) async fn on_this_machine(major: u32) -> Option<Self> {
        for folder in folders_of(major) {
            if folder.join(file_name("pg_dump")).is_file() {
                return Some(Self { whose: Whose::Machine(Some(folder)), major });
            }
        }
        let whose = Whose::Machine(None);
        let found = major_of(whose.command("pg_dump")?).await?;
        (found >= major).then_some(Self { whose, major: found })
    }

    pub(super) fn place(&self) -> String {
        match &self.whose {
            Whose::Embedded(_) => format!("of the embedded Postgres {}", self.major),
            Whose::Machine(Some(folder)) => format!("in `{}`", folder.display()),
            Whose::Machine(None) => format!("of this machine, version {}", self.major),
        }
    }

    pub(super) async fn dump(&self, arguments: &[String], url: &str, archive: Sender<Vec<u8>>) -> Result<()> {
        let mut command = self.command("pg_dump", url)?;
        command.args(arguments).stdout(Stdio::piped());
        let mut running = Running::start("pg_dump", command)?;
        let mut output = running.child.stdout.take().context("pg_dump has no output")?;
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            if output.read_buf(&mut piece).await.context("cannot read what pg_dump gives")? == 0 {
                break;
            }
            if archive.send(piece).await.is_err() {
                bail!("nobody takes what `pg_dump` gives");
            }
        }
        running.end().await
    }

    pub(super) async fn restore(
        &self,
        arguments: Vec<String>,
        url: &str,
        mut archive: Receiver<Vec<u8>>,
    ) -> Result<()> {
        let mut command = self.command("pg_restore", url)?;
        command.args(arguments).env("PGOPTIONS", RESTORE_OPTIONS).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut running = Running::start("pg_restore", command)?;
        let mut input = running.child.stdin.take().context("pg_restore has no input")?;
        while let Some(piece) = archive.recv().await {
            // It has ended, and says itself why.
            if input.write_all(&piece).await.is_err() {
                break;
            }
        }
        drop(input);
        running.end().await
    }

    fn command(&self, program: &str, url: &str) -> Result<Command> {
        let mut command = self.whose.command(program).with_context(|| format!("there is no `{program}`"))?;
        let (shown, password) = postgres_url::without_password(url);
        command.arg(format!("--dbname={shown}")).kill_on_drop(true);
        if let Some(password) = password {
            command.env("PGPASSWORD", password);
        }
        Ok(command)
    }
}

impl Whose {
    fn command(&self, program: &str) -> Option<Command> {
        match self {
            Self::Embedded(postgres) => postgres.client(program),
            Self::Machine(Some(folder)) => Some(Command::new(folder.join(file_name(program)))),
            Self::Machine(None) => Some(Command::new(program)),
        }
    }
}

/// A program at work, and what it says meanwhile.
struct Running {
    program: &'static str,
    child: Child,
    said: tokio::task::JoinHandle<String>,
}

impl Running {
    fn start(program: &'static str, mut command: Command) -> Result<Self> {
        command.env("LC_ALL", "C").stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start `{program}`"))
            .hint("install Postgres' client programs")?;
        let errors = child.stderr.take();
        let said = tokio::spawn(async move {
            let mut text = Vec::new();
            if let Some(mut errors) = errors {
                // What was said until then is all there is.
                drop(errors.read_to_end(&mut text).await);
            }
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        Ok(Self { program, child, said })
    }

    async fn end(mut self) -> Result<()> {
        let status = self.child.wait().await.with_context(|| format!("cannot look after `{}`", self.program))?;
        let said = self.said.await.unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        let said = if said.is_empty() { status.to_string() } else { said };
        Err(anyhow!("{said}").context(format!("`{}` failed", self.program)))
    }
}

fn folders_of(major: u32) -> Vec<PathBuf> {
    let [debian, homebrew, redhat] = PLACES;
    vec![
        Path::new(debian).join(major.to_string()).join("bin"),
        PathBuf::from(format!("{homebrew}{major}/bin")),
        PathBuf::from(format!("{redhat}{major}/bin")),
    ]
}

fn file_name(program: &str) -> String {
    format!("{program}{}", std::env::consts::EXE_SUFFIX)
}

async fn major_of(mut command: Command) -> Option<u32> {
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_DEADLINE, command.output()).await.ok()?.ok()?;
    parse_major(&String::from_utf8_lossy(&output.stdout))
}

/// `pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` is 15.
fn parse_major(said: &str) -> Option<u32> {
    let (_, version) = said.split_once("(PostgreSQL) ")?;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_that_a_program_tells() {
        assert_eq!(parse_major("pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(parse_major("pg_dump (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(parse_major("pg_dump: not found"), None);
    }
}
