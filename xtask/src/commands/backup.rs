//! `backup`: makes one, lists, verifies and prunes them.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use chrono::Utc;
use memory::home::Home;
use memory::settings::{self, Settings};
use memory::store;
use serde_json::json;

use crate::backup::{self, Backup, Folder, Kept, LastRun, Made, Origin, Rotation, Target, Wanted};
use crate::cli::{BackupArgs, BackupCommand, JsonArgs, MakeBackupArgs, PruneArgs, VerifyArgs};
use crate::output::{HintExt, Printer, headline, hinted, human_bytes, report};

pub(super) async fn run(arguments: BackupArgs, home: &Home, printer: &Printer) -> Result<()> {
    let settings = read_settings(home)?;
    match arguments.command {
        None => make(arguments.make, &settings, home, printer).await,
        Some(BackupCommand::List(arguments)) => list(&arguments, &settings, home, printer).await,
        Some(BackupCommand::Verify(arguments)) => verify(&arguments, &settings, home, printer).await,
        Some(BackupCommand::Prune(arguments)) => prune(&arguments, &settings, home, printer),
    }
}

pub(super) fn read_settings(home: &Home) -> Result<settings::Backup> {
    let settings = Settings::read(&settings::folder(home)).map_err(|error| {
        let hint = error.hint();
        hinted(error, hint)
    })?;
    Ok(settings.backup)
}

async fn make(arguments: MakeBackupArgs, settings: &settings::Backup, home: &Home, printer: &Printer) -> Result<()> {
    let began = Utc::now();
    if arguments.if_due && !Folder::of(home, settings)?.is_due(began)? {
        printer.detail("A scheduled backup was made within the last day");
        return Ok(());
    }
    let step = printer.step("Backing up");
    let origin = if arguments.scheduled { Origin::Scheduled } else { Origin::Manual };
    let made = async {
        let target = Target::open(home, printer).await?;
        backup::make(&target, Wanted { settings, origin, label: arguments.label }).await
    }
    .await;
    if home.installation_file().exists() {
        LastRun::keep(home, began, &made)?;
        note(home, &made, printer).await;
    }
    let made = made?;
    step.done(told(&made));
    if arguments.json {
        let text = json!({
            "path": made.path, "bytes": made.manifest.bytes, "rows": made.manifest.rows(),
            "duration_ms": u64::try_from(made.took.as_millis()).unwrap_or(u64::MAX), "rotated": made.rotated,
        });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the result as JSON")?);
    } else {
        printer.data(made.path.display());
    }
    Ok(())
}

/// Also in the journal, where the server finds it: in a container it sees no other place of the home.
async fn note(home: &Home, made: &Result<Made>, printer: &Printer) {
    let noted = async {
        let db = crate::journal::open(home).await?;
        let noted = store::note_backup(&db, made.is_ok()).await;
        db.close().await;
        anyhow::Ok(noted?)
    };
    if let Err(error) = noted.await {
        printer.detail(format_args!("The journal does not know of it: {}", headline(&error)));
    }
}

fn told(made: &Made) -> String {
    let manifest = &made.manifest;
    let rotated = match made.rotated.len() {
        0 => String::new(),
        count => format!(", removed {count} that the rotation has no place for"),
    };
    format!("Backed up {} rows ({}){rotated}", manifest.rows(), human_bytes(manifest.bytes))
}

async fn list(arguments: &JsonArgs, settings: &settings::Backup, home: &Home, printer: &Printer) -> Result<()> {
    let folder = Folder::of(home, settings)?;
    let backups = folder.list()?;
    let kept = kept(home, printer).await;
    if arguments.json {
        let listed: Vec<_> = backups.iter().map(Backup::listed).collect();
        let text = json!({ "folder": folder.path(), "backups": listed, "kept": kept.ok() });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the list as JSON")?);
        return Ok(());
    }
    if backups.is_empty() {
        printer
            .note(format_args!("There is no backup in `{}`; `cargo xtask backup` makes one", folder.path().display()));
    }
    for backup in &backups {
        printer.data(line(backup));
    }
    match kept {
        Ok(kept) => {
            for database in kept {
                printer.data(format_args!(
                    "{:>9}  {}  kept from before a restore",
                    human_bytes(database.bytes),
                    database.name
                ));
            }
        }
        Err(error) => printer.detail(format_args!("Databases kept by restores are not known: {}", headline(&error))),
    }
    Ok(())
}

/// What the database's server keeps; a list of files needs no server.
async fn kept(home: &Home, printer: &Printer) -> Result<Vec<Kept>> {
    backup::kept(&mut Target::open(home, printer).await?).await
}

fn line(backup: &Backup) -> String {
    let rows = match &backup.manifest {
        Some(manifest) => format!("{} rows", manifest.rows()),
        None => "cannot be restored: its description is missing".to_owned(),
    };
    format!("{:>9}  {}  {rows}", human_bytes(backup.bytes), backup.file())
}

async fn verify(arguments: &VerifyArgs, settings: &settings::Backup, home: &Home, printer: &Printer) -> Result<()> {
    let folder = Folder::of(home, settings)?;
    let files: Vec<PathBuf> = match &arguments.file {
        Some(wanted) => vec![folder.find(wanted)?],
        None => folder.list()?.into_iter().map(|backup| backup.path).collect(),
    };
    if files.is_empty() {
        let error = anyhow!("there is no backup in `{}`", folder.path().display());
        return Err(hinted(error, "make one: `cargo xtask backup`"));
    }
    let mut target = if arguments.deep { Some(Target::open(home, printer).await?) } else { None };
    let mut results = Vec::new();
    let mut failed = Vec::new();
    for path in &files {
        let step = printer.step(format!("Verifying {}", path.display()));
        let verified = async {
            let sealed = check(path).await?;
            if let Some(target) = &mut target {
                backup::verify_deeply(target, &sealed, arguments.key.source().key(settings)?).await?;
            }
            anyhow::Ok(sealed)
        }
        .await;
        match verified {
            Ok(sealed) => {
                let how = if arguments.deep { "restored and compared" } else { "as it was made" };
                step.done(format!("{}: {how}, {} rows", sealed.name, sealed.manifest.rows()));
                results.push(json!({ "path": path, "ok": true }));
            }
            Err(error) => {
                step.skip();
                results.push(json!({ "path": path, "ok": false, "message": report(&error) }));
                failed.push(error);
            }
        }
    }
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&results).context("cannot write the results as JSON")?);
    }
    let count = failed.len();
    match failed.pop() {
        None => Ok(()),
        Some(error) if count == 1 => Err(error),
        Some(error) => {
            for error in &failed {
                printer.warn(report(error).trim_end());
            }
            Err(error.context(format!("{count} of {} backups are not as they were made", files.len())))
        }
    }
}

/// Hashes a file without holding up what else runs.
pub(super) async fn check(path: &std::path::Path) -> Result<backup::Sealed> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || backup::check(&path)).await.context("the check was interrupted")?
}

fn prune(arguments: &PruneArgs, settings: &settings::Backup, home: &Home, printer: &Printer) -> Result<()> {
    let folder = Folder::of(home, settings)?;
    let outdated = folder.outdated(Rotation::of(settings))?;
    if !arguments.dry_run {
        let removed = outdated.iter().try_for_each(Backup::remove);
        removed.hint("what was removed so far is removed; run it again")?;
    }
    let (count, bytes) = (outdated.len(), outdated.iter().map(|backup| backup.bytes).sum());
    if arguments.json {
        let files: Vec<_> = outdated.iter().map(Backup::file).collect();
        let text = json!({ "dry_run": arguments.dry_run, "bytes": bytes, "files": files });
        printer.data(serde_json::to_string_pretty(&text).context("cannot write the result as JSON")?);
        return Ok(());
    }
    for backup in &outdated {
        printer.data(line(backup));
    }
    let verb = if arguments.dry_run { "Would remove" } else { "Removed" };
    printer.note(format_args!("{verb} {count} scheduled backups ({}); manual ones stay", human_bytes(bytes)));
    Ok(())
}
