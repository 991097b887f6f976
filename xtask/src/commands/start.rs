//! `start`: starts what `up` has installed, without cargo and without the network. The hook runs it after a reboot,
//! through the file `start-command`.

use std::io::Write;

use anyhow::{Context, Result};
use chrono::Utc;
use memory::home::Home;

use crate::files;
use crate::install::layout;
use crate::output::{Printer, report};
use crate::runtime::lock::Lock;
use crate::runtime::{self, Installation};

pub(super) async fn run(home: &Home, printer: &Printer) -> Result<()> {
    let started = start(home, printer).await;
    if let Err(error) = &started {
        // Whoever starts from a hook sees no terminal.
        log(home, &report(error))?;
    }
    started
}

async fn start(home: &Home, printer: &Printer) -> Result<()> {
    let installation = Installation::require(home)?;
    let _alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    // `down` was first: its word counts until the next `up`.
    if !home.start_command_file().exists() {
        printer.note("agent-memory was stopped by `down`; `cargo xtask up` starts it");
        return Ok(());
    }
    runtime::start(&installation, home, printer).await
}

fn log(home: &Home, text: &str) -> Result<()> {
    if !home.logs().is_dir() {
        return Ok(());
    }
    let mut log = files::open_log(&home.logs().join("start.log"))?;
    write!(log, "{}\n{text}", Utc::now().to_rfc3339()).context("cannot write the log of starts")
}
