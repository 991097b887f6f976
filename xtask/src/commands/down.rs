//! `down`: stops everything and proves that nothing is left; with `--purge` also removes the data, after asking.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, Result, anyhow, bail};
use memory::home::Home;

use crate::cli::DownArgs;
use crate::files;
use crate::install::layout;
use crate::output::{Printer, hinted};
use crate::runtime::lock::Lock;
use crate::runtime::{self, Installation, RuntimeKind};
use crate::schedule;

pub(super) async fn run(arguments: DownArgs, home: &Home, printer: &Printer) -> Result<()> {
    let Some(installation) = Installation::read(home)? else {
        printer.note(format_args!("Nothing is installed in `{}`", home.root().display()));
        return Ok(());
    };
    if arguments.purge && !arguments.yes {
        confirm(&installation, home)?;
    }
    let alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    // First: a hook that finds the server gone in the next second must not start it again. `up` leaves the file anew.
    files::remove(&home.start_command_file())?;
    let step = printer.step("Stopping agent-memory");
    runtime::stop(&installation, home, printer).await?;
    step.done("Stopped agent-memory");
    printer.note("No process and no port of it is left");
    if !arguments.purge {
        printer.note(
            "Registered hooks keep events in the spool until the next `up`; `cargo xtask unregister` stops them too",
        );
    }
    if arguments.purge {
        super::register::unregister_own(home, printer)?;
        if let Some(scheduler) = schedule::remove(home).await? {
            printer.note(format_args!("Took the daily backup away from {scheduler}"));
        }
        let step = printer.step("Removing the data");
        runtime::purge(&installation, home, printer).await?;
        layout::remove(home)?;
        drop(alone);
        layout::remove_lock(home)?;
        step.done(format!("Removed the data and `{}`", home.root().display()));
        if home.backups().is_dir() {
            printer.note(format_args!("Backups stay in `{}`", home.backups().display()));
        }
    }
    Ok(())
}

fn confirm(installation: &Installation, home: &Home) -> Result<()> {
    let what = match installation.runtime {
        RuntimeKind::Docker => "the containers, their volume with all that is remembered, and their network",
        RuntimeKind::Embedded => "the embedded Postgres with all that is remembered",
        RuntimeKind::External => "the installation (your own database keeps its mem_ tables)",
    };
    if !std::io::stdin().is_terminal() {
        return Err(hinted(
            anyhow!("`--purge` removes {what}, and there is no terminal to ask for your consent"),
            "run `cargo xtask down --purge --yes`",
        ));
    }
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "This removes {what}, and `{}`.\nType \"purge\" to go on: ", home.root().display())
        .and_then(|()| stderr.flush())
        .context("cannot ask")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    if answer.trim() != "purge" {
        bail!("nothing was removed: the answer was not \"purge\"");
    }
    Ok(())
}
