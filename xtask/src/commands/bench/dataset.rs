//! `bench dataset`: makes a journal of many calls in a database of its own, and a dataset of it.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use memory::home::Home;
use memory::store;
use memory::store::bench::add_work;

use crate::bench::dataset::{self, DatasetBench, Parameters};
use crate::bench::record;
use crate::cli::BenchDatasetArgs;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) async fn run(arguments: &BenchDatasetArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.calls > 0, "cannot measure without calls");
    let programs = build::build(&Repository::locate()?, printer).await?;
    let program = programs.join("release").join(format!("agent-memory-finetune{}", std::env::consts::EXE_SUFFIX));
    let measured = super::in_private_home(async |_, home| measure(&program, home, arguments, printer).await);
    let measured = measured.await?;
    super::print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("dataset", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("a dataset takes more memory than it may");
    }
    Ok(())
}

async fn measure(program: &Path, home: &Home, arguments: &BenchDatasetArgs, printer: &Printer) -> Result<DatasetBench> {
    let step = printer.step(format!("Making a journal of {} calls", arguments.calls));
    let db = store::connect(&home.database_url()?).await.context("cannot open the database to measure with")?;
    let added = add_work(&db, arguments.calls).await.context("cannot make the journal");
    db.close().await;
    let calls = added?;
    step.done(format!("Made a journal of {calls} calls"));
    let step = printer.step("Making datasets of it");
    let measured = dataset::run(&Parameters { program, home: home.root(), base: &arguments.base, calls }).await?;
    step.done("Made datasets of it");
    Ok(measured)
}
