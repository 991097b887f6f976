//! `bench train`: makes a base of random numbers, and trains on it, here and with PyTorch.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::Command;
use uuid::Uuid;

use crate::bench::record;
use crate::bench::train::{self, Parameters, TrainBench};
use crate::cli::BenchTrainArgs;
use crate::files;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) async fn run(arguments: &BenchTrainArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.rounds > 0 && arguments.steps > 1, "at least one round of two steps is needed");
    let programs = build::build(&Repository::locate()?, printer).await?;
    let program = programs.join("release").join(format!("agent-memory-finetune{}", std::env::consts::EXE_SUFFIX));
    let scratch = std::env::temp_dir().join(format!("agent-memory-bench-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&scratch).with_context(|| format!("creating `{}`", scratch.display()))?;
    let measured = measure(&program, &scratch, arguments, printer).await;
    files::remove(&scratch)?;
    let measured = measured?;
    super::print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("train", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("training is slower, or takes more memory, than it may");
    }
    Ok(())
}

async fn measure(program: &Path, scratch: &Path, arguments: &BenchTrainArgs, printer: &Printer) -> Result<TrainBench> {
    let base = scratch.join("base");
    let step = printer.step("Making a base of the shape of Qwen3-0.6B");
    let made = Command::new(program).args(["random-base", "--out"]).arg(&base).status().await;
    ensure!(made.with_context(|| format!("cannot start `{}`", program.display()))?.success(), "the base was not made");
    step.done("Made a base of the shape of Qwen3-0.6B");
    let step = printer.step("Training on it, here and with PyTorch");
    let BenchTrainArgs { python, rounds, steps, .. } = arguments;
    let parameters = Parameters { program, python, base: &base, scratch, rounds: *rounds, steps: *steps };
    let measured = train::run(&parameters).await?;
    step.done("Trained on it, here and with PyTorch");
    Ok(measured)
}
