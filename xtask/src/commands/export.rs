//! `export`: writes everything that is remembered as NDJSON, while everybody goes on.

use anyhow::{Context, Result};
use memory::home::Home;
use serde_json::json;

use crate::cli::ExportArgs;
use crate::output::{Printer, human_bytes};
use crate::{journal, leaving};

pub(super) async fn run(arguments: &ExportArgs, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let step = printer.step("Exporting");
    let exported = leaving::export(&db, &arguments.path, &step).await;
    db.close().await;
    let exported = exported?;
    step.done(format!(
        "Exported {} rows of {} tables ({})",
        exported.rows,
        exported.tables,
        human_bytes(exported.bytes)
    ));
    if arguments.json {
        let text = json!({
            "path": exported.path, "rows": exported.rows, "tables": exported.tables, "bytes": exported.bytes,
        });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the result as JSON")?);
    } else {
        printer.data(exported.path.display());
    }
    Ok(())
}
