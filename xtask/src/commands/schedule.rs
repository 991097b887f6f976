//! `schedule`: puts the daily backup where this machine starts such things, tells of it, and takes it away.

use anyhow::{Context, Result, anyhow};
use chrono::Utc;
use memory::home::Home;
use serde_json::json;

use super::doctor::ago;
use crate::backup::Summary;
use crate::cli::{JsonArgs, ScheduleCommand};
use crate::output::{Printer, hinted};
use crate::runtime::Installation;
use crate::schedule::{self, State};

pub(super) async fn run(command: ScheduleCommand, home: &Home, printer: &Printer) -> Result<()> {
    match command {
        ScheduleCommand::Status(arguments) => status(&arguments, home, printer).await,
        ScheduleCommand::Install(arguments) => {
            let installation = Installation::read(home)?.ok_or_else(|| {
                hinted(anyhow!("nothing is installed in `{}`", home.root().display()), "run `cargo xtask up` first")
            })?;
            let scheduler = schedule::install(home, installation.runtime, arguments.with).await?;
            printer.note(format_args!("From now on {scheduler} has a backup made each day"));
            Ok(())
        }
        ScheduleCommand::Remove => {
            match schedule::remove(home).await? {
                Some(scheduler) => printer.note(format_args!("Took the daily backup away from {scheduler}")),
                None => printer.note("No backup was made each day"),
            }
            Ok(())
        }
    }
}

async fn status(arguments: &JsonArgs, home: &Home, printer: &Printer) -> Result<()> {
    let state = State::of(home).await?;
    let summary = Summary::of(home, &super::backup::read_settings(home)?)?;
    if arguments.json {
        let text = json!({ "schedule": state, "backup": summary });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the schedule as JSON")?);
        return Ok(());
    }
    let now = Utc::now();
    match state.scheduler {
        Some(scheduler) => printer.data(format_args!("{scheduler} has a backup made each day")),
        None => printer.data("No backup is made each day; `cargo xtask schedule install` changes that"),
    }
    if let Some(trouble) = &state.trouble {
        printer.warn(format_args!("{trouble}; `cargo xtask schedule install` puts it back"));
    }
    match &summary.last_run {
        Some(run) if run.succeeded => printer.data(format_args!("The last one, {}: {}", ago(run.at, now), run.message)),
        Some(run) => printer.data(format_args!("The last one, {}, FAILED: {}", ago(run.at, now), run.message)),
        None => printer.data("None was made yet"),
    }
    Ok(())
}
