//! From a journal to an installed model: `train` with tiny bases of random numbers, and what it does when something is wrong.

mod asked;
mod broken;
mod engines;
mod full_disk;
mod lessons;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use finetune::base::Architecture;
use serde_json::Value;
use tests::base_model::{self, Family};
use tests::operator::{self, Told};
use tests::programs;
use tests::settings;
use tests::stack::Stack;

use lessons::{Labels, offered, record};

#[tokio::test]
async fn a_journal_becomes_an_installed_qwen3() -> Result<()> {
    proves_better(Family::Qwen3, Architecture::Qwen3).await
}

#[tokio::test]
async fn a_journal_becomes_an_installed_qwen2() -> Result<()> {
    proves_better(Family::Qwen25, Architecture::Qwen2).await
}

async fn proves_better(family: Family, architecture: Architecture) -> Result<()> {
    let Some(tokenizer) = family.folder().await? else { return Ok(()) };
    let stack = installed().await?;
    record(&stack, "widgets", 60, Labels::Right).await?;
    let base = tiny(&stack, &tokenizer, architecture)?;
    let dataset = dataset(&stack, &base, "widgets").await?;
    let told = train(&stack, &base, &dataset, &["--json"]).await?;
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let finished: Value = serde_json::from_str(&told.stdout).context("reading what came of it")?;

    let outcome = &figures(&finished, "lora")["outcome"];
    let loss = |which: &str| outcome[which].as_f64().unwrap_or(f64::NAN);
    assert!(loss("last_loss") < 0.1 * loss("first_loss"), "{outcome}");
    let metrics = &figures(&finished, "eval")["metrics"];
    let exact = metrics.as_array().into_iter().flatten().find(|measured| measured["metric"] == "exact_match");
    let exact = exact.context("exact matches are measured")?;
    assert_eq!(exact["base"]["estimate"]["mean"], 0.0, "the base emits none of the calls");
    assert!(exact["tuned"]["estimate"]["mean"].as_f64() > Some(0.9), "{exact}");

    let file = stack.scratch().join(finished["installed"].as_str().context("it was installed")?);
    let lm_studio = stack.scratch().join("lm-studio");
    assert!(file.starts_with(lm_studio.join("agent-memory")) && file.is_file(), "{}", file.display());
    let folder = stack.scratch().join(finished["folder"].as_str().context("the run's folder")?);
    report_of(&stack, &folder)?;

    let again = train(&stack, &base, &dataset, &[]).await?;
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    for stage in ["preflight", "lora", "merge", "gguf", "verify", "smoke", "eval", "install"] {
        assert!(again.stderr.contains(&format!("Passed over {stage}")), "{}", again.stderr);
    }
    asked::installs(&stack, &base).await?;
    ask_engines(&stack, &finished, &base, &dataset).await?;
    look_at(&stack, &file, &folder).await
}

/// It says what came of the run, and nothing of the machine.
fn report_of(stack: &Stack, run: &Path) -> Result<()> {
    let files = ["report.md", "report.json", "curve.svg"];
    let texts = files.map(|file| std::fs::read_to_string(run.join(file)).with_context(|| format!("reading {file}")));
    let [markdown, json, curve] = texts;
    let (markdown, json) = (markdown?, json?);
    assert!(markdown.contains("proved better than its base and was installed"), "{markdown}");
    assert!(curve?.contains("<polyline"));
    let scratch = stack.scratch().display().to_string();
    assert!(!markdown.contains(&scratch) && !json.contains(&scratch), "what was named from here is called so");
    if let Some(kept) = settings::get(settings::TRAINING_REPORTS) {
        let kept = settings::checkout().join(kept).join(run.file_name().context("the run's name")?);
        std::fs::create_dir_all(&kept)?;
        for file in files {
            std::fs::copy(run.join(file), kept.join(file))?;
        }
    }
    Ok(())
}

/// Whether what was trained is what other engines write, of the run's files and in the run itself.
async fn ask_engines(stack: &Stack, finished: &Value, base: &Path, dataset: &Path) -> Result<()> {
    let name = finished["run"].as_str().context("the run's name")?;
    let outputs = record_of(finished, "gguf").and_then(|record| record["outputs"].as_object());
    let written: Vec<_> =
        outputs.context("files were written")?.keys().map(|path| stack.scratch().join(path)).collect();
    let is_tuned = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(name));
    let files = engines::Files {
        tuned_f16: written.iter().find(is_tuned).context("the tuned model was written")?,
        base_f16: written.iter().find(|path| !is_tuned(path)).context("its base was written")?,
        merged: &stack.home().models().join("merged").join(name),
        base,
        dataset,
        scratch: stack.scratch(),
    };
    engines::write_the_trained_call(&files).await?;
    if cfg!(feature = "smoke") {
        let answers = figures(finished, "smoke")["answers"].as_array().context("mistralrs answered in the run")?;
        assert!(!answers.is_empty() && answers.iter().all(|answer| answer["stopped"] == true), "{answers:?}");
        // Without the marks, which mistralrs leaves out of Qwen2.5's text, a call cannot be told from other JSON.
        let has_marks = name.contains("qwen3");
        assert!(!has_marks || answers.iter().any(|answer| answer["calls"][0]["name"].is_string()), "{answers:?}");
    }
    Ok(())
}

/// What people do with a file that they have.
async fn look_at(stack: &Stack, file: &Path, run: &Path) -> Result<()> {
    let name = run.file_name().context("the run's name")?.to_string_lossy().into_owned();
    let merged = stack.home().models().join("merged").join(&name);
    let [file, merged, lm_studio] =
        [file, &merged, &stack.scratch().join("lm-studio")].map(|path| path.display().to_string());
    let verified = operator::json(stack, &["train", "verify", &file, "--against", &merged, "--json"]).await?;
    assert_eq!(verified["passed"], true, "{verified}");
    assert!(verified["logits"]["top_1"].as_f64() > Some(0.9), "{verified}");
    let info = operator::run(stack, &["train", "info", &file], &[]).await?;
    assert!(info.stdout.contains("qwen"), "{}", info.stdout);
    let listed = operator::json(stack, &["train", "installed", "--json", "--lm-studio-dir", &lm_studio]).await?;
    assert_eq!(listed[0]["name"], name.as_str());
    let removed = operator::run(stack, &["train", "remove", &name, "--lm-studio-dir", &lm_studio], &[]).await?;
    assert!(removed.code == Some(0) && !Path::new(&file).exists(), "{}", removed.stderr);
    Ok(())
}

#[tokio::test]
async fn what_learnt_from_shuffled_calls_is_not_installed() -> Result<()> {
    let Some(tokenizer) = Family::Qwen3.folder().await? else { return Ok(()) };
    let stack = installed().await?;
    record(&stack, "gadgets", 60, Labels::Shuffled).await?;
    let base = tiny(&stack, &tokenizer, Architecture::Qwen3)?;
    let dataset = dataset(&stack, &base, "gadgets").await?;
    let told = train(&stack, &base, &dataset, &[]).await?;
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert!(told.stderr.contains("did not prove better than its base"), "{}", told.stderr);
    assert!(!stack.scratch().join("lm-studio").exists(), "nothing was installed");
    Ok(())
}

/// The figures of a stage's record.
fn figures<'a>(finished: &'a Value, stage: &str) -> &'a Value {
    record_of(finished, stage).map_or(&Value::Null, |record| &record["figures"])
}

fn record_of<'a>(finished: &'a Value, stage: &str) -> Option<&'a Value> {
    finished["records"].as_array().into_iter().flatten().find(|record| record["stage"] == stage)
}

async fn installed() -> Result<Stack> {
    let stack = Stack::running().await?;
    stack.install(&programs::finetune().await?)?;
    Ok(stack)
}

fn tiny(stack: &Stack, tokenizer: &Path, architecture: Architecture) -> Result<PathBuf> {
    let folder = stack.scratch().join(format!("tiny-{}", architecture.as_str()));
    base_model::random(tokenizer, architecture, &folder)?;
    Ok(folder)
}

async fn dataset(stack: &Stack, base: &Path, project: &str) -> Result<PathBuf> {
    let (tools, config) = (stack.scratch().join("tools.json"), stack.scratch().join("dataset.toml"));
    std::fs::write(&tools, offered().to_string())?;
    std::fs::write(&config, "earlier_turns = 0\n[split]\nvalidation = 0.05\ntest = 0.15\n")?;
    let [base, tools, config] = [base, &tools, &config].map(|path| path.display().to_string());
    let made = operator::run(
        stack,
        &["train", "dataset", "--base", &base, "--tools", &tools, "--config", &config, "--project", project, "--json"],
        &[],
    )
    .await?;
    let report: Value = serde_json::from_str(&made.stdout).with_context(|| made.stderr.clone())?;
    Ok(PathBuf::from(report["folder"].as_str().context("the dataset's folder")?))
}

/// Everything is named from the folder beside the home.
async fn train(stack: &Stack, base: &Path, dataset: &Path, arguments: &[&str]) -> Result<Told> {
    std::fs::write(stack.scratch().join("train.toml"), SETTINGS)?;
    let models = stack.home().models();
    let from_here = |path: &Path| path.strip_prefix(stack.scratch()).map(|path| path.display().to_string());
    let [base, dataset, models] = [from_here(base)?, from_here(dataset)?, from_here(&models)?];
    let mut all = vec!["train", "--config", "train.toml", "--base", &base, "--dataset", &dataset];
    all.extend(["--models-dir", &models, "--lm-studio-dir", "lm-studio"]);
    all.extend(arguments);
    operator::run_beside(stack, &all).await
}

const SETTINGS: &str = "
[train]
rank = 32
alpha = 64.0
learning_rate = 1e-2
epochs = 100
max_steps = 400
sequence_tokens = 1024
sequences_per_step = 2
evaluate_every = 100
validation_samples = 24
checkpoint_every = 50
[gguf]
quantisation = 'f16'
[eval]
rows = 40
answer_tokens = 64
[gate]
min_rows = 30
";
