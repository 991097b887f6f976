//! `migrate`: brings the schema of the installation's database up to date, as the server does at its start.

use anyhow::Result;
use memory::home::Home;

use crate::journal;
use crate::output::Printer;

pub(super) async fn run(home: &Home, printer: &Printer) -> Result<()> {
    let step = printer.step("Migrating the database");
    let version = journal::migrate(home).await?;
    step.done(format!("Migrated the database to schema {}", version.unwrap_or_default()));
    Ok(())
}
