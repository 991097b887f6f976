//! Builds the programs in release and puts them into `bin`. cargo decides what is stale; programs that did not change
//! are not touched.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use memory::home::Home;
use serde::Deserialize;
use tokio::process::Command;
use xshell::{Shell, cmd};

use super::layout::{InstalledProgram, PROGRAMS};
use crate::files::{self, Mode};
use crate::output::{HintExt, Printer, Verbosity, hinted};
use crate::repository::{Repository, SET_BY_CARGO};

/// Programs that can be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Built {
    /// By cargo, below its target folder.
    Here(PathBuf),
    /// By somebody, all in one folder.
    Elsewhere(PathBuf),
}

impl Built {
    fn path(&self, program: InstalledProgram) -> PathBuf {
        let name = format!("{}{}", program.built, std::env::consts::EXE_SUFFIX);
        match self {
            Self::Here(target) => target.join(program.profile).join(name),
            Self::Elsewhere(folder) => folder.join(name),
        }
    }

    /// Those in a folder, if all are there.
    pub fn elsewhere(folder: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder).context("the working folder is gone")?;
        let built = Self::Elsewhere(folder);
        for path in PROGRAMS.map(|program| built.path(program)) {
            if !path.is_file() {
                let names = PROGRAMS.map(|program| program.built).join(", ");
                return Err(hinted(
                    anyhow!("there is no `{}`", path.display()),
                    format!("the folder must hold {names}"),
                ));
            }
        }
        Ok(built)
    }
}

/// Builds everything that an installation runs; cargo's own progress is shown. Gives cargo's target folder. Dropped, it
/// ends cargo: a download that fails meanwhile shall be told at once.
pub async fn build(repository: &Repository, printer: &Printer) -> Result<PathBuf> {
    // `-p xtask` builds this program for `bin`; the one that runs now is cargo's own debug build.
    let rest = ["--release", "-p", "server", "-p", "mcp", "-p", "finetune", "-p", "xtask"];
    let shell = Shell::new().context("cannot start processes here")?;
    shell.change_dir(repository.root());
    let mut hook = vec!["--profile", "dist", "-p", "hooks"];
    if can_link_statically(&shell) {
        hook.extend(["--config", STATIC]);
    }
    for arguments in [&rest[..], &hook[..]] {
        run_cargo(arguments, repository, printer).await?;
    }
    target_folder(&shell)
}

/// Builds this very program for release, for what must be measured as it is installed; gives its path.
pub async fn build_self(repository: &Repository, printer: &Printer) -> Result<PathBuf> {
    run_cargo(&["--release", "-p", "xtask"], repository, printer).await?;
    let shell = Shell::new().context("cannot start processes here")?;
    shell.change_dir(repository.root());
    Ok(target_folder(&shell)?.join("release").join(format!("xtask{}", std::env::consts::EXE_SUFFIX)))
}

/// Builds the hook once more, as a program that finds its C library when it starts.
pub async fn build_dynamic_hook(repository: &Repository, printer: &Printer) -> Result<()> {
    run_cargo(&["--release", "-p", "hooks"], repository, printer).await
}

/// The hook starts thousands of times a day, and finding its one shared library is half of what its start costs.
const STATIC: &str = r#"build.rustflags=["-C", "target-feature=+crt-static"]"#;

/// Whether this system has the C library in the form for it; not every distribution installs it.
fn can_link_statically(shell: &Shell) -> bool {
    cfg!(all(target_os = "linux", target_env = "gnu"))
        && cmd!(shell, "cc -print-file-name=libc.a")
            .quiet()
            .ignore_stderr()
            .read()
            .is_ok_and(|path| Path::new(path.trim()).is_absolute())
}

/// The folder that cargo builds into, wherever its configuration puts it.
pub fn target_folder(shell: &Shell) -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let text = cmd!(shell, "cargo metadata --format-version 1 --no-deps --offline")
        .quiet()
        .ignore_stderr()
        .read()
        .context("cannot ask cargo for its target folder")?;
    let metadata: Metadata = serde_json::from_str(&text).context("cannot understand cargo's metadata")?;
    Ok(metadata.target_directory)
}

/// Puts the built programs into `bin`; gives the names of those that changed.
pub fn install_programs(home: &Home, built: &Built) -> Result<Vec<&'static str>> {
    let mut changed = Vec::new();
    for program in PROGRAMS {
        if files::install(&built.path(program), &home.program(program.installed), Mode::Executable)? {
            changed.push(program.installed);
        }
    }
    Ok(changed)
}

async fn run_cargo(arguments: &[&str], repository: &Repository, printer: &Printer) -> Result<()> {
    let quiet = (printer.verbosity() == Verbosity::Quiet).then_some("--quiet");
    let mut cargo = Command::new("cargo");
    for name in SET_BY_CARGO {
        cargo.env_remove(name);
    }
    let status = cargo
        .args(["build", "--locked"])
        .args(quiet)
        .args(arguments)
        .current_dir(repository.root())
        // The checked queries describe the database; a developer's DATABASE_URL must not.
        .env("SQLX_OFFLINE", "true")
        .kill_on_drop(true)
        .status()
        .await
        .context("cannot start cargo")
        .hint("install Rust with rustup, then try again")?;
    if !status.success() {
        let error = anyhow!("`cargo build {}` failed", arguments.join(" "));
        return Err(hinted(
            error,
            "cargo's messages above say why; a full disk and too little memory are common reasons",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_every_program_and_names_only_what_changed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        crate::install::layout::create(&home).unwrap();
        for program in PROGRAMS {
            let built = folder.path().join(program.profile);
            std::fs::create_dir_all(&built).unwrap();
            std::fs::write(built.join(format!("{}{}", program.built, std::env::consts::EXE_SUFFIX)), "1").unwrap();
        }
        let here = Built::Here(folder.path().to_owned());
        assert_eq!(install_programs(&home, &here).unwrap().len(), PROGRAMS.len());
        assert!(install_programs(&home, &here).unwrap().is_empty());
        let server = folder.path().join(format!("release/agent-memory-server{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(server, "2").unwrap();
        assert_eq!(install_programs(&home, &here).unwrap(), ["agent-memory-server"]);
    }
}
