//! `bench recall`: how long a search takes, and how much memory the programs hold.

use anyhow::{Result, bail};

use super::print;
use crate::bench::stage::{Model, Stage};
use crate::bench::{recall, record};
use crate::cli::BenchRecallArgs;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) async fn run(arguments: &BenchRecallArgs, printer: &Printer) -> Result<()> {
    let programs = build::build(&Repository::locate()?, printer).await?;
    if cfg!(debug_assertions) {
        return super::in_release(&programs).await;
    }
    let step = printer.step("Starting a server to measure against");
    let stage = Stage::set(&programs, 1, Model::Pinned).await?;
    let measured = match stage.start_servers().await {
        Ok(()) => recall::run(&stage, &arguments.folder, &arguments.sizes, arguments.queries, &step).await,
        Err(error) => Err(error),
    };
    let struck = stage.strike().await;
    let measured = measured?;
    struck?;
    step.done("Searched");
    print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("recall", &measured.to_string(), printer)?;
    }
    let complaints = measured.complaints();
    if !complaints.is_empty() {
        bail!("recall is not as it shall be: {}", complaints.join("; "));
    }
    Ok(())
}
