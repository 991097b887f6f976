//! `--from claude-mem FILE`: another memory's notes, with their dates.

use std::path::Path;

use anyhow::{Context, Result, bail};
use memory::home::Home;
use memory::store::{self, ClaudeMem, Db, RunEnd};
use serde::Serialize;

use super::wanted::Wanted;
use crate::cli::BackfillArgs;
use crate::journal;
use crate::output::{HintExt, Printer};

#[derive(Debug, Default, Serialize)]
struct Imported {
    is_dry_run: bool,
    run: Option<i64>,
    read: u64,
    left_out: u64,
    inserted: Counts,
    /// There already, or prompts that the journal has as prompts.
    known: u64,
}

#[derive(Debug, Default, Serialize)]
struct Counts {
    notes: u64,
}

pub(super) async fn run(
    system: &str,
    file: &Path,
    arguments: &BackfillArgs,
    home: &Home,
    printer: &Printer,
) -> Result<()> {
    if system != "claude-mem" {
        bail!("`{system}` is no memory that can be read: expected `claude-mem`");
    }
    if !file.is_file() {
        return Err(anyhow::anyhow!("`{}` is no file", file.display()))
            .hint("claude-mem keeps its database in ~/.claude-mem/claude-mem.db");
    }
    let wanted = Wanted::of(arguments, home)?;
    let mut source = ClaudeMem::open(file)
        .await
        .context("cannot read the other memory")
        .hint("name the database of claude-mem: ~/.claude-mem/claude-mem.db")?;
    let db = if arguments.dry_run { None } else { Some(journal::open(home).await?) };
    let step = printer.step(format!("Reading {}", file.display()));
    let mut imported = Imported { is_dry_run: arguments.dry_run, ..Imported::default() };
    let outcome = import(&mut source, &wanted, db.as_ref(), file, &mut imported).await;
    if let Some(db) = db {
        db.close().await;
    }
    outcome?;
    step.done(format!("Read {} notes of {system}", imported.read));
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&imported).context("cannot write the outcome as JSON")?);
        return Ok(());
    }
    printer.data(format_args!(
        "{system}: {} notes, new {}, known {}, left out {}",
        imported.read, imported.inserted.notes, imported.known, imported.left_out
    ));
    match imported.run {
        Some(run) => printer.data(format_args!("  to take it back: `cargo xtask backfill --rollback {run}`")),
        None => printer.data("Nothing was stored: this was a dry run."),
    }
    Ok(())
}

async fn import(
    source: &mut ClaudeMem,
    wanted: &Wanted,
    db: Option<&Db>,
    file: &Path,
    imported: &mut Imported,
) -> Result<()> {
    let run = match db {
        Some(db) => {
            let run = store::start_run(db, "claude-mem", &file.display().to_string()).await;
            Some(run.context("cannot note the run").hint("run `cargo xtask migrate` if the schema is older")?)
        }
        None => None,
    };
    imported.run = run.map(|run| run.0);
    let taken = pages(source, wanted, db.zip(run), imported).await;
    if let Some((db, run)) = db.zip(run) {
        let end = if taken.is_ok() { RunEnd::Done } else { RunEnd::Failed };
        let counts = serde_json::to_value(&*imported).context("cannot write the counts as JSON")?;
        store::finish_run(db, run, end, &counts).await.context("cannot note the run's end")?;
    }
    taken
}

async fn pages(
    source: &mut ClaudeMem,
    wanted: &Wanted,
    into: Option<(&Db, memory::ids::BackfillRunId)>,
    imported: &mut Imported,
) -> Result<()> {
    loop {
        let notes = source.next().await.context("cannot read the other memory")?;
        if notes.is_empty() {
            return Ok(());
        }
        let mut tx = match into {
            Some((db, _)) => Some(db.begin().await.context("cannot write to the journal")?),
            None => None,
        };
        let (mut inserted, mut known) = (0, 0);
        for note in &notes {
            imported.read += 1;
            if !wanted.wants_note(note.project.as_deref(), note.occurred_at) {
                imported.left_out += 1;
                continue;
            }
            if let (Some(tx), Some((_, run))) = (&mut tx, into) {
                let is_new = store::import_note(tx, run, note).await.context("cannot keep a note")?;
                *(if is_new { &mut inserted } else { &mut known }) += 1;
            }
        }
        if let Some(tx) = tx {
            tx.commit().await.context("cannot write to the journal")?;
        }
        imported.inserted.notes += inserted;
        imported.known += known;
    }
}
