//! The real programs, built before their first use.
//!
//! Cargo builds another package's binaries for `cargo test` only in some cases and never says which are stale, so the
//! run asks cargo itself, once: a build with nothing to do costs half a second. Whoever has just built everything names
//! the folder in [`settings::PROGRAMS`] instead.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::process::Command;
use tokio::sync::OnceCell;
use xtask::repository::SET_BY_CARGO;

use crate::settings;

/// `tests` is among them so that cargo unifies the features as it did for the test run, and builds nothing twice.
const PACKAGES: [&str; 6] = ["tests", "hooks", "server", "mcp", "finetune", "xtask"];

/// The programs are built as the tests were.
const FEATURES: &[&str] = if cfg!(feature = "smoke") { &["--features", "tests/smoke"] } else { &[] };

static FOLDER: OnceCell<Result<PathBuf, String>> = OnceCell::const_new();

pub async fn hook() -> Result<PathBuf> {
    program("agent-memory-hook").await
}

pub async fn server() -> Result<PathBuf> {
    program("agent-memory-server").await
}

pub async fn mcp() -> Result<PathBuf> {
    program("agent-memory-mcp").await
}

pub async fn finetune() -> Result<PathBuf> {
    program("agent-memory-finetune").await
}

pub async fn xtask() -> Result<PathBuf> {
    program("xtask").await
}

/// One that starts as a server does and never answers.
pub async fn silent_server() -> Result<PathBuf> {
    program("tests-silent-server").await
}

/// The folder that cargo put this test binary's own package into: `target/debug` or its like.
pub fn own_folder() -> Result<PathBuf> {
    let test_binary = std::env::current_exe().context("finding the running test binary")?;
    let folder = test_binary.parent().and_then(Path::parent).context("the test binary lies in no target folder")?;
    Ok(folder.to_owned())
}

/// Puts a program where an installation has it. By a link where one is possible: a program just written is busy while
/// another test's child still holds it open.
pub fn place(program: &Path, destination: &Path) -> Result<()> {
    std::fs::hard_link(program, destination)
        .or_else(|_| std::fs::copy(program, destination).map(drop))
        .with_context(|| format!("placing `{}`", destination.display()))
}

async fn program(name: &str) -> Result<PathBuf> {
    let folder = FOLDER.get_or_init(|| async { folder().await.map_err(|error| format!("{error:#}")) }).await;
    let folder = folder.as_ref().map_err(|message| anyhow!("{message}"))?;
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    ensure!(path.is_file(), "`{}` is not there; run `cargo build --workspace` first", path.display());
    Ok(path)
}

async fn folder() -> Result<PathBuf> {
    if let Some(folder) = settings::get(settings::PROGRAMS) {
        return Ok(PathBuf::from(folder));
    }
    let folder = own_folder()?;
    build_into(&folder).await?;
    Ok(folder)
}

async fn build_into(folder: &Path) -> Result<()> {
    let profile = folder.file_name().and_then(|name| name.to_str()).context("the target folder has no name")?;
    let target = folder.parent().context("the target folder has no parent")?;
    let cargo = settings::get("CARGO").unwrap_or_else(|| "cargo".to_owned());
    let mut command = Command::new(cargo);
    for name in SET_BY_CARGO {
        command.env_remove(name);
    }
    let output = command
        .args(["build", "--quiet", "--bins", "--profile", if profile == "debug" { "dev" } else { profile }])
        .args(PACKAGES.iter().flat_map(|package| ["--package", package]))
        .args(FEATURES)
        .arg("--target-dir")
        .arg(target)
        .current_dir(settings::checkout())
        .stdin(Stdio::null())
        .output()
        .await
        .context("starting cargo to build the programs; `cargo xtask test` builds them first")?;
    if !output.status.success() {
        bail!("building the programs failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
