//! Runs the real hook program once, as an agent would: JSON on stdin, the rest through the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::conversation::Event;
use crate::programs;

/// The agent of most tests.
pub const CLAUDE_CODE: &str = "claude-code";

/// What the hook is started with. The environment holds nothing else.
#[derive(Debug, Default, Clone)]
pub struct Invocation {
    pub program: Option<PathBuf>,
    /// Claude Code, if none is named.
    pub agent: Option<String>,
    pub event: String,
    pub stdin: Vec<u8>,
    pub environment: Vec<(&'static str, OsString)>,
    pub folder: Option<PathBuf>,
}

/// How it ended.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub wall: Duration,
}

/// Hands one event to the hook of the installation in `home`, in the session's folder if there is such a folder here, and
/// expects what agents rely on: exit 0 and no complaint.
pub async fn send(home: &Path, agent: &str, event: &Event) -> Result<Outcome> {
    let folder = event.payload["cwd"].as_str().map(Path::new).filter(|folder| folder.is_dir()).unwrap_or(home);
    let outcome = run(Invocation {
        agent: Some(agent.to_owned()),
        event: event.name.clone(),
        stdin: event.json(),
        environment: vec![("AGENT_MEMORY_HOME", home.into())],
        folder: Some(folder.to_owned()),
        ..Invocation::default()
    })
    .await?;
    ensure!(outcome.status.success(), "the hook ended with {}", outcome.status);
    ensure!(outcome.stderr.is_empty(), "the hook said on stderr: {}", outcome.stderr);
    Ok(outcome)
}

pub async fn run(invocation: Invocation) -> Result<Outcome> {
    let program = match invocation.program {
        Some(program) => program,
        None => programs::hook().await?,
    };
    let mut command = Command::new(program);
    command
        .args([invocation.agent.as_deref().unwrap_or(CLAUDE_CODE), &invocation.event])
        .env_clear()
        .envs(invocation.environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(folder) = invocation.folder {
        command.current_dir(folder);
    }
    let start = Instant::now();
    let mut child = command.spawn().context("starting the hook")?;
    let mut stdin = child.stdin.take().context("the hook has no stdin")?;
    // The hook may be done before it has read everything; that is its right.
    let _ = stdin.write_all(&invocation.stdin).await;
    drop(stdin);
    let output = child.wait_with_output().await.context("waiting for the hook")?;
    Ok(Outcome {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        wall: start.elapsed(),
    })
}
