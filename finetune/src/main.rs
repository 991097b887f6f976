//! From the journal to a tuned model, as a program; `cargo xtask train` runs it.

mod cli;
mod count;
mod look;
mod make;
mod measure;
mod run;
mod tokenise;
mod told;
mod wizard;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use finetune::adapter::AdapterError;
use finetune::base::ModelError;
use memory::store;

use cli::{Arguments, Command};

/// Each step makes and frees the same large tensors: the system's allocator maps them anew each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let mut stderr = std::io::stderr();
    let arguments = Arguments::parse();
    let done = match arguments.command {
        None if wizard::is_wanted(&arguments.run) => wizard::run(arguments.run).await,
        None => run::run(&arguments.run).await,
        Some(Command::Dataset(arguments)) => make::dataset(&arguments).await,
        Some(Command::Verify(arguments)) => look::verify(&arguments),
        Some(Command::Info(arguments)) => look::info(&arguments),
        Some(Command::Smoke(arguments)) => look::smoke(&arguments).await,
        Some(Command::Ab(arguments)) => look::ab(&arguments),
        Some(Command::Installed(arguments)) => look::installed(&arguments),
        Some(Command::Remove(arguments)) => look::remove(&arguments),
        Some(Command::Tokenise(arguments)) => {
            tokenise::tokenise(&arguments.base, &arguments.dataset).and_then(|text| make::print(&text))
        }
        Some(Command::RandomBase(arguments)) => measure::random_base(&arguments),
        Some(Command::MeasureTraining(arguments)) => measure::training(&arguments),
        Some(Command::MeasureWriting(arguments)) => measure::writing(&arguments),
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
    if error.chain().any(is_full_disk) {
        return Some(
            "the disk is full: free some room, or name another disk with --models-dir; the same command goes on from here",
        );
    }
    if let Some(hint) =
        error.chain().find_map(|cause| cause.downcast_ref().and_then(of_model).or_else(|| of_adapter(cause)))
    {
        return Some(hint);
    }
    error.downcast_ref::<memory::home::HomeError>().map(|_| "`cargo xtask up` installs and starts everything")
}

fn is_full_disk(cause: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    cause.downcast_ref::<std::io::Error>().is_some_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded))
}

fn of_model(error: &ModelError) -> Option<&'static str> {
    match error {
        ModelError::Truncated { .. } | ModelError::NotSafetensors { .. } => {
            Some("download or copy the base again; `hf download MODEL --local-dir FOLDER` goes on where it stopped")
        }
        ModelError::MissingTensor { .. } | ModelError::NoWeights(_) => {
            Some("the folder must hold all of the model's safetensors files beside its config.json")
        }
        ModelError::Unsupported { .. } => Some("Qwen3 and Qwen2.5 in their instruct forms can be trained"),
        _ => None,
    }
}

fn of_adapter(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    match cause.downcast_ref::<AdapterError>()? {
        AdapterError::OtherBase { .. } | AdapterError::Shape { .. } | AdapterError::NoPlace(_) => {
            Some("name the base that it was trained on with --base")
        }
        AdapterError::Model(error) => of_model(error),
        _ => None,
    }
}
