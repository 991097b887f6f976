//! `move`: takes what is remembered to another runtime, after asking; with `--forget` removes what earlier moves have kept.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use memory::home::Home;
use serde_json::json;

use super::consent::{Question, confirm};
use crate::cli::MoveArgs;
use crate::moving::{self, Kept, Moved, Place, Record};
use crate::output::{Printer, human_duration, report};
use crate::runtime::{Installation, RuntimeKind};
use crate::schedule;

pub(super) async fn run(arguments: MoveArgs, home: &Home, printer: &Printer) -> Result<()> {
    if arguments.forget {
        return forget(&arguments, home, printer).await;
    }
    let to = arguments.to.as_deref().context("no place was named")?;
    let place = Place::parse(to, arguments.database_url.as_deref())?;
    let installation = moving::check(&place, home)?;
    if !arguments.yes {
        let text = format!(
            "This moves what is remembered from {} ({}) to {place}, and starts the server there; what is there now is kept.",
            installation.database, installation.runtime
        );
        confirm(Question { text: &text, word: "yes", without_asking: "cargo xtask move --to PLACE --yes" })?;
    }
    let moved = moving::go(&place, &installation, home, printer).await?;
    have_backed_up(&moved.to, home, printer).await;
    if arguments.json {
        let text = json!({
            "from": installation, "to": moved.to, "rows": moved.copied.rows, "tables": moved.copied.tables, "kept": moved.copied.kept,
            "duration_ms": u64::try_from(moved.copied.took.as_millis()).unwrap_or(u64::MAX),
        });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the result as JSON")?);
    } else {
        printer.data(told(&moved, &installation));
    }
    Ok(())
}

/// What was done, and what of the former place is left.
fn told(moved: &Moved, before: &Installation) -> String {
    let Moved { from, to, copied } = moved;
    let mut text = format!(
        "Moved {} rows of {} tables from {from} ({}) to {} ({}) in {}; the server runs there",
        copied.rows,
        copied.tables,
        before.runtime,
        to.database,
        to.runtime,
        human_duration(copied.took)
    );
    // Writing to a string does not fail.
    let _ = match before.runtime {
        RuntimeKind::External => write!(text, ". {from} is as it was; it is yours to drop"),
        kind => write!(text, ". The {kind} database is as it was and stopped; `cargo xtask move --forget` removes it"),
    };
    if let Some(kept) = &copied.kept {
        let _ = write!(
            text,
            ". What an earlier move had left there is kept as {kept}; `cargo xtask restore --forget` drops it"
        );
    }
    text
}

/// A server in a container cannot make backups: then somebody else has to.
async fn have_backed_up(installation: &Installation, home: &Home, printer: &Printer) {
    match schedule::follow(home, installation.runtime).await {
        Ok(None) => {}
        Ok(Some(scheduler)) => printer.note(format_args!("From now on {scheduler} has a backup made each day")),
        Err(error) => printer.warn(format_args!("No backup will be made by itself: {}", report(&error).trim_end())),
    }
}

async fn forget(arguments: &MoveArgs, home: &Home, printer: &Printer) -> Result<()> {
    let record = Record::read(home)?;
    if record.kept.is_empty() && record.under_way.is_none() {
        printer.note("No move has left a database behind");
        return Ok(());
    }
    if !arguments.yes {
        let places: Vec<_> = record.kept.iter().map(line).collect();
        let text = format!("This removes, for good, what moves have left behind: {}.", places.join(" and "));
        confirm(Question { text: &text, word: "yes", without_asking: "cargo xtask move --forget --yes" })?;
    }
    let removed = moving::forget(home, printer).await?;
    if arguments.json {
        printer.data(
            serde_json::to_string_pretty(&json!({ "removed": removed })).context("cannot write the result as JSON")?,
        );
        return Ok(());
    }
    for kept in &removed {
        printer.data(match kept.runtime {
            RuntimeKind::External => format!("{} is yours to drop; it is not remembered any more", kept.database),
            _ => format!("Removed {}", line(kept)),
        });
    }
    Ok(())
}

fn line(kept: &Kept) -> String {
    format!("the {} database ({}), left on {}", kept.runtime, kept.database, kept.moved_at.format("%Y-%m-%d"))
}
