//! From a journal to an installed model: `train` with tiny bases of random numbers, and what it does when something is wrong.

mod broken;
mod lessons;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use candle_core::DType;
use finetune::base::random::{Spread, random};
use finetune::base::{self, Architecture, ModelConfig};
use serde_json::Value;
use tests::base_model::Family;
use tests::operator::{self, Told};
use tests::programs;
use tests::stack::Stack;

use lessons::{Labels, offered, record};

/// So many tokens the cut tokenizers have.
const VOCABULARY: usize = 8192;

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

    let file = PathBuf::from(finished["installed"].as_str().context("it was installed")?);
    let lm_studio = stack.scratch().join("lm-studio");
    assert!(file.starts_with(lm_studio.join("agent-memory")) && file.is_file(), "{}", file.display());
    let folder = PathBuf::from(finished["folder"].as_str().context("the run's folder")?);
    let report = std::fs::read_to_string(folder.join("report.md"))?;
    assert!(report.contains("proved better than its base and was installed"), "{report}");
    assert!(std::fs::read_to_string(folder.join("curve.svg"))?.contains("<polyline"));

    let again = train(&stack, &base, &dataset, &[]).await?;
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    for stage in ["preflight", "lora", "merge", "gguf", "verify", "eval", "install"] {
        assert!(again.stderr.contains(&format!("Passed over {stage}")), "{}", again.stderr);
    }
    look_at(&stack, &file, &folder).await
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
    let records = finished["records"].as_array().into_iter().flatten();
    records.into_iter().find(|record| record["stage"] == stage).map_or(&Value::Null, |record| &record["figures"])
}

async fn installed() -> Result<Stack> {
    let stack = Stack::running().await?;
    stack.install(&programs::finetune().await?)?;
    Ok(stack)
}

/// A base of random numbers, with the family's own tokenizer, cut, and its template.
fn tiny(stack: &Stack, tokenizer: &Path, architecture: Architecture) -> Result<PathBuf> {
    let (cut, folder) =
        (stack.scratch().join("tokenizer"), stack.scratch().join(format!("tiny-{}", architecture.as_str())));
    base::cut(tokenizer, &cut, VOCABULARY)?;
    let config = ModelConfig {
        architecture,
        vocabulary: VOCABULARY,
        hidden: 64,
        intermediate: 128,
        layers: 2,
        heads: 4,
        key_value_heads: 2,
        head_width: 32,
        states_head_width: true,
        rope_theta: 1e6,
        norm_epsilon: 1e-6,
        tied: true,
        context_length: 4096,
    };
    random(&folder, &config, Some(&cut), (DType::F32, Spread::SMALL, 7))?;
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

async fn train(stack: &Stack, base: &Path, dataset: &Path, arguments: &[&str]) -> Result<Told> {
    let config = stack.scratch().join("train.toml");
    std::fs::write(&config, SETTINGS)?;
    let [base, dataset, config, lm_studio] =
        [base, dataset, &config, &stack.scratch().join("lm-studio")].map(|path| path.display().to_string());
    let mut all =
        vec!["train", "--config", &config, "--base", &base, "--dataset", &dataset, "--lm-studio-dir", &lm_studio];
    all.extend(arguments);
    operator::run(stack, &all, &[] as &[(&str, OsString)]).await
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
