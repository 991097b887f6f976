//! The tools of a database: `pg_dump` and `pg_restore` of a version that fits its server. In the container, of the embedded Postgres,
//! or of this machine: what they are asked is the same everywhere, and nothing of them touches the disk here.

mod local;

use anyhow::{Context, Result};
use memory::home::Home;
use tokio::sync::mpsc::{Receiver, Sender};

use super::docker::{self, ContainerTools};
use super::embedded::{self, InstalledPostgres};
use super::{Installation, RuntimeKind, postgres_url};
use crate::install::downloads::Downloads;
use crate::output::{HintExt, Printer};
use local::LocalTools;

/// Settings of a restoring connection. An index over vectors is built in memory if it fits; more than one process would need shared
/// memory that not every machine has.
pub(super) const RESTORE_OPTIONS: &str =
    "-c maintenance_work_mem=256MB -c max_parallel_maintenance_workers=0 -c statement_timeout=0";

/// `pg_dump` and `pg_restore`, wherever they run.
#[derive(Debug)]
pub enum Tools {
    Container(ContainerTools),
    Local(LocalTools),
}

/// What is to be dumped.
#[derive(Debug, Clone, Copy)]
pub struct Dump<'a> {
    pub url: &'a str,
    /// The snapshot that is seen, as Postgres exported it.
    pub snapshot: &'a str,
}

impl Tools {
    /// Those that fit the installation's database, whose server has this version (180001 is 18.1).
    pub async fn of(installation: &Installation, server_version: i32, home: &Home, printer: &Printer) -> Result<Self> {
        let major = server_version.unsigned_abs() / 10_000;
        match installation.runtime {
            RuntimeKind::Docker => Ok(Self::Container(ContainerTools::of_home(docker::require().await?, home).await?)),
            RuntimeKind::Embedded => {
                let postgres = InstalledPostgres::of_home(home)?;
                let tools = LocalTools::embedded(postgres).context("the embedded Postgres' own tools are gone");
                Ok(Self::Local(tools.hint("run `cargo xtask up`; it unpacks them again")?))
            }
            RuntimeKind::External => external(major, home, printer).await,
        }
    }

    /// Where they are, in a few words.
    pub fn place(&self) -> String {
        match self {
            Self::Container(tools) => format!("in the container {}", tools.container()),
            Self::Local(tools) => tools.place(),
        }
    }

    /// Writes a database as a custom-format archive into the channel.
    pub async fn dump(&self, dump: Dump<'_>, archive: Sender<Vec<u8>>) -> Result<()> {
        let flags = ["--format=custom", "--no-owner", "--no-privileges", "--no-password"];
        let mut arguments: Vec<_> = flags.map(str::to_owned).into();
        arguments.push(format!("--snapshot={}", dump.snapshot));
        match self {
            Self::Container(tools) => {
                tools.read_from(&command("pg_dump", arguments, &name_in(dump.url)), archive).await
            }
            Self::Local(tools) => tools.dump(&arguments, dump.url, archive).await,
        }
    }

    /// Fills the empty database of that URL from a custom-format archive. The first statement that fails ends it.
    pub async fn restore(&self, url: &str, archive: Receiver<Vec<u8>>) -> Result<()> {
        // An extension's comment can be set by its owner only, who need not be who restores.
        let flags = ["--exit-on-error", "--no-owner", "--no-privileges", "--no-comments", "--no-password"];
        let arguments = flags.map(str::to_owned).into();
        match self {
            Self::Container(tools) => tools.write_to(&command("pg_restore", arguments, &name_in(url)), archive).await,
            Self::Local(tools) => tools.restore(arguments, url, archive).await,
        }
    }
}

/// For the user's own Postgres: this machine's programs of the same version; else newer ones; else ours, which are fetched for it.
async fn external(major: u32, home: &Home, printer: &Printer) -> Result<Tools> {
    let found = LocalTools::on_this_machine(major).await;
    if let Some(tools) = found {
        return Ok(Tools::Local(tools));
    }
    let postgres = InstalledPostgres::of_home(home)?;
    let fetched = if major > embedded::major() {
        None
    } else {
        if postgres.client("pg_dump").is_none() {
            let step = printer.step("Fetching Postgres' tools: this machine has none for that server");
            postgres.ensure_program(&Downloads::into_folder(home.downloads())).await?;
            step.done("Fetched Postgres' tools");
        }
        LocalTools::embedded(postgres)
    };
    let tools = fetched.with_context(|| format!("this machine has no `pg_dump` for Postgres {major}"));
    Ok(Tools::Local(tools.hint(format!("install it (Debian: `apt install postgresql-client-{major}`)"))?))
}

fn command(program: &str, arguments: Vec<String>, database: &str) -> Vec<String> {
    let mut words = vec![program.to_owned()];
    words.extend(arguments);
    words.push(format!("--dbname={database}"));
    words
}

/// The database's name in a URL of our own making.
fn name_in(url: &str) -> String {
    postgres_url::place(url).rsplit_once('/').map_or_else(|| postgres_url::NAME.to_owned(), |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_told_the_database_and_no_password() {
        let words = command("pg_dump", vec!["--format=custom".to_owned()], &name_in("postgres://u:secret@h:1/mine"));
        assert_eq!(words, ["pg_dump", "--format=custom", "--dbname=mine"]);
    }
}
