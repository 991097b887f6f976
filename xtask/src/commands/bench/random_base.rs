//! The base of random numbers that training and writing are measured with, in a folder that is gone afterwards.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;
use uuid::Uuid;

use crate::files;
use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;

pub(super) struct Scratch<'a> {
    /// `agent-memory-finetune`, built for release.
    pub(super) program: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) base: &'a Path,
}

/// Builds the program, has it make the base, with that tokenizer if one is named, and does the work with both.
pub(super) async fn with<T>(
    tokenizer: Option<&Path>,
    printer: &Printer,
    work: impl AsyncFnOnce(&Scratch<'_>) -> Result<T>,
) -> Result<T> {
    let programs = build::build(&Repository::locate()?, printer).await?;
    let program = programs.join("release").join(format!("agent-memory-finetune{}", std::env::consts::EXE_SUFFIX));
    let folder = std::env::temp_dir().join(format!("agent-memory-bench-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&folder).with_context(|| format!("creating `{}`", folder.display()))?;
    let done = async {
        let base = folder.join("base");
        make(&program, &base, tokenizer, printer).await?;
        work(&Scratch { program: &program, folder: &folder, base: &base }).await
    };
    let done = done.await;
    files::remove(&folder)?;
    done
}

async fn make(program: &Path, base: &Path, tokenizer: Option<&Path>, printer: &Printer) -> Result<()> {
    let step = printer.step("Making a base of the shape of Qwen3-0.6B");
    let mut command = Command::new(program);
    command.args(["random-base", "--out"]).arg(base);
    if let Some(tokenizer) = tokenizer {
        command.arg("--tokenizer").arg(tokenizer);
    }
    let made = command.status().await.with_context(|| format!("cannot start `{}`", program.display()))?;
    ensure!(made.success(), "the base was not made");
    step.done("Made a base of the shape of Qwen3-0.6B");
    Ok(())
}
