//! `cargo xtask ...`, and `agent-memory ...` where it is installed: parses the command line and turns the outcome into
//! an exit code. 0 is done, 1 the operator's input or environment, 2 a bug of ours.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use futures_util::FutureExt;
use xtask::cli::Cli;
use xtask::commands;
use xtask::output::{Printer, report};

const INPUT_OR_ENVIRONMENT: u8 = 1;
const BUG: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { INPUT_OR_ENVIRONMENT } else { 0 };
            // Where the text cannot be printed there is nobody to tell it to.
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    let printer = Printer::new(cli.verbosity());
    let runtime = tokio::runtime::Runtime::new().context("cannot start the asynchronous runtime");
    let outcome =
        runtime.map(|runtime| runtime.block_on(AssertUnwindSafe(commands::run(cli.command, &printer)).catch_unwind()));
    match outcome {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(error))) | Err(error) => {
            printer.failure(report(&error));
            ExitCode::from(INPUT_OR_ENVIRONMENT)
        }
        // The panic's own message has been printed by then.
        Ok(Err(_panic)) => {
            printer.failure("error: this is a bug in agent-memory; please report the lines above");
            ExitCode::from(BUG)
        }
    }
}
