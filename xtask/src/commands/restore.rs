//! `restore`: puts a backup in the database's place, beside it, or goes back.

use anyhow::{Context, Result};
use memory::home::Home;
use serde_json::json;

use super::backup::{check, read_settings};
use super::consent::{Question, confirm};
use crate::backup::{self, Folder, Restored, Sealed, Target};
use crate::cli::RestoreArgs;
use crate::output::{Printer, human_bytes, human_duration};

pub(super) async fn run(arguments: RestoreArgs, home: &Home, printer: &Printer) -> Result<()> {
    if arguments.kept.undo {
        return undo(&arguments, home, printer).await;
    }
    if arguments.kept.forget {
        return forget(&arguments, home, printer).await;
    }
    let settings = read_settings(home)?;
    let wanted = arguments.file.as_deref().context("no backup was named")?;
    let path = Folder::of(home, &settings)?.find(wanted)?;
    // Before anything is asked or touched: a backup that is not whole is no choice.
    let sealed = check(&path).await?;
    let key = arguments.key.source().key(&settings)?;
    let mut target = Target::open(home, printer).await?;
    let restored = if let Some(name) = &arguments.into {
        backup::restore_beside(&mut target, &sealed, key, name).await?
    } else {
        if !arguments.yes {
            ask(&question(&sealed), "cargo xtask restore FILE --yes")?;
        }
        backup::restore_over(&mut target, &sealed, key).await?
    };
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&restored).context("cannot write the result as JSON")?);
    } else {
        printer.data(told(&restored, &sealed));
    }
    Ok(())
}

fn question(sealed: &Sealed) -> String {
    format!(
        "This puts {} ({} rows) in the place of what is remembered now; that is kept, and `restore --undo` goes back.",
        sealed.name,
        sealed.manifest.rows()
    )
}

/// What was done and how to go back, in one line.
fn told(restored: &Restored, sealed: &Sealed) -> String {
    let Restored { rows, tables, database, took, kept } = restored;
    let done = format!(
        "Restored {rows} rows of {tables} tables from {} into {database} in {}",
        sealed.name,
        human_duration(*took)
    );
    match kept {
        Some(kept) => format!(
            "{done}; what was there before is kept as {kept}: `cargo xtask restore --undo` goes back, `--forget` drops it"
        ),
        None => format!("{done}; the installation is as it was"),
    }
}

async fn undo(arguments: &RestoreArgs, home: &Home, printer: &Printer) -> Result<()> {
    if !arguments.yes {
        let question = "This puts the database from before the last restore back in place; the present one is kept.";
        ask(question, "cargo xtask restore --undo --yes")?;
    }
    let restored = backup::undo(&mut Target::open(home, printer).await?).await?;
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&restored).context("cannot write the result as JSON")?);
        return Ok(());
    }
    let kept = restored.kept.unwrap_or_default();
    printer.data(format_args!(
        "Went back to the database from before the restore; the other one is kept as {kept}: `cargo xtask restore --undo` changes them \
         again, `--forget` drops it"
    ));
    Ok(())
}

async fn forget(arguments: &RestoreArgs, home: &Home, printer: &Printer) -> Result<()> {
    let mut target = Target::open(home, printer).await?;
    let kept = backup::kept(&mut target).await?;
    if kept.is_empty() {
        printer.note("No database from before a restore is kept");
        return Ok(());
    }
    if !arguments.yes {
        let names: Vec<_> = kept.iter().map(|kept| kept.name.as_str()).collect();
        let question = format!("This drops {}, for good.", names.join(" and "));
        ask(&question, "cargo xtask restore --forget --yes")?;
    }
    let dropped = backup::forget(&mut target).await?;
    if arguments.json {
        let text = json!({ "dropped": dropped });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the result as JSON")?);
        return Ok(());
    }
    for database in dropped {
        printer.data(format_args!("Dropped {} ({})", database.name, human_bytes(database.bytes)));
    }
    Ok(())
}

fn ask(text: &str, without_asking: &str) -> Result<()> {
    confirm(Question { text, word: "yes", without_asking })
}
