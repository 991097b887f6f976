//! A disk that is full while a stage writes: a tmpfs of a few kilobytes where its outputs go, mounted in a namespace that nobody else
//! sees. The same run is started twice there, and before the second time the disk grows.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use finetune::base::Architecture;
use serde_json::Value;
use tests::base_model::Family;
use tests::summary;
use tokio::process::Command;

use super::broken::Site;

/// Takes a folder for what it tells, the place and the size of the disk, and the command.
const SCRIPT: &str = r#"
told=$1 place=$2 size=$3
shift 3
mkdir -p "$told" "$place"
mount -t tmpfs -o "size=$size" tmpfs "$place" || exit 1
"$@" >"$told/first.out" 2>"$told/first.err"
echo $? >"$told/first.code"
(cd "$place" && find . -type f) >"$told/left"
mount -o remount,size=64m "$place" || exit 1
"$@" >"$told/second.out" 2>"$told/second.err"
echo $? >"$told/second.code"
"#;

/// A full disk in one stage.
struct Scenario {
    stage: &'static str,
    place: PathBuf,
    size: &'static str,
    /// What the disk may hold after the run that failed, by the beginnings of paths.
    whole: &'static [&'static str],
    /// What the next run must say.
    goes_on: &'static [&'static str],
}

#[tokio::test]
async fn ends_in_one_message_and_the_next_run_goes_on() -> Result<()> {
    let Some(tokenizer) = Family::Qwen3.folder().await? else { return Ok(()) };
    let namespace = match namespace().await {
        Ok(namespace) => namespace,
        Err(why) => {
            summary::line(&format!("a disk that fills up while a stage of training writes: NOT TESTED, {why:#}"));
            return Ok(());
        }
    };
    let site = Site::of(&tokenizer, Architecture::Qwen3).await?;
    let run = name_of_run(&site).await?;
    let models = site.stack.home().models();
    let scenarios = [
        Scenario {
            stage: "lora",
            place: models.join("runs").join(run).join("training"),
            // The first checkpoint has room, the second has not.
            size: "240k",
            whole: &["./log.jsonl", "./best.safetensors", "./checkpoints/step-2/"],
            goes_on: &["Going on after step 2 of 6", "Trained 6 steps"],
        },
        Scenario {
            stage: "merge",
            place: models.join("merged"),
            size: "1m",
            whole: &[],
            goes_on: &["Passed over lora", "Merged the adapter"],
        },
        Scenario {
            stage: "gguf",
            place: models.join("gguf"),
            size: "1m",
            whole: &[],
            goes_on: &["Passed over merge", "Wrote the model"],
        },
    ];
    for scenario in scenarios {
        scenario.play(&site, namespace).await.with_context(|| format!("a full disk in {}", scenario.stage))?;
    }
    Ok(())
}

impl Scenario {
    async fn play(&self, site: &Site, namespace: &[&str]) -> Result<()> {
        let told = site.stack.scratch().join(format!("told-{}", self.stage));
        let (program, arguments) = command(site)?;
        let mut unshared = unshared(namespace);
        unshared.args(["sh", "-c", SCRIPT, "sh"]).arg(&told).arg(&self.place).arg(self.size).arg(program);
        unshared.args(arguments).args(["--stop-after", self.stage]).env("AGENT_MEMORY_HOME", site.stack.home().root());
        let output = unshared.output().await.context("starting a shell of its own")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| std::fs::read_to_string(told.join(name)).with_context(|| format!("reading {name}"));

        let (code, error) = (read("first.code")?, read("first.err")?);
        ensure!(code.trim() == "1", "the full disk ended it with {code}: {error}");
        for expected in ["caused by: No space left on device", "hint: the disk is full: "] {
            ensure!(error.contains(expected), "`{expected}` is not in {error}");
        }
        ensure!(error.matches("error: ").count() == 1, "more than one message: {error}");
        let left = read("left")?;
        let is_whole = |path: &&str| self.whole.iter().any(|beginning| path.starts_with(beginning));
        let half: Vec<_> = left.lines().filter(|path| !is_whole(path)).collect();
        ensure!(half.is_empty(), "{half:?} was left behind");

        let (code, error) = (read("second.code")?, read("second.err")?);
        ensure!(code.trim() == "0", "with room again it ended with {code}: {error}");
        for expected in self.goes_on {
            ensure!(error.contains(expected), "`{expected}` is not in {error}");
        }
        summary::line(&format!("a disk that fills up in {}: one message, nothing half, and it goes on", self.stage));
        Ok(())
    }
}

/// How a namespace is made in which a disk may be mounted: as root, else as one's own root.
async fn namespace() -> Result<&'static [&'static str]> {
    let mut said = String::new();
    for namespace in [&["--mount"][..], &["--mount", "--map-root-user"]] {
        let place = tempfile::tempdir().context("making a folder")?;
        let mut tried = unshared(namespace);
        tried.args(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(place.path());
        let output = tried.output().await.context("no `unshare` here")?;
        if output.status.success() {
            return Ok(namespace);
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    bail!("no small disk can be mounted here: {}", said.trim())
}

fn unshared(namespace: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(namespace).stdin(std::process::Stdio::null()).kill_on_drop(true);
    command
}

async fn name_of_run(site: &Site) -> Result<String> {
    let (program, arguments) = command(site)?;
    let mut started = Command::new(program);
    started.args(arguments).args(["--stop-after", "preflight", "--json"]);
    let output = started.env("AGENT_MEMORY_HOME", site.stack.home().root()).output().await.context("starting a run")?;
    let told: Value =
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(told["run"].as_str().context("the run has a name")?.to_owned())
}

/// The program itself, whose messages nobody wraps.
fn command(site: &Site) -> Result<(PathBuf, Vec<String>)> {
    Ok((site.stack.home().program("agent-memory-finetune"), site.arguments()?))
}
