//! `bench redact`: what taking secrets out costs, against the keyword scan alone.

use anyhow::Result;

use super::print;
use crate::bench::{record, redact};
use crate::cli::BenchRedactArgs;
use crate::output::Printer;

pub(super) fn run(arguments: &BenchRedactArgs, printer: &Printer) -> Result<()> {
    let step = printer.step(format!("Measuring {} rounds", arguments.rounds));
    let measured = redact::run(arguments.rounds)?;
    step.done(format!("Measured {} rounds", arguments.rounds));
    print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("redact", &measured.to_string(), printer)?;
    }
    Ok(())
}
