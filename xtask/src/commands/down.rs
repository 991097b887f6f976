//! `down`: stops everything and proves that nothing is left; with `--purge` also removes the data, after asking.

use anyhow::Result;
use memory::home::Home;

use super::consent::{Question, confirm};
use super::removal;
use crate::cli::DownArgs;
use crate::files;
use crate::install::layout::{self, Data};
use crate::output::Printer;
use crate::runtime::lock::Lock;
use crate::runtime::{self, Installation, RuntimeKind};

pub(super) async fn run(arguments: DownArgs, home: &Home, printer: &Printer) -> Result<()> {
    let Some(installation) = Installation::read(home)? else {
        printer.note(format_args!("Nothing is installed in `{}`", home.root().display()));
        return Ok(());
    };
    if arguments.purge && !arguments.yes {
        ask(&installation, home)?;
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
        removal::unschedule(home, printer).await?;
        let step = printer.step("Removing the data");
        removal::remove(&installation, Data::Removed, home, printer, alone).await?;
        step.done(format!("Removed the data and `{}`", home.root().display()));
        if home.backups().is_dir() {
            printer.note(format_args!("Backups stay in `{}`", home.backups().display()));
        }
    }
    Ok(())
}

fn ask(installation: &Installation, home: &Home) -> Result<()> {
    let what = match installation.runtime {
        RuntimeKind::Docker => "the containers, their volume with all that is remembered, and their network",
        RuntimeKind::Embedded => "the embedded Postgres with all that is remembered",
        RuntimeKind::External => "the installation (your own database keeps its mem_ tables)",
    };
    let text = format!("This removes {what}, and `{}`.", home.root().display());
    confirm(Question { text: &text, word: "purge", without_asking: "cargo xtask down --purge --yes" })
}
