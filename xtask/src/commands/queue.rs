//! `queue`: what an operator can do about jobs that do not get done by themselves. `doctor` says which these are.

use anyhow::{Context, Result};
use memory::home::Home;
use memory::queue::{self, Reach, Selection};

use crate::cli::{QueueCommand, QueueSelection};
use crate::journal;
use crate::output::{HintExt, Printer};

pub(super) async fn run(command: &QueueCommand, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let done = match command {
        QueueCommand::Retry(arguments) => queue::retry(&db, &selection(arguments))
            .await
            .map(|jobs| format!("{jobs} jobs are tried again from now on"))
            .context("cannot have the jobs tried again"),
        QueueCommand::Drop(arguments) => queue::drop_jobs(&db, &selection(arguments))
            .await
            .map(|jobs| format!("Dropped {jobs} jobs"))
            .context("cannot drop the jobs"),
    };
    db.close().await;
    printer.note(done.hint("`cargo xtask doctor` says whether the database is as it should be")?);
    Ok(())
}

fn selection(arguments: &QueueSelection) -> Selection {
    Selection { kind: arguments.kind.clone(), reach: if arguments.all { Reach::All } else { Reach::Dead } }
}
