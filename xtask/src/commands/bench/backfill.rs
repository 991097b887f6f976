//! `bench backfill`: measures the reading of the past with transcripts and a database of its own.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use memory::home::Home;
use memory::store;
use uuid::Uuid;

use crate::bench::backfill::{self, BackfillBench, Parameters};
use crate::bench::record;
use crate::cli::BenchBackfillArgs;
use crate::files;
use crate::install::{build, layout};
use crate::output::Printer;
use crate::repository::Repository;
use crate::runtime::embedded::{self, Postgres};

pub(super) async fn run(arguments: &BenchBackfillArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.gigabytes > 0.0 && arguments.stored_gigabytes > 0.0, "cannot measure with nothing");
    let program = build::build_self(&Repository::locate()?, printer).await?;
    let folder = std::env::temp_dir().join(format!("agent-memory-bench-{}", Uuid::new_v4()));
    let measured = measure(&program, &folder, arguments, printer).await;
    files::remove(&folder)?;
    let measured = measured?;
    super::print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("backfill", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("reading transcripts costs more than it may");
    }
    Ok(())
}

async fn measure(
    program: &Path,
    folder: &Path,
    arguments: &BenchBackfillArgs,
    printer: &Printer,
) -> Result<BackfillBench> {
    let home = Home::at(folder.join("home"));
    layout::create(&home)?;
    let postgres = Postgres::start_private(&embedded::private_cache()?).await?;
    files::write_private(&home.database_url_file(), postgres.url())?;
    let db = store::connect(postgres.url()).await.context("cannot open the database to measure with")?;
    let migrated = store::migrate(&db).await.context("cannot bring the database's schema up to date");
    db.close().await;
    let measured = match migrated {
        Ok(()) => {
            let parameters = Parameters {
                program,
                folder,
                home: home.root(),
                bytes: (arguments.gigabytes * 1e9) as u64,
                stored_bytes: (arguments.stored_gigabytes * 1e9) as u64,
            };
            backfill::run(&parameters, printer).await
        }
        Err(error) => Err(error),
    };
    postgres.stop().await?;
    measured
}
