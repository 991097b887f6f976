//! Runs a scheduler's own tool: with a deadline, and with what it said as the reason of a failure.

use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const DEADLINE: Duration = Duration::from_secs(15);

/// Gives what it printed, however it ended.
pub(super) async fn output(program: &str, arguments: &[&str], input: &str) -> Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().with_context(|| format!("cannot start `{program}`"))?;
    let mut stdin = child.stdin.take().context("a child without the input that was asked for")?;
    let run = async {
        // A tool that takes no input may have ended already.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        child.wait_with_output().await
    };
    tokio::time::timeout(DEADLINE, run)
        .await
        .with_context(|| format!("`{program}` did not end within {} s", DEADLINE.as_secs()))?
        .with_context(|| format!("cannot run `{program}`"))
}

/// The same for a tool that must succeed.
pub(super) async fn must(program: &str, arguments: &[&str], input: &str) -> Result<()> {
    let output = output(program, arguments, input).await?;
    if !output.status.success() {
        bail!("`{program} {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

pub(super) async fn succeeds(program: &str, arguments: &[&str]) -> bool {
    output(program, arguments, "").await.is_ok_and(|output| output.status.success())
}
