//! `import`: reads an export into the empty database of this installation, whose server is stopped meanwhile.

use anyhow::{Context, Result};
use memory::home::Home;
use serde_json::json;

use crate::cli::ImportArgs;
use crate::output::Printer;
use crate::runtime::Installation;
use crate::runtime::stopped::Stopped;
use crate::{journal, leaving};

pub(super) async fn run(arguments: &ImportArgs, home: &Home, printer: &Printer) -> Result<()> {
    let installation = Installation::require(home)?;
    journal::migrate(home).await?;
    let stopped = Stopped::server(&installation, home, printer).await?;
    let step = printer.step("Importing");
    let imported = async {
        let db = journal::open(home).await?;
        let imported = leaving::import(&db, &arguments.path, &step).await;
        db.close().await;
        imported
    }
    .await;
    let (imported, started) = match imported {
        Ok(imported) => {
            step.done(format!("Imported {} rows of {} tables, and compared them", imported.rows, imported.tables));
            (Ok(imported), stopped.start(printer).await)
        }
        Err(error) => {
            step.skip();
            (Err(error), stopped.start(printer).await)
        }
    };
    // Why nothing was imported is told first; a server that does not start is seen by `status`.
    let imported = imported?;
    started.context("everything is imported, and the server does not start on it")?;
    if arguments.json {
        let text = json!({ "rows": imported.rows, "tables": imported.tables });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the result as JSON")?);
    }
    Ok(())
}
