//! `uninstall`: everything that `up` has made goes, agents' settings and daily job included; what is remembered goes too, stays, or is
//! written into an export first. Then every place is looked at again.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use memory::home::Home;

use super::consent::{Question, confirm};
use super::{register, removal};
use crate::cli::UninstallArgs;
use crate::install::layout::{self, Data};
use crate::leaving::Exported;
use crate::output::{HintExt, Printer, headline, hinted, human_bytes};
use crate::runtime::lock::Lock;
use crate::runtime::stopped::Stopped;
use crate::runtime::{self, Installation, RuntimeKind, docker};
use crate::{files, journal, leaving};

/// A full spool is stored at some thousand events a second.
const DRAIN_DEADLINE: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(100);

pub(super) async fn run(arguments: UninstallArgs, home: &Home, printer: &Printer) -> Result<()> {
    let Some(installation) = Installation::read(home)? else {
        printer.note(format_args!("Nothing is installed in `{}`", home.root().display()));
        return Ok(());
    };
    let data = if arguments.keep_data { Data::Kept } else { Data::Removed };
    if let Some(path) = &arguments.export {
        leaving::check_place(path)?;
    }
    if !arguments.yes {
        let text = question(&arguments, &installation, home);
        confirm(Question { text: &text, word: "uninstall", without_asking: "cargo xtask uninstall --yes" })?;
    }
    register::unregister_own(home, printer)?;
    if let Some(path) = &arguments.export {
        let exported = export(path, &installation, home, printer).await;
        let exported = exported
            .context("nothing was removed, but agents are unregistered")
            .hint("mend that and run it again; or `cargo xtask up` brings everything back")?;
        printer.data(format_args!("Exported {} rows into {}", exported.rows, exported.path.display()));
    }
    let alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    files::remove(&home.start_command_file())?;
    let traces = removal::Traces::of(&installation, home)?;
    removal::unschedule(home, printer).await?;
    let step = printer.step("Stopping agent-memory");
    runtime::stop(&installation, home, printer).await?;
    step.done("Stopped agent-memory");
    let step = printer.step("Removing agent-memory");
    let engine = if installation.runtime == RuntimeKind::Docker || docker::is_installed(home) {
        Some(docker::require().await?)
    } else {
        None
    };
    let images = match &engine {
        Some(engine) => docker::own_images(engine, home).await?,
        None => Vec::new(),
    };
    removal::remove(&installation, data, home, printer, alone).await?;
    if let Some(engine) = &engine {
        docker::remove_images(engine, &images).await?;
    }
    if arguments.backups {
        files::remove(&home.backups())?;
        layout::remove_lock(home)?;
    }
    step.done(format!("Removed agent-memory from `{}`", home.root().display()));
    traces.prove_gone(data, home).await?;
    tell(data, &installation, home, printer);
    Ok(())
}

fn question(arguments: &UninstallArgs, installation: &Installation, home: &Home) -> String {
    let what = match (arguments.keep_data, &arguments.export, installation.runtime) {
        (true, _, _) => "What is remembered, settings and models stay.".to_owned(),
        (_, _, RuntimeKind::External) => {
            "Settings and trained models go too; your own database keeps its mem_ tables.".to_owned()
        }
        (_, Some(path), _) => {
            format!(
                "What is remembered goes after it is written into `{}`; settings and trained models go too.",
                path.display()
            )
        }
        _ => "All that is remembered, settings and trained models go too.".to_owned(),
    };
    let backups = if arguments.backups { "Backups go." } else { "Backups stay." };
    format!(
        "This removes agent-memory: its registrations with agents, its daily backup, and `{}`. {what} {backups}",
        home.root().display()
    )
}

/// Exports when nothing can come any more: agents are unregistered, and what waited in the spool is stored.
async fn export(path: &Path, installation: &Installation, home: &Home, printer: &Printer) -> Result<Exported> {
    {
        let _alone = Lock::acquire(&layout::lock_file(home), printer).await?;
        runtime::start(installation, home, printer).await?;
    }
    drained(home, printer).await?;
    let stopped = Stopped::server(installation, home, printer).await?;
    let step = printer.step("Exporting");
    let exported = async {
        let db = journal::open(home).await?;
        let exported = leaving::export(&db, path, &step).await;
        db.close().await;
        exported
    }
    .await;
    match exported {
        Ok(exported) => {
            step.done(format!("Exported {} rows ({})", exported.rows, human_bytes(exported.bytes)));
            Ok(exported)
        }
        Err(error) => {
            step.skip();
            if let Err(trouble) = stopped.start(printer).await {
                printer.warn(format_args!("the server does not start again: {}", headline(&trouble)));
            }
            Err(error)
        }
    }
}

/// Waits until the server has stored what lies in the spool.
async fn drained(home: &Home, printer: &Printer) -> Result<()> {
    let step = printer.step("Waiting until the spool is empty");
    let deadline = Instant::now() + DRAIN_DEADLINE;
    loop {
        match waiting(&home.spool())? {
            0 => break,
            left if Instant::now() > deadline => {
                let error = anyhow!("{left} events still wait in the spool, which the export would not hold");
                return Err(hinted(error, "`cargo xtask doctor` says why they are not stored"));
            }
            _ => tokio::time::sleep(POLL).await,
        }
    }
    step.skip();
    let rejected = waiting(&home.spool().join("rejected"))?;
    if rejected > 0 {
        printer.warn(format_args!("{rejected} files in the spool could never be read; they are in no export, and go"));
    }
    Ok(())
}

fn waiting(folder: &Path) -> Result<usize> {
    if !folder.is_dir() {
        return Ok(0);
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    Ok(entries.filter_map(Result::ok).filter(|entry| entry.path().extension().is_some_and(|end| end == "json")).count())
}

fn tell(data: Data, installation: &Installation, home: &Home, printer: &Printer) {
    printer.note("Nothing is left: no process, no port, no registration, no daily job, no container, no file of ours");
    let home_folder = home.root().display();
    if data == Data::Kept {
        printer.note(format_args!(
            "What is remembered stays, known in `{home_folder}`: `cargo xtask up` finds it, `uninstall` removes it"
        ));
    }
    if installation.runtime == RuntimeKind::External {
        printer
            .note(format_args!("Your database at {} keeps its mem_ tables; drop them yourself", installation.database));
    }
    if home.backups().is_dir() {
        printer.note(format_args!("Backups stay in `{}`", home.backups().display()));
    }
}
