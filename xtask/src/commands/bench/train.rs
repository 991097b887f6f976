//! `bench train`: makes a base of random numbers, and trains on it, here and with PyTorch.

use anyhow::{Result, bail, ensure};

use super::random_base::{self, Scratch};
use crate::bench::record;
use crate::bench::train::{self, Parameters, TrainBench};
use crate::cli::BenchTrainArgs;
use crate::output::Printer;

pub(super) async fn run(arguments: &BenchTrainArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.rounds > 0 && arguments.steps > 1, "at least one round of two steps is needed");
    let measured = random_base::with(None, printer, async |scratch| measure(scratch, arguments, printer).await).await?;
    super::print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("train", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("training is slower, or takes more memory, than it may");
    }
    Ok(())
}

async fn measure(scratch: &Scratch<'_>, arguments: &BenchTrainArgs, printer: &Printer) -> Result<TrainBench> {
    let step = printer.step("Training on it, here and with PyTorch");
    let BenchTrainArgs { python, rounds, steps, .. } = arguments;
    let Scratch { program, folder, base } = scratch;
    let parameters = Parameters { program, python, base, scratch: folder, rounds: *rounds, steps: *steps };
    let measured = train::run(&parameters).await?;
    step.done("Trained on it, here and with PyTorch");
    Ok(measured)
}
