//! What becomes of events when things break: each scenario plays against a server and a Postgres of its own, under load, and then
//! the journal is held against what was promised.
//!
//! `flow` sends, `scenarios` break, `full_disk` has the spool on a disk that is too small, `report` tells.

mod flow;
mod full_disk;
mod report;
mod scenarios;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use memory::queue::LEASE;
use memory::store::Db;
use memory::store::bench as rows;

pub(crate) use report::{ChaosBench, Outcome};
pub(crate) use scenarios::Scenario;

use super::load::{HookCall, Ledger};
use super::stage::{Model, Stage};
use crate::output::Step;

/// A lease that has run out is found at the next look at the queue.
const JOB_PATIENCE: Duration = LEASE.saturating_add(Duration::from_secs(30));
const POLL: Duration = Duration::from_millis(200);

pub(crate) struct Parameters {
    /// Cargo's target folder with the built programs.
    pub(crate) programs: PathBuf,
    /// A process that does nothing, to compare the hook with.
    pub(crate) empty: PathBuf,
    /// The hook as a program that lets itself be told another time, where there is a `faketime` to tell it.
    pub(crate) hook_under_faketime: Option<PathBuf>,
    pub(crate) outage: Duration,
    pub(crate) embedding: Model,
}

/// What a scenario leaves to be looked at.
struct Played {
    ledger: Ledger,
    calls: Vec<HookCall>,
    /// What a reader should know of this run.
    note: Option<String>,
}

/// Plays one scenario from an empty stage to the audit.
pub(crate) async fn play(scenario: Scenario, parameters: &Parameters, step: &Step) -> Result<Outcome> {
    if let Some(reason) = scenario.reason_not_to_run() {
        return Ok(Outcome::not_run(scenario.name(), reason));
    }
    step.say(format!("{}: setting the stage", scenario.name()));
    let stage = Stage::set(&parameters.programs, scenario.servers(), parameters.embedding).await?;
    let outcome = act(scenario, parameters, &stage, step).await;
    let struck = stage.strike().await;
    let outcome = outcome.with_context(|| format!("the scenario `{}` came to no end", scenario.name()))?;
    struck?;
    Ok(outcome)
}

async fn act(scenario: Scenario, parameters: &Parameters, stage: &Stage, step: &Step) -> Result<Outcome> {
    step.say(format!("{}: playing", scenario.name()));
    let Played { ledger, calls, mut note } = scenarios::play(scenario, parameters, stage).await?;
    step.say(format!("{}: waiting for the spool", scenario.name()));
    stage.drained().await?;
    step.say(format!("{}: waiting for the jobs", scenario.name()));
    let db = stage.database().await?;
    let jobs_stuck = jobs_stuck(&db).await?;
    let audit = ledger.audit(rows::journal_rows(&db).await.context("cannot read the journal")?);
    let unindexed = rows::unindexed(&db).await.context("cannot read the index")?;
    if scenario == Scenario::ClockSetBack && parameters.hook_under_faketime.is_some() {
        let earliest = rows::earliest(&db).await.context("cannot read the journal")?;
        if earliest.is_none_or(|earliest| earliest > chrono::Utc::now() - scenarios::FAKED / 2) {
            note = Some("faketime did not reach the hook".to_owned());
        }
    }
    db.close().await;
    full_disk::unmount_all(stage)?;
    Ok(Outcome::of(scenario.name(), &report::Found { audit, unindexed, jobs_stuck, calls: &calls, note }))
}

/// Waits until no lease is left that was given out before now, and gives how many such jobs nobody takes after their lease, and dead
/// ones. How many jobs wait behind them is no matter: embedding them all would take longer than the scenario. Without a model jobs
/// can only wait, which is no fault.
async fn jobs_stuck(db: &Db) -> Result<i64> {
    let jobs = rows::Leases::now(db).await.context("cannot read the queue")?;
    let deadline = Instant::now() + JOB_PATIENCE;
    loop {
        let left = jobs.left(db).await.context("cannot read the queue")?;
        if left.leased == 0 || Instant::now() > deadline {
            return Ok(left.leased + left.dead);
        }
        tokio::time::sleep(POLL).await;
    }
}
