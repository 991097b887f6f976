//! `bench backfill`: measures the reading of the past with transcripts and a database of its own.

use anyhow::{Result, bail, ensure};

use crate::bench::backfill::{self, Parameters};
use crate::bench::record;
use crate::cli::BenchBackfillArgs;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) async fn run(arguments: &BenchBackfillArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.gigabytes > 0.0 && arguments.stored_gigabytes > 0.0, "cannot measure with nothing");
    let program = build::build_self(&Repository::locate()?, printer).await?;
    let measured = super::in_private_home(async |folder, home| {
        let parameters = Parameters {
            program: &program,
            folder,
            home: home.root(),
            bytes: (arguments.gigabytes * 1e9) as u64,
            stored_bytes: (arguments.stored_gigabytes * 1e9) as u64,
        };
        backfill::run(&parameters, printer).await
    });
    let measured = measured.await?;
    super::print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("backfill", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("reading transcripts costs more than it may");
    }
    Ok(())
}
