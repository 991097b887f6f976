//! What a run does when something is wrong with what it is given, or when it is killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use finetune::base::{Architecture, Weights};
use finetune::gguf;
use serde_json::Value;
use tests::base_model::Family;
use tests::operator::{self, Told};
use tests::stack::Stack;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::lessons::{Labels, record};
use super::{dataset, installed, tiny};

/// A run that is over soon.
const SETTINGS: &str = "
[train]
rank = 4
max_steps = 6
sequence_tokens = 1024
sequences_per_step = 1
evaluate_every = 3
checkpoint_every = 2
validation_samples = 2
[gguf]
quantisation = 'f16'
[eval]
rows = 2
answer_tokens = 8
";
const STAGE_DEADLINE: Duration = Duration::from_mins(3);

pub(super) struct Site {
    pub(super) stack: Stack,
    base: PathBuf,
    dataset: PathBuf,
}

impl Site {
    /// An installation with a base and a dataset for it.
    pub(super) async fn of(tokenizer: &Path, architecture: Architecture) -> Result<Self> {
        let stack = installed().await?;
        record(&stack, "widgets", 20, Labels::Right).await?;
        let base = tiny(&stack, tokenizer, architecture)?;
        let dataset = dataset(&stack, &base, "widgets").await?;
        Ok(Self { stack, base, dataset })
    }

    /// Of a run on its base and dataset.
    pub(super) fn arguments(&self) -> Result<Vec<String>> {
        let mut all = arguments(self, &self.base)?;
        all.extend(["--dataset".to_owned(), shown(&self.dataset)]);
        Ok(all)
    }
}

#[tokio::test]
async fn says_what_is_wrong_and_goes_on_after_being_killed() -> Result<()> {
    let (Some(tokenizer), Some(other)) = (Family::Qwen25.folder().await?, Family::Qwen3.folder().await?) else {
        return Ok(());
    };
    let site = Site::of(&tokenizer, Architecture::Qwen2).await?;

    for after in ["Checked the base", "Estimated", "1 of 6", "Trained", "Merged", "Wrote the model", "Verified"] {
        killed(&site, after).await?;
        everything_there_is_whole(&site)?;
    }
    let told = run(&site, &site.base, &["--dataset", &shown(&site.dataset)]).await?;
    ensure!(told.stderr.contains("Judged"), "{}", told.stderr);
    refused(&told, &["did not prove better than its base", "hint:"])?;
    everything_there_is_whole(&site)?;

    wrong_files(&site).await?;
    wrong_datasets(&site, &tiny(&site.stack, &other, Architecture::Qwen3)?).await
}

/// Starts a run and kills it as soon as it says this.
async fn killed(site: &Site, after: &str) -> Result<()> {
    let mut child = Command::new(site.stack.home().program("agent-memory-finetune"))
        .args(site.arguments()?)
        .env("AGENT_MEMORY_HOME", site.stack.home().root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("starting a run")?;
    let mut lines = BufReader::new(child.stderr.take().context("it has a stderr")?).lines();
    let mut seen = Vec::new();
    let said = async {
        while let Some(line) = lines.next_line().await? {
            let is_it = line.starts_with(after);
            // What was done by an earlier run is passed over, and cannot be waited for.
            let is_past = line.starts_with("Judged") || line.starts_with("error:");
            seen.push(line);
            if is_it || is_past {
                return anyhow::Ok(is_it);
            }
        }
        Ok(false)
    };
    let said = tokio::time::timeout(STAGE_DEADLINE, said).await.context("waiting for a stage")??;
    ensure!(said, "it never said `{after}`: {seen:?}");
    child.kill().await.context("killing it")
}

/// Whatever has its final name can be read from end to end.
fn everything_there_is_whole(site: &Site) -> Result<()> {
    let models = site.stack.home().models();
    for entry in entries(&models.join("gguf"))?.iter().filter(|path| path.extension().is_some_and(|end| end == "gguf"))
    {
        let verified = gguf::verify(entry, None)?;
        ensure!(verified.passed(), "{verified}");
    }
    for folder in entries(&models.join("merged"))?.into_iter().chain(entries(&models.join("lora"))?) {
        if folder.extension().is_none_or(|end| end != "partial") {
            // An adapter's weights come last: without them there is no adapter yet.
            let has_weights =
                entries(&folder)?.iter().any(|path| path.extension().is_some_and(|end| end == "safetensors"));
            if has_weights {
                Weights::open(&folder).with_context(|| format!("reading {}", folder.display()))?;
            }
        }
    }
    Ok(())
}

async fn wrong_files(site: &Site) -> Result<()> {
    let named = ["--dataset", &shown(&site.dataset)];
    let models = site.stack.home().models();
    let file =
        entries(&models.join("gguf"))?.into_iter().find(|path| path.extension().is_some_and(|end| end == "gguf"));
    let cut = site.stack.scratch().join("cut.gguf");
    let bytes = std::fs::read(file.context("a file was written")?)?;
    std::fs::write(&cut, &bytes[..bytes.len() - 100])?;
    let told = operator::run(&site.stack, &["train", "verify", &shown(&cut)], &[]).await?;
    refused(&told, &["is cut short"])?;

    let adapter = entries(&models.join("lora"))?.into_iter().next().context("an adapter was trained")?;
    let other = site.stack.scratch().join("other");
    copy(&site.base, &other)?;
    let weights = other.join("model.safetensors");
    let mut bytes = std::fs::read(&weights)?;
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&weights, &bytes)?;
    let told = run(site, &other, &[&named[..], &["--adapter", &shown(&adapter)]].concat()).await?;
    refused(&told, &["trained on another base", "hint: name the base that it was trained on"])?;

    std::fs::write(&weights, &bytes[..last - 1000])?;
    let told = run(site, &other, &named).await?;
    refused(&told, &["cut short or damaged", "hint: download or copy the base again"])?;
    let told = run(site, Path::new("/nowhere/at/all"), &named).await?;
    refused(&told, &["is no folder", "hint:"])
}

async fn wrong_datasets(site: &Site, other_base: &Path) -> Result<()> {
    let named = ["--dataset", &shown(&site.dataset), "--dry-run"];
    let told = run(site, other_base, &named).await?;
    refused(&told, &["was made for qwen2_5", "hint:"])?;

    let manifest = site.dataset.join("manifest.json");
    let passed = std::fs::read_to_string(&manifest)?;
    let mut failed: Value = serde_json::from_str(&passed)?;
    failed["audit_passed"] = Value::Bool(false);
    std::fs::write(&manifest, failed.to_string())?;
    let told = run(site, &site.base, &["--dry-run"]).await?;
    refused(&told, &["failed its audit", "--dataset"])?;
    let told = run(site, &site.base, &named).await?;
    ensure!(told.code == Some(0), "named, it is used all the same: {}", told.stderr);
    std::fs::write(&manifest, passed)?;

    let rows = site.dataset.join("train.jsonl");
    let text = std::fs::read_to_string(&rows)?;
    std::fs::write(&rows, &text[..text.len() / 2])?;
    let told = run(site, &site.base, &named).await?;
    refused(&told, &["is not as it was when the dataset was made", "hint:"])
}

fn refused(told: &Told, expected: &[&str]) -> Result<()> {
    ensure!(told.code == Some(1), "it ended with {:?}: {}", told.code, told.stderr);
    for text in expected {
        ensure!(told.stderr.contains(text), "`{text}` is not in {}", told.stderr);
    }
    ensure!(told.stderr.matches("error: ").count() <= 2, "one message, and xtask's own: {}", told.stderr);
    Ok(())
}

async fn run(site: &Site, base: &Path, more: &[&str]) -> Result<Told> {
    let arguments = arguments(site, base)?;
    let all: Vec<_> =
        ["train"].into_iter().chain(arguments.iter().map(String::as_str)).chain(more.iter().copied()).collect();
    operator::run(&site.stack, &all, &[]).await
}

fn arguments(site: &Site, base: &Path) -> Result<Vec<String>> {
    let config = site.stack.scratch().join("short.toml");
    std::fs::write(&config, SETTINGS)?;
    let lm_studio = site.stack.scratch().join("lm-studio");
    let pairs = [("--config", shown(&config)), ("--base", shown(base)), ("--lm-studio-dir", shown(&lm_studio))];
    Ok(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for file in entries(from)? {
        std::fs::copy(&file, to.join(file.file_name().context("it has a name")?))?;
    }
    Ok(())
}
