//! From the journal to a tuned model, as a program; `cargo xtask train` runs it.

mod cli;
mod count;
mod make;
mod measure;
mod tokenise;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use memory::store;

use cli::{Arguments, Command};

/// Each step makes and frees the same large tensors: the system's allocator maps them anew each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let mut stderr = std::io::stderr();
    let done = match Arguments::parse().command {
        Command::Dataset(arguments) => make::dataset(&arguments).await,
        Command::Tokenise(arguments) => {
            tokenise::tokenise(&arguments.base, &arguments.dataset).and_then(|text| make::print(&text))
        }
        Command::RandomBase(arguments) => measure::random_base(&arguments),
        Command::MeasureTraining(arguments) => measure::training(&arguments),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to tell the person with if stderr is gone too.
            let _ = writeln!(stderr, "error: {error}");
            for cause in error.chain().skip(1) {
                let _ = writeln!(stderr, "caused by: {cause}");
            }
            if let Some(hint) = hint(&error) {
                let _ = writeln!(stderr, "hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

/// What to do about an error.
fn hint(error: &anyhow::Error) -> Option<&str> {
    if let Some(hinted) = error.downcast_ref::<finetune::hint::Hinted>() {
        return Some(&hinted.hint);
    }
    if let Some(connect) = error.downcast_ref::<store::ConnectError>() {
        return Some(connect.hint());
    }
    error.downcast_ref::<memory::home::HomeError>().map(|_| "`cargo xtask up` installs and starts everything")
}
