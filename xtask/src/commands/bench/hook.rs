//! `bench hook`: measures the hook against a server and a database of its own, so that no measured event reaches anyone's
//! journal.

use std::path::Path;

use anyhow::{Context, Result, bail};
use memory::home::Home;
use uuid::Uuid;

use super::print;
use crate::bench::hook::{self, HookBench, Parameters};
use crate::bench::record;
use crate::cli::BenchHookArgs;
use crate::files;
use crate::install::build::{self, Built};
use crate::install::layout;
use crate::output::Printer;
use crate::repository::Repository;
use crate::runtime::embedded::{self, Postgres, free_port};
use crate::runtime::server::Server;

pub(super) async fn run(arguments: &BenchHookArgs, printer: &Printer) -> Result<()> {
    let target_folder = build::build(&Repository::locate()?, printer).await?;
    let folder = std::env::temp_dir().join(format!("agent-memory-bench-{}", Uuid::new_v4()));
    let home = Home::at(&folder);
    let measured = measure(&home, &target_folder, arguments.rounds, printer).await;
    let stopped = Server::of_home(&home).stop().await;
    files::remove(&folder)?;
    let measured = measured?;
    stopped?;
    print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("hook", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("the hook costs more than it may");
    }
    Ok(())
}

async fn measure(home: &Home, target_folder: &Path, rounds: usize, printer: &Printer) -> Result<HookBench> {
    let step = printer.step("Starting a server to measure against");
    layout::create(home)?;
    build::install_programs(home, &Built::Here(target_folder.to_owned()))?;
    let postgres = Postgres::start_private(&embedded::private_cache()?).await?;
    files::write_private(&home.database_url_file(), postgres.url())?;
    let address = layout::choose_address(home, Some(free_port()?))?;
    files::write_private(&home.address_file(), &format!("{address}\n"))?;
    let started = Server::of_home(home).start(address).await;
    step.skip();
    let measured = match started {
        Ok(_) => play(home, rounds, printer).await,
        Err(error) => Err(error),
    };
    Server::of_home(home).stop().await?;
    postgres.stop().await?;
    measured
}

async fn play(home: &Home, rounds: usize, printer: &Printer) -> Result<HookBench> {
    let step = printer.step(format!("Measuring {rounds} rounds"));
    let home = home.clone();
    let measured = tokio::task::spawn_blocking(move || {
        let hook_program = home.program("agent-memory-hook");
        hook::run(&Parameters { hook_program: &hook_program, home: home.root(), rounds })
    })
    .await
    .context("the measurement was interrupted")??;
    step.done(format!("Measured {rounds} rounds"));
    Ok(measured)
}
