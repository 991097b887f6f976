//! `train` alone, in a terminal: asks for everything, runs the stages, and asks again at the gates.
//!
//! What is asked stands in [`questions`], how in [`ask`]; the run is the one that the command line starts. Whoever leaves loses
//! nothing: what is done stays done, and the same answers go on from there.

mod around;
mod ask;
mod base;
mod dataset;
#[cfg(test)]
mod gate_tests;
mod questions;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod tests;
mod told;
mod watch;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use finetune::report;
use finetune::stages::{Finished, Stage};
use memory::home::Home;

use self::around::Around;
use self::ask::{Asked, Left};
use self::questions::{Answers, Decision};
use self::watch::{Declined, Watching};
use crate::cli::RunArgs;
use crate::make::print;
use crate::run::{cancelled_by_interrupt, go};

/// Whether there is somebody to ask and nothing was said.
pub(crate) fn is_wanted(arguments: &RunArgs) -> bool {
    arguments.is_empty() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

pub(crate) async fn run(arguments: RunArgs) -> anyhow::Result<ExitCode> {
    let home = Home::locate()?;
    let around = Around::look(&arguments, &home).await?;
    match decision(around).await? {
        Err(Left) => {
            ask::restore_terminal();
            tell("Nothing was started. `cargo xtask train` asks again.");
            Ok(ExitCode::SUCCESS)
        }
        Ok(Decision::Wrote(file, command)) => {
            print(&format!("Wrote {}\n", file.display()))?;
            tell(&format!("`{command}` runs it."));
            Ok(ExitCode::SUCCESS)
        }
        Ok(Decision::Start(answers)) => start(arguments, *answers).await,
    }
}

/// Asks on a thread of its own, which the program need not wait for when Ctrl-C ends the questions.
async fn decision(around: Around) -> anyhow::Result<Asked<Decision>> {
    let (answered, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Nobody listens any more after Ctrl-C.
        let _ = answered.send(questions::ask(&mut *ask::terminal(), &around));
    });
    tokio::select! {
        decision = answer => decision.context("the questions broke off"),
        _ = tokio::signal::ctrl_c() => Ok(Err(Left)),
    }
}

async fn start(mut arguments: RunArgs, answers: Answers) -> anyhow::Result<ExitCode> {
    arguments.common.choice.narrow(answers.filters.projects, answers.filters.only_successful);
    let declined = Arc::new(OnceLock::new());
    let watching = Watching::new(ask::terminal(), cancelled_by_interrupt(), Arc::clone(&declined));
    let finished = go(&arguments, answers.config, Stage::Install, watching).await;
    if let Some(gate) = declined.get() {
        ask::restore_terminal();
        let what = match gate {
            Declined::Training => "Nothing was trained",
            Declined::Installing => "It was not installed",
        };
        tell(&format!("{what}. `cargo xtask train` with the same answers goes on from here."));
        return Ok(ExitCode::SUCCESS);
    }
    end(&finished?)
}

fn end(finished: &Finished) -> anyhow::Result<ExitCode> {
    let report = finished.folder.join(report::MARKDOWN_FILE);
    let installed = finished.installed.as_ref().context("a run that came to its end has installed something")?;
    print(&format!("Installed {}\nThe report is {}\n", installed.display(), report.display()))?;
    tell(&format!("To use it:\n{}", told::ways(installed)));
    Ok(ExitCode::SUCCESS)
}

fn tell(text: &str) {
    ask::terminal().tell(text);
}

/// An error as `main` shows it.
fn error_text(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}");
    // Writing to a string does not fail.
    for cause in error.chain().skip(1) {
        let _ = write!(text, "\ncaused by: {cause}");
    }
    if let Some(hint) = crate::hint(error) {
        let _ = write!(text, "\nhint: {hint}");
    }
    text
}
