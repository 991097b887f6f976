//! `gc`: applies the policy of what is kept for how long, as the server does once a day, or shows what it would remove.

use std::fmt::Write as _;

use anyhow::{Context, Result, anyhow};
use memory::home::Home;
use memory::settings::{self, Settings};
use memory::store::retention::{self, Limit, Mode, Report, Stage};

use crate::cli::GcArgs;
use crate::journal;
use crate::output::{HintExt, Printer, hinted, human_bytes};

pub(super) async fn run(arguments: &GcArgs, home: &Home, printer: &Printer) -> Result<()> {
    let folder = settings::folder(home);
    let settings = Settings::read(&folder).map_err(|error| {
        let hint = error.hint();
        hinted(error, hint)
    })?;
    let db = journal::open(home).await?;
    let mode = if arguments.dry_run { Mode::Count } else { Mode::Remove };
    let step = printer.step("Applying the retention policy");
    let applied = retention::apply(&db, &settings.retention, mode, "operator").await;
    let report = applied
        .context("cannot apply the retention policy")
        .hint("what was removed so far is removed; run it again, or see `cargo xtask doctor`")?
        .ok_or_else(|| hinted(anyhow!("another program is applying it right now"), "wait until it is done"))?;
    if mode == Mode::Remove {
        step.say("Making the space ready for use");
        let vacuumed = if arguments.compact { retention::compact(&db).await } else { retention::vacuum(&db).await };
        vacuumed.context("the rows are removed, but their space could not be made ready for use")?;
    }
    step.skip();
    db.close().await;
    for project in &report.unknown_projects {
        printer.warn(format_args!("settings.toml names the project `{project}`, which the journal does not know"));
    }
    if arguments.json {
        let told = serde_json::json!({
            "dry_run": arguments.dry_run, "rows": report.rows(), "bytes": report.bytes(), "report": report,
        });
        printer.data(serde_json::to_string_pretty(&told).context("cannot write the report as JSON")?);
    } else {
        printer.data(text(&report, mode).trim_end());
    }
    if mode == Mode::Remove && report.rows() > 0 && !arguments.compact {
        printer.note("The database uses this space again; `cargo xtask gc --compact` gives it back to the disk");
    }
    Ok(())
}

fn text(report: &Report, mode: Mode) -> String {
    let mut text = String::new();
    let orphans = report.orphaned_outputs;
    if orphans.rows > 0 {
        let _ = line(&mut text, "(no project)", "whole outputs", orphans.rows, orphans.bytes, "nothing refers to them");
    }
    for removal in &report.removals {
        let because = match removal.because {
            Limit::Age => "age",
            Limit::Size => "the project's size",
        };
        let before = format!("before {} ({because})", removal.before.format("%Y-%m-%d %H:%M"));
        let _ = line(&mut text, &removal.project, name_of(removal.stage), removal.rows, removal.bytes, &before);
    }
    let bytes = human_bytes(report.bytes().unsigned_abs());
    let _ = match (report.rows(), mode) {
        (0, _) => writeln!(text, "Nothing is older or larger than the limits allow"),
        (rows, Mode::Count) => writeln!(text, "Would remove {rows} rows, {bytes}; nothing was changed"),
        (rows, Mode::Remove) => writeln!(text, "Removed {rows} rows, {bytes}"),
    };
    text
}

fn line(text: &mut String, project: &str, what: &str, rows: i64, bytes: i64, why: &str) -> std::fmt::Result {
    let bytes = human_bytes(bytes.unsigned_abs());
    writeln!(text, "  {project:<24} {what:<22} {rows:>8} {bytes:>10}   {why}")
}

fn name_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Outputs => "whole outputs",
        Stage::Previews => "previews of outputs",
        Stage::Calls => "calls",
        Stage::Prompts => "prompts and answers",
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use memory::store::retention::Removal;

    use super::*;

    #[test]
    fn tells_what_goes_and_how_much() {
        let removal = Removal {
            project: "widgets".into(),
            stage: Stage::Outputs,
            before: DateTime::UNIX_EPOCH,
            because: Limit::Age,
            rows: 3,
            bytes: 4_000_000,
        };
        let report = Report { removals: vec![removal], ..Report::default() };
        let told = text(&report, Mode::Count);
        assert!(told.contains("widgets") && told.contains("before 1970-01-01 00:00 (age)"), "{told}");
        assert!(told.ends_with("Would remove 3 rows, 4.0 MB; nothing was changed\n"), "{told}");
        assert!(text(&Report::default(), Mode::Remove).starts_with("Nothing"));
    }
}
