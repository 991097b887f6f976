//! The scenarios: what is broken, while what flows.

use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;
use clap::ValueEnum;

use super::super::load::{Clock, HookLoad};
use super::super::stage::Stage;
use super::flow::{Flow, Flowed, Plan};
use super::{Parameters, Played, full_disk};

/// How far back `faketime` sets the hook's clock.
pub(super) const FAKED: TimeDelta = TimeDelta::minutes(90);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Postgres is restarted twice and crashes once
    PostgresRestarted,
    /// Postgres is stopped for a while
    PostgresStopped,
    /// The server is killed and started again, several times
    ServerKilled,
    /// The spool's disk is full and the server is away
    DiskFullServerAway,
    /// The spool's disk is full and the server is there
    DiskFull,
    /// The clock runs backwards
    ClockSetBack,
    /// Two servers on one database, some events sent to both
    TwoServers,
    /// 64 sessions of the hook at once
    ParallelSessions,
}

impl Scenario {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PostgresRestarted => "Postgres restarted",
            Self::PostgresStopped => "Postgres stopped",
            Self::ServerKilled => "server killed",
            Self::DiskFullServerAway => "disk full, server away",
            Self::DiskFull => "disk full, server there",
            Self::ClockSetBack => "clock set back",
            Self::TwoServers => "two servers",
            Self::ParallelSessions => "64 parallel sessions",
        }
    }

    pub(super) const fn servers(self) -> usize {
        if matches!(self, Self::TwoServers) { 2 } else { 1 }
    }

    pub(super) fn reason_not_to_run(self) -> Option<String> {
        matches!(self, Self::DiskFull | Self::DiskFullServerAway).then(full_disk::reason_not_to_run).flatten()
    }
}

pub(super) async fn play(scenario: Scenario, parameters: &Parameters, stage: &Stage) -> Result<Played> {
    let hooks = hooks(parameters, stage);
    let plan = Plan { posting_sessions: 6, clock: Clock::Right, pause: hooks.pause, hooks: Some(hooks) };
    if scenario != Scenario::DiskFullServerAway {
        stage.start_servers().await?;
    }
    let flowed = match scenario {
        Scenario::PostgresRestarted => postgres_restarted(stage, plan).await?,
        Scenario::PostgresStopped => postgres_stopped(stage, plan, parameters.outage).await?,
        Scenario::ServerKilled => server_killed(stage, plan).await?,
        Scenario::DiskFullServerAway => return full_disk::without_server(stage, plan).await,
        Scenario::DiskFull => return full_disk::with_server(stage, plan).await,
        Scenario::ClockSetBack => return clock_set_back(stage, plan, parameters).await,
        Scenario::TwoServers => some_time(stage, plan).await?,
        Scenario::ParallelSessions => parallel_sessions(stage, plan).await?,
    };
    Ok(played(flowed, None))
}

pub(super) fn played(flowed: Flowed, note: Option<String>) -> Played {
    let (ledger, calls) = flowed.ledger();
    Played { ledger, calls, note }
}

/// What flows in most scenarios: about a hundred events a second.
fn hooks(parameters: &Parameters, stage: &Stage) -> HookLoad {
    HookLoad {
        program: stage.home().program("agent-memory-hook"),
        through: Vec::new(),
        empty: parameters.empty.clone(),
        homes: stage.homes().to_vec(),
        sessions: 4,
        pause: Duration::from_millis(100),
        events_each: None,
    }
}

async fn postgres_restarted(stage: &Stage, plan: Plan) -> Result<Flowed> {
    let flow = Flow::start(stage, plan)?;
    for crashes in [false, true, false] {
        pass(3).await;
        if crashes {
            stage.kill_postgres();
        }
        stage.stop_postgres().await?;
        stage.start_postgres().await?;
    }
    pass(3).await;
    flow.stop().await
}

async fn postgres_stopped(stage: &Stage, mut plan: Plan, outage: Duration) -> Result<Flowed> {
    // Long enough to need fewer at a time.
    plan.pause = Duration::from_millis(250);
    if let Some(hooks) = &mut plan.hooks {
        hooks.pause = plan.pause;
    }
    let flow = Flow::start(stage, plan)?;
    pass(2).await;
    stage.stop_postgres().await?;
    tokio::time::sleep(outage).await;
    stage.start_postgres().await?;
    pass(3).await;
    flow.stop().await
}

async fn server_killed(stage: &Stage, plan: Plan) -> Result<Flowed> {
    const TIMES: usize = 6;
    let flow = Flow::start(stage, plan)?;
    for _ in 0..TIMES {
        pass(2).await;
        stage.kill_servers();
        tokio::time::sleep(Duration::from_millis(500)).await;
        stage.start_servers().await?;
    }
    flow.stop().await
}

async fn clock_set_back(stage: &Stage, mut plan: Plan, parameters: &Parameters) -> Result<Played> {
    plan.clock = Clock::Backwards;
    let mut note = Some("the hook's own clock was right: there is no faketime".to_owned());
    if let (Some(hooks), Some(program)) = (&mut plan.hooks, &parameters.hook_under_faketime) {
        hooks.program.clone_from(program);
        hooks.through = ["faketime", "-f", &format!("-{}m", FAKED.num_minutes())].map(str::to_owned).to_vec();
        note = Some("hooks were started through faketime, which is in their times".to_owned());
    }
    Ok(played(some_time(stage, plan).await?, note))
}

async fn some_time(stage: &Stage, plan: Plan) -> Result<Flowed> {
    let flow = Flow::start(stage, plan)?;
    pass(8).await;
    flow.stop().await
}

async fn parallel_sessions(stage: &Stage, mut plan: Plan) -> Result<Flowed> {
    const SESSIONS: usize = 64;
    const EVENTS_EACH: usize = 20;
    plan.posting_sessions = 0;
    plan.hooks = plan.hooks.map(|hooks| HookLoad { sessions: SESSIONS, events_each: Some(EVENTS_EACH), ..hooks });
    Flow::start(stage, plan)?.end_of_hooks().await
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
