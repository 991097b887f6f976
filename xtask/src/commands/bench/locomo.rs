//! `bench locomo`: how much of what answers a question a search finds.

use anyhow::Result;

use super::print;
use crate::bench::stage::{Model, Stage};
use crate::bench::{locomo, record};
use crate::cli::BenchLocomoArgs;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) async fn run(arguments: &BenchLocomoArgs, printer: &Printer) -> Result<()> {
    let programs = build::build(&Repository::locate()?, printer).await?;
    let step = printer.step("Starting a server to measure against");
    let stage = Stage::set(&programs, 1, Model::Pinned).await?;
    let measured = match stage.start_servers().await {
        Ok(()) => locomo::run(&stage, &arguments.folder, &step).await,
        Err(error) => Err(error),
    };
    let struck = stage.strike().await;
    let measured = measured?;
    struck?;
    step.done("Asked all questions");
    print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("locomo", &measured.to_string(), printer)?;
    }
    Ok(())
}
