//! The daily backup: who starts it, and how it is taken away again.
//!
//! Every scheduler starts the same command each hour, and the command looks whether a day has passed since the last scheduled backup. So
//! a run that was missed, because the machine was off or the database away, is caught up within the hour, whatever the scheduler can do.

mod cron;
mod job;
mod launchd;
mod record;
mod server;
mod systemd;
mod tool;

use std::fmt::{self, Display};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use memory::home::Home;
use memory::store;
use serde::{Deserialize, Serialize};

pub use self::job::Job;
pub use self::record::Record;
use crate::output::hinted;
use crate::runtime::RuntimeKind;

/// Who starts the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// The user's own systemd: a timer
    Systemd,
    /// macOS: an agent
    Launchd,
    /// A line in the user's crontab
    Cron,
    /// The server of agent-memory itself, for as long as it runs
    Server,
}

impl Display for Scheduler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
            Self::Cron => "cron",
            Self::Server => "the server",
        })
    }
}

impl Scheduler {
    /// The first that this machine has for the user: what also runs without the server comes first.
    pub async fn find(runtime: RuntimeKind) -> Option<Self> {
        for scheduler in [Self::Systemd, Self::Launchd, Self::Cron, Self::Server] {
            if scheduler.is_there(runtime).await {
                return Some(scheduler);
            }
        }
        None
    }

    async fn is_there(self, runtime: RuntimeKind) -> bool {
        match self {
            Self::Systemd => systemd::is_there().await,
            Self::Launchd => launchd::is_there(),
            Self::Cron => cron::is_there().await,
            // A server in a container sees neither the program nor the database's tools.
            Self::Server => runtime != RuntimeKind::Docker,
        }
    }

    async fn add(self, job: &Job) -> Result<()> {
        match self {
            Self::Systemd => systemd::add(job).await,
            Self::Launchd => launchd::add(job).await,
            Self::Cron => cron::add(job).await,
            Self::Server => Ok(()),
        }
    }

    async fn take_away(self, job: &Job) -> Result<()> {
        match self {
            Self::Systemd => systemd::take_away(job).await,
            Self::Launchd => launchd::take_away(job).await,
            Self::Cron => cron::take_away(job).await,
            Self::Server => Ok(()),
        }
    }

    /// Whether the job is where it was put.
    pub async fn holds(self, job: &Job) -> Result<bool> {
        match self {
            Self::Systemd => systemd::holds(job).await,
            Self::Launchd => launchd::holds(job).await,
            Self::Cron => cron::holds(job).await,
            Self::Server => Ok(server::runs(job)),
        }
    }
}

/// Puts the job where `wanted` says, else where this machine keeps such things; what was there before goes.
pub async fn install(home: &Home, runtime: RuntimeKind, wanted: Option<Scheduler>) -> Result<Scheduler> {
    let chosen = match wanted {
        Some(wanted) if !wanted.is_there(runtime).await => {
            let error = anyhow!("this machine has no {wanted} for you that could start a job");
            return Err(hinted(error, "`cargo xtask schedule install` takes what there is"));
        }
        Some(wanted) => wanted,
        None => Scheduler::find(runtime).await.ok_or_else(no_scheduler)?,
    };
    let job = Job::of(home);
    if let Some(before) = Record::read(home)?.and_then(|record| record.scheduler)
        && before != chosen
    {
        before.take_away(&job).await?;
    }
    chosen.add(&job).await?;
    Record::now(Some(chosen)).keep(home)?;
    note(home, Wish::Daily).await;
    Ok(chosen)
}

fn no_scheduler() -> anyhow::Error {
    hinted(
        anyhow!(
            "there is nothing on this machine that starts a job each day: no systemd of yours, no launchd, no cron"
        ),
        "start a cron daemon, or have `agent-memory backup --scheduled` started by something of your own",
    )
}

/// Takes the job away, and remembers that a person wished it so. Says what it was taken from.
pub async fn remove(home: &Home) -> Result<Option<Scheduler>> {
    let before = Record::read(home)?.and_then(|record| record.scheduler);
    if let Some(before) = before {
        before.take_away(&Job::of(home)).await?;
    }
    Record::now(None).keep(home)?;
    note(home, Wish::None).await;
    Ok(before)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Daily,
    None,
}

/// The server finds in the journal whether to miss a backup. With a database that is away it misses none, which is no reason to fail.
async fn note(home: &Home, wish: Wish) {
    let Ok(db) = crate::journal::open(home).await else { return };
    let _ = store::note_schedule(&db, wish == Wish::Daily).await;
    db.close().await;
}

/// What `up` does: the job is put where it is missing, unless a person took it away.
pub async fn ensure(home: &Home, runtime: RuntimeKind) -> Result<Ensured> {
    match Record::read(home)? {
        Some(Record { scheduler: None, .. }) => Ok(Ensured::Unwanted),
        Some(Record { scheduler: Some(scheduler), .. }) if scheduler.holds(&Job::of(home)).await? => {
            Ok(Ensured::Before(scheduler))
        }
        _ => Ok(Ensured::Now(install(home, runtime, None).await?)),
    }
}

/// After a move: another does it where the one who did cannot in this runtime.
pub async fn follow(home: &Home, runtime: RuntimeKind) -> Result<Option<Scheduler>> {
    match Record::read(home)?.and_then(|record| record.scheduler) {
        Some(Scheduler::Server) if runtime == RuntimeKind::Docker => install(home, runtime, None).await.map(Some),
        _ => Ok(None),
    }
}

/// Takes away what the same installation left when its home lay elsewhere.
pub async fn leave(home: &Home, former: &std::path::Path) -> Result<()> {
    match Record::read(home)?.and_then(|record| record.scheduler) {
        Some(scheduler) => scheduler.take_away(&Job::of(&Home::at(former))).await,
        None => Ok(()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ensured {
    Now(Scheduler),
    Before(Scheduler),
    Unwanted,
}

/// Where the job is, and whether it is still there.
#[derive(Debug, Clone, Serialize)]
pub struct State {
    /// Nothing where none was installed.
    pub scheduler: Option<Scheduler>,
    pub since: Option<chrono::DateTime<chrono::Utc>>,
    /// Why the job is not where it was put.
    pub trouble: Option<String>,
}

impl State {
    pub async fn of(home: &Home) -> Result<Self> {
        let Some(record) = Record::read(home)? else {
            return Ok(Self { scheduler: None, since: None, trouble: None });
        };
        let trouble = match record.scheduler {
            Some(scheduler) => match scheduler.holds(&Job::of(home)).await {
                Ok(true) => None,
                Ok(false) => Some(format!("{scheduler} does not have the job any more, or does not run")),
                Err(error) => Some(crate::output::headline(&error)),
            },
            None => None,
        };
        Ok(Self { scheduler: record.scheduler, since: Some(record.changed_at), trouble })
    }
}
