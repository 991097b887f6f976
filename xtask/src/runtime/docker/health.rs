//! Waiting for a container to be healthy, and what it said last if it will not be.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use bollard::models::{ContainerState, HealthStatusEnum};
use bollard::query_parameters::LogsOptionsBuilder;
use futures_util::StreamExt;

use super::engine::{Engine, EngineContext};
use crate::output::hinted;

/// A first start makes a whole database; with a slow disk that takes a minute.
const DEADLINE: Duration = Duration::from_secs(150);
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
const SHOWN_LINES: usize = 15;

/// Where a container is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    Healthy,
    Starting,
    /// It will not become healthy; in a few words why.
    Failed(String),
}

/// Waits until the container is healthy; else the failure holds what it said last. A restart more than `restarts_before`
/// is a failure too.
pub(crate) async fn wait(engine: &Engine, container: &str, what: &str, restarts_before: i64) -> Result<()> {
    let began = Instant::now();
    loop {
        let found = engine.docker.inspect_container(container, None).await.doing(format!("look after {what}"))?;
        let restarts = found.restart_count.unwrap_or_default() - restarts_before;
        let reason = match progress(&found.state.unwrap_or_default(), restarts) {
            Progress::Healthy => return Ok(()),
            Progress::Starting if began.elapsed() < DEADLINE => {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                continue;
            }
            Progress::Starting => format!("it was not healthy within {} s", DEADLINE.as_secs()),
            Progress::Failed(reason) => reason,
        };
        let lines = last_lines(engine, container).await;
        let failure = anyhow!("{reason}; it said last:\n{lines}").context(format!("cannot start {what}"));
        return Err(hinted(failure, "the lines above name the cause; `cargo xtask doctor` checks every part"));
    }
}

/// `restarts` counts those since the wait began.
pub(crate) fn progress(state: &ContainerState, restarts: i64) -> Progress {
    let is = |flag: Option<bool>| flag == Some(true);
    let exit_code = state.exit_code.unwrap_or_default();
    if is(state.oom_killed) {
        return Progress::Failed("it needed more memory than its limit".to_owned());
    }
    if is(state.restarting) || restarts > 0 || !is(state.running) {
        return Progress::Failed(format!("it stopped with exit code {exit_code}"));
    }
    match state.health.as_ref().and_then(|health| health.status) {
        Some(HealthStatusEnum::HEALTHY) => Progress::Healthy,
        Some(HealthStatusEnum::UNHEALTHY) => Progress::Failed("it runs and its health check fails".to_owned()),
        _ => Progress::Starting,
    }
}

/// Runs a program inside a container; fails with what it printed unless it succeeds.
pub(crate) async fn execute(engine: &Engine, container: &str, command: &[&str]) -> Result<()> {
    let options = bollard::exec::CreateExecOptions {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(command.to_vec()),
        ..Default::default()
    };
    let doing = || format!("run `{}` in {container}", command[0]);
    let exec = engine.docker.create_exec(container, options).await.doing(doing())?;
    let mut said = String::new();
    let started = engine.docker.start_exec(&exec.id, None).await.doing(doing())?;
    if let bollard::exec::StartExecResults::Attached { mut output, .. } = started {
        while let Some(piece) = output.next().await {
            said.push_str(&piece.doing(doing())?.to_string());
        }
    }
    let ended = engine.docker.inspect_exec(&exec.id).await.doing(doing())?;
    match ended.exit_code {
        Some(0) => Ok(()),
        _ => bail!("`{}` failed in {container}: {}", command[0], said.trim()),
    }
}

async fn last_lines(engine: &Engine, container: &str) -> String {
    let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(&SHOWN_LINES.to_string()).build();
    let mut output = std::pin::pin!(engine.docker.logs(container, Some(options)));
    let mut text = String::new();
    while let Some(Ok(piece)) = output.next().await {
        text.push_str(&piece.to_string());
    }
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    if lines.is_empty() { "  (nothing)".to_owned() } else { lines.join("\n") }
}

/// The password that the volume's database knows may be older than the home's: sets it anew, over the socket that only
/// the container's own user can reach. The password stands on no command line and in no log.
pub(crate) async fn set_database_password(engine: &Engine, container: &str) -> Result<()> {
    const SCRIPT: &str = r#"psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'END'
\set password `cat "$POSTGRES_PASSWORD_FILE"`
alter role current_user password :'password';
END"#;
    execute(engine, container, &["sh", "-c", SCRIPT]).await.context("cannot set the database's password")
}

#[cfg(test)]
mod tests {
    use bollard::models::Health;

    use super::*;

    fn state(running: bool, health: HealthStatusEnum) -> ContainerState {
        let health = Health { status: Some(health), ..Default::default() };
        ContainerState { running: Some(running), health: Some(health), exit_code: Some(1), ..Default::default() }
    }

    #[test]
    fn is_patient_with_what_starts_and_not_with_what_stops() {
        assert_eq!(progress(&state(true, HealthStatusEnum::STARTING), 0), Progress::Starting);
        assert_eq!(progress(&state(true, HealthStatusEnum::HEALTHY), 0), Progress::Healthy);
        assert!(matches!(progress(&state(true, HealthStatusEnum::UNHEALTHY), 0), Progress::Failed(_)));
        let stopped = Progress::Failed("it stopped with exit code 1".to_owned());
        assert_eq!(progress(&state(false, HealthStatusEnum::STARTING), 0), stopped);
        // Between two restarts it looks as if it ran.
        assert_eq!(progress(&state(true, HealthStatusEnum::STARTING), 2), stopped);
    }
}
