//! What training costs: steps on a base of the shape of Qwen3-0.6B, beside the same steps with PyTorch, transformers and PEFT. Each run is
//! a process of its own, and they take turns.

use std::fmt::{self, Display};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::output::{HintExt, human_bytes};

/// What is promised, as ratios to PyTorch with gradient checkpointing.
const LEAST_SPEED: f64 = 1.5;
const MOST_MEMORY: f64 = 0.6;
const TOKENS: usize = 512;
const REFERENCE: &str = include_str!("pytorch.py");

pub(crate) struct Parameters<'a> {
    /// `agent-memory-finetune`, built for release.
    pub(crate) program: &'a Path,
    /// A Python that has torch, transformers and peft.
    pub(crate) python: &'a Path,
    /// A base of random numbers.
    pub(crate) base: &'a Path,
    pub(crate) scratch: &'a Path,
    pub(crate) rounds: usize,
    pub(crate) steps: usize,
}

#[derive(Debug, Deserialize)]
struct Run {
    steps: Vec<Step>,
    peak_bytes: Option<u64>,
    #[serde(default)]
    versions: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Step {
    loss: f64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct TrainBench {
    rounds: usize,
    steps: usize,
    versions: String,
    /// In f32, as here.
    reference: Measured,
    /// With weights and activations in bf16: fewer bytes and, where the processor has instructions for it, faster products; rounded
    /// after each operation.
    rounded: Measured,
    ours: Vec<Measured>,
}

#[derive(Debug, Serialize)]
struct Measured {
    name: &'static str,
    tokens_per_second: f64,
    peak_bytes: Option<u64>,
    /// Of the first step, which all start from the same weights.
    first_loss: f64,
}

/// How the program is asked to train.
const KINDS: [(&str, &[&str]); 3] = [
    ("as it is by default", &[]),
    ("recompute = \"all\"", &["--recompute", "all"]),
    ("storage = \"q8_0\"", &["--storage", "q8_0"]),
];

pub(crate) async fn run(parameters: &Parameters<'_>) -> Result<TrainBench> {
    let script = parameters.scratch.join("pytorch.py");
    std::fs::write(&script, REFERENCE).with_context(|| format!("writing `{}`", script.display()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let (tokens, steps) = (TOKENS.to_string(), parameters.steps.to_string());
    let (mut reference, mut rounded) = (Vec::new(), Vec::new());
    let mut ours: Vec<Vec<Run>> = KINDS.iter().map(|_| Vec::new()).collect();
    for _ in 0..parameters.rounds {
        for (runs, precision) in [(&mut reference, "float32"), (&mut rounded, "bfloat16")] {
            let mut command = Command::new(parameters.python);
            command.arg(&script).arg(parameters.base).args([&tokens, &steps, &threads]).arg(precision);
            runs.push(child(&mut command).await.hint("--python names one that has torch, transformers and peft")?);
        }
        for (runs, (_, arguments)) in ours.iter_mut().zip(KINDS) {
            let mut command = Command::new(parameters.program);
            command.args(["measure-training", "--tokens", &tokens, "--steps", &steps, "--base"]).arg(parameters.base);
            runs.push(child(command.args(arguments)).await?);
        }
    }
    let versions = reference.first().map(|run| {
        let named =
            run.versions.iter().map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default()));
        named.collect::<Vec<_>>().join(", ")
    });
    Ok(TrainBench {
        rounds: parameters.rounds,
        steps: parameters.steps,
        versions: versions.unwrap_or_default(),
        reference: measured("PyTorch, f32", &reference)?,
        rounded: measured("PyTorch, bf16", &rounded)?,
        ours: KINDS.iter().zip(&ours).map(|((name, _), runs)| measured(name, runs)).collect::<Result<_>>()?,
    })
}

async fn child(command: &mut Command) -> Result<Run> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    serde_json::from_slice(&output.stdout).or_else(|_| bail!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// The median of all steps but the first of each run, which also warms up; the most memory of all runs.
fn measured(name: &'static str, runs: &[Run]) -> Result<Measured> {
    let mut seconds: Vec<_> = runs.iter().flat_map(|run| &run.steps[1..]).map(|step| step.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).context("at least two steps are needed")?;
    Ok(Measured {
        name,
        tokens_per_second: TOKENS as f64 / median,
        peak_bytes: runs.iter().filter_map(|run| run.peak_bytes).max(),
        first_loss: runs[0].steps[0].loss,
    })
}

impl TrainBench {
    fn speed(&self, measured: &Measured) -> f64 {
        measured.tokens_per_second / self.reference.tokens_per_second
    }

    fn memory(&self, measured: &Measured) -> Option<f64> {
        Some(measured.peak_bytes? as f64 / self.reference.peak_bytes? as f64)
    }

    /// The default is what is promised of.
    pub(crate) fn meets_its_limits(&self) -> bool {
        let ours = &self.ours[0];
        self.speed(ours) >= LEAST_SPEED && self.memory(ours).is_none_or(|ratio| ratio <= MOST_MEMORY)
    }
}

/// A Markdown table, which reads as well in a terminal.
impl Display for TrainBench {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} rounds of {} steps in turn; a step is one sequence of {TOKENS} tokens; {}\n",
            self.rounds, self.steps, self.versions
        )?;
        writeln!(out, "| | tokens/s | to PyTorch in f32 | peak memory | to PyTorch in f32 | first loss |")?;
        writeln!(out, "| --- | --: | --: | --: | --: | --: |")?;
        for measured in [&self.reference, &self.rounded].into_iter().chain(&self.ours) {
            let peak = measured.peak_bytes.map_or_else(|| "unknown".to_owned(), human_bytes);
            let memory = self.memory(measured).map_or_else(|| "unknown".to_owned(), |ratio| format!("{ratio:.2}"));
            let (rate, speed) = (measured.tokens_per_second, self.speed(measured));
            writeln!(
                out,
                "| {} | {rate:.1} | {speed:.2} | {peak} | {memory} | {:.4} |",
                measured.name, measured.first_loss
            )?;
        }
        write!(
            out,
            "\nby default: at least {LEAST_SPEED:.1} times the speed, at most {MOST_MEMORY:.1} times the memory"
        )
    }
}
