//! `bench chaos`: breaks things under load and looks for what is lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum as _;
use uuid::Uuid;

use super::print;
use crate::bench::chaos::{self, ChaosBench, Parameters, Scenario};
use crate::bench::hook::build_empty_program;
use crate::bench::record;
use crate::bench::stage::Model;
use crate::cli::BenchChaosArgs;
use crate::files;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) async fn run(arguments: &BenchChaosArgs, printer: &Printer) -> Result<()> {
    let repository = Repository::locate()?;
    let programs = build::build(&repository, printer).await?;
    let hook_under_faketime = hook_under_faketime(&repository, &programs, printer).await?;
    let folder = std::env::temp_dir().join(format!("agent-memory-bench-empty-{}", Uuid::new_v4()));
    files::create_private_folder(&folder)?;
    let measured = measure(arguments, programs, hook_under_faketime, &folder, printer).await;
    files::remove(&folder)?;
    let measured = measured?;
    print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("chaos", &measured.to_string(), printer)?;
    }
    let broken = measured.broken();
    if !broken.is_empty() {
        bail!("something was lost, doubled, stuck or late: {}", broken.join(", "));
    }
    Ok(())
}

async fn measure(
    arguments: &BenchChaosArgs,
    programs: PathBuf,
    hook_under_faketime: Option<PathBuf>,
    folder: &Path,
    printer: &Printer,
) -> Result<ChaosBench> {
    let parameters = Parameters {
        programs,
        empty: build_empty_program(folder)?,
        hook_under_faketime,
        outage: Duration::from_secs(arguments.outage_seconds),
        embedding: if arguments.no_model { Model::Absent } else { Model::Pinned },
    };
    let scenarios = if arguments.only.is_empty() { Scenario::value_variants() } else { &arguments.only };
    let mut outcomes = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        let step = printer.step(format!("Playing `{}`", scenario.name()));
        outcomes.push(chaos::play(*scenario, &parameters, &step).await?);
        step.done(format!("Played `{}`", scenario.name()));
    }
    Ok(ChaosBench { outcomes })
}

/// The installed hook may be linked statically, and then nothing can lie to it about the time: where there is a `faketime`, one
/// that is not is built too.
async fn hook_under_faketime(repository: &Repository, programs: &Path, printer: &Printer) -> Result<Option<PathBuf>> {
    let there = Command::new("faketime").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    build::build_dynamic_hook(repository, printer).await.context("cannot build a hook for faketime")?;
    Ok(Some(programs.join("release").join(format!("agent-memory-hook{}", std::env::consts::EXE_SUFFIX))))
}
