//! What `down --purge` and `uninstall` have in common: everything of an installation goes, and then it is looked for.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use memory::home::Home;

use super::register;
use crate::install::layout::{self, Data, PROGRAMS};
use crate::output::{Printer, hinted};
use crate::runtime::embedded::InstalledPostgres;
use crate::runtime::lock::Lock;
use crate::runtime::process::Process;
use crate::runtime::{self, Installation, RuntimeKind, docker, postgres_url};
use crate::schedule::{self, Job, Record, Scheduler};

/// How long a program of ours that an agent has started may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes the daily backup away from whoever makes it.
pub(super) async fn unschedule(home: &Home, printer: &Printer) -> Result<()> {
    if let Some(scheduler) = schedule::remove(home).await? {
        printer.note(format_args!("Took the daily backup away from {scheduler}"));
    }
    Ok(())
}

/// Removes everything, or all but the data. What runs must be stopped; the lock goes with the rest.
pub(super) async fn remove(
    installation: &Installation,
    data: Data,
    home: &Home,
    printer: &Printer,
    alone: Lock,
) -> Result<()> {
    for process in own_processes(home) {
        process.stop(PATIENCE).await?;
    }
    match data {
        Data::Removed => runtime::purge(installation, home, printer).await?,
        Data::Kept => InstalledPostgres::of_home(home)?.remove_program()?,
    }
    layout::remove(home, data)?;
    drop(alone);
    match data {
        Data::Removed => layout::remove_lock(home),
        Data::Kept => Ok(()),
    }
}

/// Where the installation's parts were reached, noted before they go.
#[derive(Debug)]
pub(super) struct Traces {
    listeners: Vec<(String, u16)>,
    uses_docker: bool,
    scheduler: Option<Scheduler>,
}

impl Traces {
    pub(super) fn of(installation: &Installation, home: &Home) -> Result<Self> {
        let mut listeners = vec![(installation.address.ip().to_string(), installation.address.port())];
        if installation.runtime != RuntimeKind::External {
            listeners.extend(home.database_url().ok().and_then(|url| postgres_url::listener(&url)));
        }
        Ok(Self {
            listeners,
            uses_docker: installation.runtime == RuntimeKind::Docker || docker::is_installed(home),
            scheduler: Record::read(home)?.and_then(|record| record.scheduler),
        })
    }

    /// Looks for everything that an installation can leave. Fails with what there is.
    pub(super) async fn prove_gone(&self, data: Data, home: &Home) -> Result<()> {
        let mut left: Vec<String> = own_processes(home)
            .into_iter()
            .chain(InstalledPostgres::of_home(home)?.processes())
            .map(|process| format!("process {} of `{}`", process.id, process.program().display()))
            .collect();
        left.extend(
            self.listeners
                .iter()
                .filter(|(host, port)| answers(host, *port))
                .map(|(host, port)| format!("a listener on {host}:{port}")),
        );
        left.extend(register::registered_with(home)?.into_iter().map(|agent| format!("a registration with {agent}")));
        if let Some(scheduler) = self.scheduler
            && scheduler.holds(&Job::of(home)).await?
        {
            left.push(format!("the daily backup of {scheduler}"));
        }
        left.extend(
            layout::ours(home, data)
                .into_iter()
                .filter(|path| path.exists())
                .map(|path| format!("`{}`", path.display())),
        );
        if data == Data::Removed && InstalledPostgres::of_home(home)?.has_data() {
            left.push("the data of the embedded Postgres".to_owned());
        }
        if self.uses_docker {
            let found = docker::left(&docker::require().await?, home).await.context("cannot look for containers")?;
            left.extend(found.into_iter().filter(|part| data == Data::Removed || !part.is_data).map(|part| part.name));
        }
        if left.is_empty() {
            return Ok(());
        }
        let error = anyhow!("this is left: {}", left.join(", "));
        Err(hinted(error, "end or remove it by hand; nothing else of agent-memory is there"))
    }
}

/// Processes of the installed programs, also those that agents have started; without this one, which may be one of them.
fn own_processes(home: &Home) -> Vec<Process> {
    let own = std::process::id();
    let all = PROGRAMS.iter().flat_map(|program| Process::all_of(&home.program(program.installed)));
    all.filter(|process| process.id != own).collect()
}

fn answers(host: &str, port: u16) -> bool {
    let addresses = (host, port).to_socket_addrs().into_iter().flatten();
    addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok())
}
