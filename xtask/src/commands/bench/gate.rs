//! `bench gate`: what the lessons add to a call, against servers and databases of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use memory::store::bench::add_lessons;

use super::print;
use crate::bench::gate::{self, GateBench, Held};
use crate::bench::record;
use crate::bench::stage::{Model, Stage};
use crate::cli::BenchGateArgs;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

/// How many lessons the servers have, the first none.
const LESSONS: [usize; 4] = [0, 10, 1_000, 10_000];
/// Servers read the lessons when they are told; thousands take a moment.
const SETTLING: Duration = Duration::from_secs(3);

pub(super) async fn run(arguments: &BenchGateArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.calls > 0, "cannot measure without calls");
    let programs = build::build(&Repository::locate()?, printer).await?;
    let step = printer.step("Starting servers to measure against");
    let mut stages = Vec::new();
    let measured = measure(&mut stages, &programs, arguments.calls).await;
    for stage in stages {
        stage.strike().await?;
    }
    let measured = measured?;
    step.done(format!("Measured {} calls", arguments.calls));
    print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("gate", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("the lessons cost more than they may");
    }
    Ok(())
}

async fn measure(stages: &mut Vec<Stage>, programs: &Path, calls: usize) -> Result<GateBench> {
    let mut held = Vec::new();
    for lessons in LESSONS {
        let stage = Stage::set(programs, 1, Model::Absent).await?;
        let started = stage.start_servers().await;
        let home = stage.home();
        held.push(Held { lessons, home: home.root().to_owned(), hook_program: home.program("agent-memory-hook") });
        stages.push(stage);
        started?;
        let db = stages[stages.len() - 1].database().await?;
        let added = add_lessons(&db, lessons).await.context("cannot add the lessons");
        db.close().await;
        added?;
    }
    tokio::time::sleep(SETTLING).await;
    tokio::task::spawn_blocking(move || gate::run(&held, calls)).await.context("the measurement was interrupted")?
}
