//! From a journal to an installed model: `train` with tiny bases of random numbers, and what it does when something is wrong.

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
async fn a_journal_becomes_an_installed_model() -> Result<()> {
    for (family, architecture) in [(Family::Qwen3, Architecture::Qwen3), (Family::Qwen25, Architecture::Qwen2)] {
        let Some(tokenizer) = family.folder().await? else { continue };
        let stack = installed().await?;
        record(&stack, "widgets", 60, Labels::Right).await?;
        let base = tiny(&stack, &tokenizer, architecture)?;
        let dataset = dataset(&stack, &base, "widgets").await?;
        if let Ok(keep) = std::env::var("KEEP") {
            let keep = format!("{keep}-{}", family.as_str());
            let _ = std::process::Command::new("cp").arg("-a").arg(&base).arg(format!("{keep}-base")).status();
            let _ = std::process::Command::new("cp").arg("-a").arg(&dataset).arg(format!("{keep}-v1")).status();
        }
    }
    Ok(())
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
        states_head_width: architecture == Architecture::Qwen3,
        rope_theta: 1e6,
        norm_epsilon: 1e-6,
        tied: true,
        context_length: 4096,
    };
    let config = if architecture == Architecture::Qwen2 { ModelConfig { head_width: 16, ..config } } else { config };
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
    println!("{} {}", made.stderr, report["audit"]);
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
max_steps = 300
sequence_tokens = 1024
sequences_per_step = 2
evaluate_every = 50
validation_samples = 30
checkpoint_every = 50
[eval]
rows = 60
answer_tokens = 96
[gate]
min_rows = 30
";
