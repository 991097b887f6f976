//! The runs of the past: listed, and taken back.

use std::fmt::Write;

use anyhow::{Context, Result, anyhow};
use memory::home::Home;
use memory::ids::BackfillRunId;
use memory::store;

use super::counted;
use crate::cli::BackfillArgs;
use crate::journal;
use crate::output::{HintExt, Printer, hinted};

pub(super) async fn list(arguments: &BackfillArgs, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let runs = store::backfill_runs(&db).await.context("cannot read the runs");
    db.close().await;
    let runs = runs.hint("run `cargo xtask migrate` if the schema is older than this program")?;
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&runs).context("cannot write the runs as JSON")?);
        return Ok(());
    }
    if runs.is_empty() {
        printer.data("Nothing was backfilled yet.");
        return Ok(());
    }
    let mut text = String::from("run   started           status       from         new rows\n");
    for run in runs {
        let inserted = run.counts.get("inserted").and_then(|inserted| inserted.as_object());
        let new: i64 =
            inserted.into_iter().flat_map(|counts| counts.values()).filter_map(serde_json::Value::as_i64).sum();
        let _ = writeln!(
            text,
            "{:<5} {:<17} {:<12} {:<12} {new}",
            run.id,
            run.started_at.format("%Y-%m-%d %H:%M"),
            run.status,
            run.agent,
        );
    }
    printer.data(text.trim_end());
    Ok(())
}

pub(super) async fn roll_back(run: i64, arguments: &BackfillArgs, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let step = printer.step(format!("Taking run {run} back"));
    let gone = store::roll_back(&db, BackfillRunId(run)).await;
    db.close().await;
    let gone = gone.with_context(|| format!("cannot take run {run} back; nothing was changed"))?;
    let Some(gone) = gone else {
        return Err(hinted(
            anyhow!("there is no run {run}, or it was taken back already"),
            "`cargo xtask backfill --list` shows the runs",
        ));
    };
    step.done(format!("Took run {run} back"));
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&gone).context("cannot write the counts as JSON")?);
        return Ok(());
    }
    let number = |count: i64, noun| counted(usize::try_from(count).unwrap_or_default(), noun);
    printer.data(format_args!(
        "Deleted {}, {}, {}, {}, {} and {}. What hooks have told of since stays.",
        number(gone.prompts, "prompt"),
        number(gone.calls, "call"),
        number(gone.happenings, "other event"),
        number(gone.notes, "note"),
        number(gone.sessions, "session"),
        number(gone.projects, "project"),
    ));
    Ok(())
}
