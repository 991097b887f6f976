//! The daily backup where nothing else on the machine starts one: the server starts the operator's program, which looks whether one is due.
//! `schedule.json` in the home says whether it is this server's business.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use memory::home::Home;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// How often to look: a laptop sleeps, and a server is not always up at the same hour.
const INTERVAL: Duration = Duration::from_hours(1);
/// Longer than the largest journal takes.
const DEADLINE: Duration = Duration::from_hours(3);

pub(crate) async fn back_up_daily_until(home: Option<&Home>, shutdown: &CancellationToken) {
    let Some(home) = home else { return };
    loop {
        if is_ours(home) {
            match shutdown.run_until_cancelled(back_up(home)).await {
                None => return,
                Some(Ok(())) => {}
                Some(Err(error)) => tracing::warn!(error = format!("{error:#}"), "no backup was made"),
            }
        }
        if shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

fn is_ours(home: &Home) -> bool {
    let Ok(text) = std::fs::read_to_string(home.schedule_file()) else { return false };
    serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|record| record["scheduler"] == "server")
}

/// A stop ends it: what is written so far is no backup and is swept by the next.
async fn back_up(home: &Home) -> anyhow::Result<()> {
    let mut command = Command::new(home.program("agent-memory"));
    command.args(["backup", "--scheduled", "--if-due", "--quiet"]).env("AGENT_MEMORY_HOME", home.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let run = command.output();
    let output =
        tokio::time::timeout(DEADLINE, run).await.context("it did not end")?.context("it could not be started")?;
    // What it says names files of the home, but nothing of what is remembered.
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_servers_business_only_where_the_file_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert!(!is_ours(&home));
        for (text, expected) in [
            (r#"{"scheduler":"server"}"#, true),
            (r#"{"scheduler":"cron"}"#, false),
            (r#"{"scheduler":null}"#, false),
            ("x", false),
        ] {
            std::fs::write(home.schedule_file(), text).unwrap();
            assert_eq!(is_ours(&home), expected, "{text}");
        }
    }
}
