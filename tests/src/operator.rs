//! The operator's program, run on a stack's home as a person would.

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use memory::home::Home;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::programs;
use crate::stack::Stack;

/// How a run ended.
#[derive(Debug)]
pub struct Told {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `cargo xtask` with these arguments, in an environment that holds the home and these variables only.
pub async fn run(stack: &Stack, arguments: &[&str], environment: &[(&str, OsString)]) -> Result<Told> {
    let mut command = command(stack.home()).await?;
    command.args(arguments).envs(environment.iter().map(|(name, value)| (*name, value)));
    told(command).await
}

/// The same in the folder beside the home: what is named from there is called so in what comes of it.
pub async fn run_beside(stack: &Stack, arguments: &[&str]) -> Result<Told> {
    let mut command = command(stack.home()).await?;
    command.args(arguments).current_dir(stack.scratch());
    told(command).await
}

/// `cargo xtask` for that home, without arguments yet, in an environment that holds the home only. The folder above it is the user's.
pub async fn command(home: &Home) -> Result<Command> {
    let mut command = Command::new(programs::xtask().await?);
    command.env_clear().env("AGENT_MEMORY_HOME", home.root()).stdin(Stdio::null()).kill_on_drop(true);
    command.env("HOME", home.root().parent().context("a home without a folder above it")?);
    Ok(command)
}

/// Runs a command to its end.
pub async fn told(mut command: Command) -> Result<Told> {
    let output = command.output().await.context("running xtask")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Told { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
}

/// Runs `cargo xtask` with these arguments on that home.
pub async fn run_in(home: &Home, arguments: &[&str]) -> Result<Told> {
    let mut command = command(home).await?;
    command.args(arguments);
    told(command).await
}

/// The same for a command that must succeed; gives what it printed.
pub async fn must(home: &Home, arguments: &[&str]) -> Result<String> {
    let told = run_in(home, arguments).await?;
    ensure!(told.code == Some(0), "{arguments:?} ended with {:?}: {}", told.code, told.stderr);
    Ok(told.stdout)
}

/// The same for a command that must fail; gives what it said.
pub async fn refused(home: &Home, arguments: &[&str]) -> Result<String> {
    let told = run_in(home, arguments).await?;
    ensure!(told.code == Some(1), "{arguments:?} ended with {:?}: {}{}", told.code, told.stdout, told.stderr);
    Ok(told.stderr)
}

/// The same for a command that must succeed and prints JSON.
pub async fn json(stack: &Stack, arguments: &[&str]) -> Result<Value> {
    let told = run(stack, arguments, &[]).await?;
    ensure!(told.code == Some(0), "{arguments:?} ended with {:?}: {}", told.code, told.stderr);
    serde_json::from_str(&told.stdout).with_context(|| format!("reading what {arguments:?} printed: {}", told.stdout))
}

/// Writes the settings of the stack's home.
pub fn set(stack: &Stack, settings: &str) -> Result<()> {
    set_in(stack.home(), settings)
}

pub fn set_in(home: &Home, settings: &str) -> Result<()> {
    std::fs::create_dir_all(home.config()).context("making the folder for the settings")?;
    std::fs::write(home.config().join("settings.toml"), settings).context("writing the settings")
}

/// Leaves behind what `up` does, so that commands take the home for an installation.
pub fn install(stack: &Stack, embedding_model: &str) -> Result<()> {
    let installation = json!({
        "version": env!("CARGO_PKG_VERSION"), "runtime": "external", "address": stack.home().address()?,
        "database": "the test's", "embedding_model": embedding_model, "installed_at": "2026-01-01T00:00:00Z",
    });
    std::fs::write(stack.home().installation_file(), installation.to_string()).context("writing installation.json")
}
