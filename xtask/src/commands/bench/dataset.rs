//! `bench dataset`: makes a journal of many calls in a database of its own, and a dataset of it.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use memory::home::Home;
use memory::store;
use memory::store::bench::add_work;
use uuid::Uuid;

use crate::bench::dataset::{self, DatasetBench, Parameters};
use crate::bench::record;
use crate::cli::BenchDatasetArgs;
use crate::files;
use crate::install::{build, layout};
use crate::output::Printer;
use crate::repository::Repository;
use crate::runtime::embedded::{self, Postgres};

pub(super) async fn run(arguments: &BenchDatasetArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.calls > 0, "cannot measure without calls");
    let programs = build::build(&Repository::locate()?, printer).await?;
    let program = programs.join("release").join(format!("agent-memory-finetune{}", std::env::consts::EXE_SUFFIX));
    let folder = std::env::temp_dir().join(format!("agent-memory-bench-{}", Uuid::new_v4()));
    let measured = measure(&program, &folder, arguments, printer).await;
    files::remove(&folder)?;
    let measured = measured?;
    super::print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("dataset", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("a dataset takes more memory than it may");
    }
    Ok(())
}

async fn measure(
    program: &Path,
    folder: &Path,
    arguments: &BenchDatasetArgs,
    printer: &Printer,
) -> Result<DatasetBench> {
    let home = Home::at(folder.join("home"));
    layout::create(&home)?;
    let postgres = Postgres::start_private(&embedded::private_cache()?).await?;
    files::write_private(&home.database_url_file(), postgres.url())?;
    let measured = in_database(program, &home, postgres.url(), arguments, printer).await;
    postgres.stop().await?;
    measured
}

async fn in_database(
    program: &Path,
    home: &Home,
    url: &str,
    arguments: &BenchDatasetArgs,
    printer: &Printer,
) -> Result<DatasetBench> {
    let db = store::connect(url).await.context("cannot open the database to measure with")?;
    store::migrate(&db).await.context("cannot bring the database's schema up to date")?;
    let step = printer.step(format!("Making a journal of {} calls", arguments.calls));
    let calls = add_work(&db, arguments.calls).await.context("cannot make the journal")?;
    db.close().await;
    step.done(format!("Made a journal of {calls} calls"));
    let step = printer.step("Making datasets of it");
    let measured = dataset::run(&Parameters { program, home: home.root(), base: &arguments.base, calls }).await?;
    step.done("Made datasets of it");
    Ok(measured)
}
