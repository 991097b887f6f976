//! `bench`: one file a measurement. Each plays against programs and a database of its own, so that nothing that is measured
//! reaches anyone's journal.

mod backfill;
mod chaos;
mod dataset;
mod gate;
mod gguf;
mod hook;
mod ingest;
mod locomo;
mod random_base;
mod recall;
mod redact;
mod train;

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use memory::home::Home;
use memory::store;
use serde::Serialize;
use tokio::process::Command;
use uuid::Uuid;

use crate::bench::backfill::worker;
use crate::cli::BenchCommand;
use crate::files;
use crate::install::layout;
use crate::output::Printer;
use crate::runtime::embedded::{self, Postgres};

pub(super) async fn run(command: &BenchCommand, home: &Home, printer: &Printer) -> Result<()> {
    match command {
        BenchCommand::Hook(arguments) => hook::run(arguments, printer).await,
        BenchCommand::Gate(arguments) => gate::run(arguments, printer).await,
        BenchCommand::Gguf(arguments) => gguf::run(arguments, printer).await,
        BenchCommand::Backfill(arguments) => backfill::run(arguments, printer).await,
        BenchCommand::BackfillWorker(arguments) => worker::run(arguments, home, printer).await,
        BenchCommand::Ingest(arguments) => ingest::run(arguments, printer).await,
        BenchCommand::Chaos(arguments) => chaos::run(arguments, printer).await,
        BenchCommand::Dataset(arguments) => dataset::run(arguments, printer).await,
        BenchCommand::Locomo(arguments) => locomo::run(arguments, printer).await,
        BenchCommand::Recall(arguments) => recall::run(arguments, printer).await,
        BenchCommand::Train(arguments) => train::run(arguments, printer).await,
        BenchCommand::Redact(arguments) => redact::run(arguments, printer),
    }
}

/// Does the work with a folder, a home in it and a database that is the home's: nobody else knows of them, and nothing is left.
async fn in_private_home<T>(work: impl AsyncFnOnce(&Path, &Home) -> Result<T>) -> Result<T> {
    let folder = std::env::temp_dir().join(format!("agent-memory-bench-{}", Uuid::new_v4()));
    let done = with_database(&folder, work).await;
    files::remove(&folder)?;
    done
}

async fn with_database<T>(folder: &Path, work: impl AsyncFnOnce(&Path, &Home) -> Result<T>) -> Result<T> {
    let home = Home::at(folder.join("home"));
    layout::create(&home)?;
    let postgres = Postgres::start_private(&embedded::private_cache()?).await?;
    let migrated = async {
        files::write_private(&home.database_url_file(), postgres.url())?;
        let db = store::connect(postgres.url()).await.context("cannot open the database to measure with")?;
        let migrated = store::migrate(&db).await.context("cannot bring the database's schema up to date");
        db.close().await;
        migrated
    };
    let done = match migrated.await {
        Ok(()) => work(folder, &home).await,
        Err(error) => Err(error),
    };
    postgres.stop().await?;
    done
}

fn print(measured: &(impl Serialize + std::fmt::Display), json: bool, printer: &Printer) -> Result<()> {
    if json {
        printer.data(serde_json::to_string_pretty(measured).context("cannot write the measurement as JSON")?);
    } else {
        printer.data(measured);
    }
    Ok(())
}

/// Runs this very command once more in the program that is built for release: what is not optimised would be slower than what it is
/// compared with.
async fn in_release(programs: &Path) -> Result<()> {
    let program = programs.join("release").join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(&program);
    let status = command.args(std::env::args_os().skip(1)).stdin(Stdio::null()).status().await;
    let status = status.with_context(|| format!("cannot start `{}`", program.display()))?;
    if !status.success() {
        bail!("the measurement failed; what it said stands above");
    }
    Ok(())
}
