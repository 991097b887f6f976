//! What a dataset costs: `train dataset` over a journal of many calls, and what it takes a row beside tokenising the rows' text alone. Both
//! are the same program, each run a process of its own.

use std::fmt::{self, Display};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::process::Command;

use crate::output::human_bytes;

/// What is promised.
pub(crate) const MAX_PEAK_BYTES: u64 = 500_000_000;
/// Rounds of each; the fastest counts, for nothing makes a run faster than it is.
const ROUNDS: usize = 3;

pub(crate) struct Parameters<'a> {
    /// `agent-memory-finetune`, built for release.
    pub(crate) program: &'a Path,
    pub(crate) home: &'a Path,
    /// The base model's tokenizer and template.
    pub(crate) base: &'a Path,
    pub(crate) calls: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct DatasetBench {
    calls: u64,
    family: String,
    rows: u64,
    samples: u64,
    tokens: u64,
    /// The whole build.
    seconds: f64,
    peak_bytes: Option<u64>,
    /// Tokenising the text of all samples, and nothing else.
    tokenising_seconds: f64,
}

#[derive(Deserialize)]
struct Tokenised {
    seconds: f64,
    samples: u64,
    tokens: u64,
}

pub(crate) async fn run(parameters: &Parameters<'_>) -> Result<DatasetBench> {
    let (mut builds, mut readings) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let built = child(parameters, &["dataset", "--json", "--base"], &[parameters.base]).await?;
        let folder = built["folder"].as_str().context("the program named no folder")?.to_owned();
        let read = child(parameters, &["tokenise", "--base"], &[parameters.base, Path::new(&folder)]).await?;
        readings.push(serde_json::from_value::<Tokenised>(read).context("cannot read what was measured")?);
        builds.push(built);
    }
    let seconds = |built: &Value| built["seconds"].as_f64().unwrap_or(f64::MAX);
    let fastest = builds.iter().min_by(|one, two| seconds(one).total_cmp(&seconds(two)));
    let built = fastest.context("nothing was measured")?;
    let read =
        readings.iter().min_by(|one, two| one.seconds.total_cmp(&two.seconds)).context("nothing was measured")?;
    Ok(DatasetBench {
        calls: parameters.calls,
        family: built["manifest"]["family"].as_str().unwrap_or_default().to_owned(),
        rows: built["audit"]["rows"].as_u64().unwrap_or_default(),
        samples: read.samples,
        tokens: read.tokens,
        seconds: seconds(built),
        // The most of all rounds: memory is promised always, not sometimes.
        peak_bytes: builds.iter().filter_map(|built| built["peak_bytes"].as_u64()).max(),
        tokenising_seconds: read.seconds,
    })
}

async fn child(parameters: &Parameters<'_>, arguments: &[&str], paths: &[&Path]) -> Result<Value> {
    let output = Command::new(parameters.program)
        .args(arguments)
        .args(paths)
        .env("AGENT_MEMORY_HOME", parameters.home)
        .env("AGENT_MEMORY_DISABLE", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot start `{}`", parameters.program.display()))?;
    // A dataset of invented words need not pass the audit.
    serde_json::from_slice(&output.stdout).or_else(|_| bail!("{}", String::from_utf8_lossy(&output.stderr)))
}

impl DatasetBench {
    pub(crate) fn meets_its_limits(&self) -> bool {
        self.peak_bytes.is_none_or(|peak| peak < MAX_PEAK_BYTES)
    }
}

/// A Markdown table, which reads as well in a terminal.
impl Display for DatasetBench {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peak = self.peak_bytes.map_or_else(|| "unknown".to_owned(), human_bytes);
        writeln!(out, "best of {ROUNDS} rounds in turn; base {}\n", self.family)?;
        writeln!(out, "| {} tool calls | |\n| --- | --: |", self.calls)?;
        writeln!(out, "| rows, samples, tokens | {}, {}, {} |", self.rows, self.samples, self.tokens)?;
        writeln!(out, "| the whole build | {:.1} s |", self.seconds)?;
        writeln!(out, "| rows a second | {:.0} |", self.rows as f64 / self.seconds)?;
        writeln!(out, "| tokenising the same text alone | {:.1} s |", self.tokenising_seconds)?;
        writeln!(out, "| time a row, as a ratio to that | {:.2} |", self.seconds / self.tokenising_seconds)?;
        writeln!(out, "| peak memory | {peak} |")?;
        write!(out, "\nthe peak may be at most {}", human_bytes(MAX_PEAK_BYTES))
    }
}
