//! The daily backup: where the machine keeps it, that it comes when it is started, is told of, and goes again.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use memory::home::Home;
use serde_json::{Value, json};
use tests::conversation::Conversation;
use tests::installed::Installed;
use tests::{hook, operator, summary, wait};
use tokio::process::{Child, Command};

#[tokio::test(flavor = "multi_thread")]
async fn the_server_makes_it_where_nothing_else_would() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    operator::must(home, &["schedule", "install", "--with", "server"]).await?;
    operator::must(home, &["start"]).await?;
    wait::until("the server's backup", async || Ok(made(home)?.pop())).await?;
    let told = status(home).await?;
    assert_eq!(
        (&told["schedule"]["scheduler"], &told["schedule"]["trouble"]),
        (&json!("server"), &Value::Null),
        "{told}"
    );
    assert_eq!(told["backup"]["last_run"]["succeeded"], json!(true), "{told}");
    // A second one is not due.
    operator::must(home, &["backup", "--scheduled", "--if-due"]).await?;
    assert_eq!(made(home)?.len(), 1);
    let screen = operator::must(home, &["status"]).await?;
    assert!(screen.contains("the server has one made each day"), "{screen}");

    operator::must(home, &["schedule", "remove"]).await?;
    assert_eq!(status(home).await?["schedule"]["scheduler"], Value::Null);
    operator::must(home, &["down"]).await.map(drop)
}

/// The line that cron would run is run as cron runs it: by `sh`, with hardly an environment.
#[tokio::test(flavor = "multi_thread")]
async fn cron_has_one_line_of_it_which_works_and_goes_again() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    let before = crontab().await?;
    let refused = operator::run_in(home, &["schedule", "install", "--with", "cron"]).await?;
    if refused.code != Some(0) {
        assert!(refused.stderr.contains("has no cron"), "{}", refused.stderr);
        summary::line("NOT RUN: the daily backup by cron, for no cron daemon runs here");
        return Ok(());
    }
    let line = own_line(home).await?.context("no line in the crontab")?;
    assert_eq!(status(home).await?["schedule"], status_of("cron", &status(home).await?));
    operator::must(home, &["schedule", "install", "--with", "cron"]).await?;
    assert_eq!(own_line(home).await?.as_ref(), Some(&line), "twice is once");
    fire(&line, installed.scratch()).await?;
    assert_eq!(made(home)?.len(), 1, "it made a backup");
    fire(&line, installed.scratch()).await?;
    assert_eq!(made(home)?.len(), 1, "and none that was not due");

    operator::must(home, &["schedule", "remove"]).await?;
    assert_eq!(own_line(home).await?, None);
    let theirs = |table: &str| table.lines().filter(|line| !line.contains("agent-memory-backup-")).count();
    assert_eq!(theirs(&crontab().await?), theirs(&before), "the lines of others stay");
    Ok(())
}

/// A systemd of the test's own, as a logged-in user has one.
#[tokio::test(flavor = "multi_thread")]
async fn systemd_has_a_timer_of_it_which_works_and_goes_again() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    let Some(manager) = Manager::start(installed.scratch()).await? else {
        summary::line("NOT RUN: the daily backup by systemd, for none of a user's own can be started here");
        return Ok(());
    };
    let run = async |arguments: &[&str]| {
        let mut command = operator::command(home).await?;
        command.args(arguments).env("XDG_RUNTIME_DIR", &manager.runtime);
        let told = operator::told(command).await?;
        ensure!(told.code == Some(0), "{arguments:?}: {}", told.stderr);
        anyhow::Ok(told.stdout)
    };
    run(&["schedule", "install"]).await?;
    let told: Value = serde_json::from_str(&run(&["schedule", "status", "--json"]).await?)?;
    assert_eq!(told["schedule"], status_of("systemd", &told), "it comes before all others");
    let unit = manager.units().await?.pop().context("no timer")?;
    manager.systemctl(&["start", &unit.replace(".timer", ".service")]).await?;
    assert_eq!(made(home)?.len(), 1, "its service made a backup");
    manager.systemctl(&["stop", &unit]).await?;
    let told: Value = serde_json::from_str(&run(&["schedule", "status", "--json"]).await?)?;
    assert!(told["schedule"]["trouble"].is_string(), "{told}");
    run(&["schedule", "install"]).await?;

    run(&["schedule", "remove"]).await?;
    assert_eq!(manager.units().await?, Vec::<String>::new());
    let files = std::fs::read_dir(installed.scratch().join(".config/systemd/user"))?;
    let left: Vec<_> =
        files.filter_map(|file| Some(file.ok()?.file_name())).filter(|name| *name != "timers.target.wants").collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

/// A user's systemd, in a mount namespace where the machine looks booted with one; it ends with the test.
struct Manager {
    runtime: PathBuf,
    _process: Child,
}

impl Manager {
    /// Nothing where it cannot be started.
    async fn start(user: &Path) -> Result<Option<Self>> {
        let runtime = user.join("runtime");
        std::fs::create_dir_all(&runtime)?;
        let script =
            "mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system && exec /usr/lib/systemd/systemd --user";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).kill_on_drop(true).stdout(Stdio::null()).stderr(Stdio::null());
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", user)
            .env("XDG_RUNTIME_DIR", &runtime);
        let Ok(mut process) = command.spawn() else { return Ok(None) };
        let answers = wait::until("the user's systemd", async || {
            if process.try_wait()?.is_some() {
                return Ok(Some(false));
            }
            let asked = Self::command(&runtime, &["show-environment"]).output().await;
            Ok(asked.is_ok_and(|output| output.status.success()).then_some(true))
        });
        Ok(answers.await?.then_some(Self { runtime, _process: process }))
    }

    fn command(runtime: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("systemctl");
        command.arg("--user").args(arguments).env("XDG_RUNTIME_DIR", runtime);
        command
    }

    async fn systemctl(&self, arguments: &[&str]) -> Result<String> {
        let output = Self::command(&self.runtime, arguments).output().await.context("running systemctl")?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The timers of ours that it has.
    async fn units(&self) -> Result<Vec<String>> {
        let listed =
            self.systemctl(&["list-units", "--all", "--plain", "--no-legend", "agent-memory-backup-*.timer"]).await?;
        Ok(listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_tells_the_person_and_not_the_model_when_none_came_for_two_days() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    operator::must(home, &["start"]).await?;
    let session = Conversation::new(installed.scratch());
    let silent = hook::send(home.root(), hook::CLAUDE_CODE, &session.starts()).await?;
    assert!(!silent.stdout.contains("systemMessage"), "nobody asked for backups: {}", silent.stdout);
    sqlx::query(
        "insert into mem_audit_log (actor, action, occurred_at)
         values ('operator', 'backups_scheduled', now() - interval '5 days'), ('operator', 'backup', now() - interval '3 days')",
    )
    .execute(installed.pool())
    .await?;
    let told = hook::send(home.root(), hook::CLAUDE_CODE, &session.starts()).await?;
    let reply: Value = serde_json::from_str(&told.stdout).with_context(|| told.stdout.clone())?;
    let notice = reply["systemMessage"].as_str().context("no notice")?;
    assert!(notice.contains("no backup was made for 3 days"), "{notice}");
    assert!(!reply["hookSpecificOutput"].to_string().contains("backup"), "{reply}");
    operator::must(home, &["backup"]).await?;
    let again = hook::send(home.root(), hook::CLAUDE_CODE, &session.starts()).await?;
    assert!(!again.stdout.contains("systemMessage"), "{}", again.stdout);
    operator::must(home, &["down"]).await.map(drop)
}

/// The scheduled backups that are whole.
fn made(home: &Home) -> Result<Vec<String>> {
    let Ok(folder) = std::fs::read_dir(home.backups()) else { return Ok(Vec::new()) };
    let names =
        folder.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<Vec<_>>>()?;
    Ok(names.into_iter().filter(|name| name.contains("scheduled") && name.ends_with(".sha256")).collect())
}

async fn status(home: &Home) -> Result<Value> {
    Ok(serde_json::from_str(&operator::must(home, &["schedule", "status", "--json"]).await?)?)
}

fn status_of(scheduler: &str, found: &Value) -> Value {
    json!({ "scheduler": scheduler, "since": found["schedule"]["since"], "trouble": null })
}

async fn crontab() -> Result<String> {
    let Ok(output) = Command::new("crontab").arg("-l").output().await else { return Ok(String::new()) };
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn own_line(home: &Home) -> Result<Option<String>> {
    let program = home.program("agent-memory").display().to_string();
    Ok(crontab().await?.lines().find(|line| line.contains(&program)).map(str::to_owned))
}

/// Runs the command of a crontab's line: what stands behind the five fields of its time.
async fn fire(line: &str, folder: &Path) -> Result<()> {
    let command = line.splitn(6, ' ').nth(5).context("a line without a command")?;
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder).current_dir(folder).arg("-c").arg(command);
    let ended = shell.status().await.context("running the line")?;
    ensure!(ended.success(), "{command} ended with {ended}");
    Ok(())
}
