//! `bench ingest`: measures how fast the server takes events in.

use anyhow::{Result, bail};

use super::print;
use crate::bench::stage::{Model, Stage};
use crate::bench::{ingest, record};
use crate::cli::BenchIngestArgs;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) async fn run(arguments: &BenchIngestArgs, printer: &Printer) -> Result<()> {
    let programs = build::build(&Repository::locate()?, printer).await?;
    if cfg!(debug_assertions) {
        // What is not optimised would be slower at inserting by hand than the server it is compared with.
        return super::in_release(&programs).await;
    }
    let step = printer.step("Starting a server to measure against");
    // Without a model: it would be busy with the documents of one run during the next.
    let stage = Stage::set(&programs, 1, Model::Absent).await?;
    let measured = match stage.start_servers().await {
        Ok(()) => ingest::run(&stage, arguments.rounds, arguments.events, &step).await,
        Err(error) => Err(error),
    };
    let struck = stage.strike().await;
    let measured = measured?;
    struck?;
    step.done(format!("Measured {} rounds", arguments.rounds));
    print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("ingest", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limit() {
        bail!("the server takes events in more slowly than it shall");
    }
    Ok(())
}
