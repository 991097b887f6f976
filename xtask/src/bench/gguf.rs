//! What writing a file costs: a base of the shape of Qwen3-0.6B into a GGUF, beside llama.cpp's converter and its quantizer. Each run is a
//! process of its own, timed from start to end, and they take turns.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::output::{HintExt, human_bytes};

/// What is promised, as a ratio to the converter's time and memory.
const MOST: f64 = 1.0;
const REFERENCE: &str = include_str!("llama_cpp.py");

pub(crate) struct Parameters<'a> {
    /// `agent-memory-finetune`, built for release.
    pub(crate) program: &'a Path,
    /// A base of random numbers with a whole tokenizer.
    pub(crate) base: &'a Path,
    pub(crate) scratch: &'a Path,
    pub(crate) rounds: usize,
    pub(crate) llama_cpp: LlamaCpp<'a>,
}

/// Where llama.cpp lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LlamaCpp<'a> {
    /// A Python that has torch, transformers and sentencepiece.
    pub(crate) python: &'a Path,
    /// The folder with `convert_hf_to_gguf.py` and `gguf-py`.
    pub(crate) converter: &'a Path,
    /// libllama, whose quantizer is called.
    pub(crate) library: Option<&'a Path>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Reference {
    Converter,
    /// Of the converter's F16 file; by the number of the `llama_ftype`.
    Quantizer(u32),
}

/// What is written here, and what writes the same there.
const PAIRS: [(&str, Reference); 4] = [
    ("f16", Reference::Converter),
    ("q8_0", Reference::Converter),
    ("q8_0", Reference::Quantizer(7)),
    ("q4_k_m", Reference::Quantizer(15)),
];

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Run {
    seconds: f64,
    peak_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct Versions {
    torch: String,
    transformers: String,
    libllama: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct GgufBench {
    rounds: usize,
    versions: String,
    /// Of Python and its modules, which is in every run of the converter.
    starting_seconds: f64,
    pairs: Vec<Pair>,
}

#[derive(Debug, Serialize)]
struct Pair {
    quantisation: &'static str,
    reference: Reference,
    bytes: u64,
    ours: Run,
    theirs: Run,
}

pub(crate) async fn run(parameters: &Parameters<'_>) -> Result<GgufBench> {
    let bench = Bench { parameters, script: parameters.scratch.join("llama_cpp.py") };
    std::fs::write(&bench.script, REFERENCE).with_context(|| format!("writing `{}`", bench.script.display()))?;
    let versions = bench.versions().await?;
    let wanted =
        |(_, reference): &(_, Reference)| *reference == Reference::Converter || parameters.llama_cpp.library.is_some();
    let pairs: Vec<_> = PAIRS.into_iter().filter(wanted).collect();
    let mut starts = Vec::new();
    let mut runs: Vec<_> = pairs.iter().map(|pair| (*pair, Vec::new(), Vec::new())).collect();
    for _ in 0..parameters.rounds {
        starts.push(bench.start().await?);
        for ((quantisation, reference), ours, theirs) in &mut runs {
            theirs.push(bench.theirs(quantisation, *reference).await?);
            ours.push(bench.ours(quantisation).await?);
        }
    }
    let mut pairs = Vec::new();
    for ((quantisation, reference), ours, theirs) in runs {
        let bytes = std::fs::metadata(bench.out("ours", quantisation)).context("looking at what was written")?.len();
        pairs.push(Pair { quantisation, reference, bytes, ours: median(&ours)?, theirs: median(&theirs)? });
    }
    Ok(GgufBench { rounds: parameters.rounds, versions, starting_seconds: median(&starts)?.seconds, pairs })
}

struct Bench<'a> {
    parameters: &'a Parameters<'a>,
    script: PathBuf,
}

impl Bench<'_> {
    fn out(&self, whose: &str, quantisation: &str) -> PathBuf {
        self.parameters.scratch.join(format!("{whose}-{quantisation}.gguf"))
    }

    async fn ours(&self, quantisation: &str) -> Result<Run> {
        let mut command = Command::new(self.parameters.program);
        command.args(["measure-writing", "--quantisation", quantisation, "--base"]).arg(self.parameters.base);
        let started = Instant::now();
        let run: Run = child(command.arg("--out").arg(self.out("ours", quantisation))).await?;
        Ok(Run { seconds: started.elapsed().as_secs_f64(), ..run })
    }

    async fn theirs(&self, quantisation: &str, reference: Reference) -> Result<Run> {
        let mut command = self.reference();
        match reference {
            Reference::Converter => command
                .arg("convert")
                .args([self.parameters.llama_cpp.converter, self.parameters.base, &self.out("theirs", quantisation)])
                .arg(quantisation),
            Reference::Quantizer(kind) => command
                .arg("quantize")
                .args(self.parameters.llama_cpp.library)
                .args([self.out("theirs", "f16"), self.out("quantised", quantisation)])
                .arg(kind.to_string()),
        };
        child(&mut command).await
    }

    async fn start(&self) -> Result<Run> {
        child(self.reference().arg("start").arg(self.parameters.llama_cpp.converter)).await
    }

    async fn versions(&self) -> Result<String> {
        let LlamaCpp { converter, library, .. } = self.parameters.llama_cpp;
        let mut command = self.reference();
        command.arg("versions").arg(converter).arg(library.unwrap_or(converter));
        let asked = child(&mut command).await;
        let Versions { torch, transformers, libllama } =
            asked.hint("--python names one that has torch, transformers and sentencepiece")?;
        let quantizer =
            if library.is_some() { format!("; the quantizer of libllama {libllama}") } else { String::new() };
        Ok(format!("the converter with torch {torch}, transformers {transformers}{quantizer}"))
    }

    fn reference(&self) -> Command {
        let mut command = Command::new(self.parameters.llama_cpp.python);
        command.arg(&self.script);
        command
    }
}

async fn child<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    serde_json::from_slice(&output.stdout).or_else(|_| bail!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// The median time, and the most memory.
fn median(runs: &[Run]) -> Result<Run> {
    let mut seconds: Vec<_> = runs.iter().map(|run| run.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let seconds = *seconds.get(seconds.len() / 2).context("nothing was measured")?;
    Ok(Run { seconds, peak_bytes: runs.iter().filter_map(|run| run.peak_bytes).max() })
}

impl Pair {
    fn time(&self) -> f64 {
        self.ours.seconds / self.theirs.seconds
    }

    fn memory(&self) -> Option<f64> {
        Some(self.ours.peak_bytes? as f64 / self.theirs.peak_bytes? as f64)
    }
}

impl GgufBench {
    /// Promised against the converter, which does the same work from the same files.
    pub(crate) fn meets_its_limits(&self) -> bool {
        let mut converted = self.pairs.iter().filter(|pair| pair.reference == Reference::Converter);
        converted.all(|pair| pair.time() <= MOST && pair.memory().is_none_or(|ratio| ratio <= MOST))
    }
}

/// A Markdown table, which reads as well in a terminal.
impl Display for GgufBench {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{} rounds in turn, medians; {}\n", self.rounds, self.versions)?;
        writeln!(out, "| file | size | here | llama.cpp | | x time | peak here | peak there | x memory |")?;
        writeln!(out, "| --- | --: | --: | --: | --- | --: | --: | --: | --: |")?;
        let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), human_bytes);
        for pair in &self.pairs {
            let Pair { quantisation, reference, ours, theirs, .. } = pair;
            let by = match reference {
                Reference::Converter => "converter",
                Reference::Quantizer(_) => "quantizer, of F16",
            };
            let memory = pair.memory().map_or_else(|| "unknown".to_owned(), |ratio| format!("{ratio:.2}"));
            writeln!(
                out,
                "| {quantisation} | {} | {:.1} s | {:.1} s | {by} | {:.2} | {} | {} | {memory} |",
                human_bytes(pair.bytes),
                ours.seconds,
                theirs.seconds,
                pair.time(),
                bytes(ours.peak_bytes),
                bytes(theirs.peak_bytes),
            )?;
        }
        write!(
            out,
            "\nthe converter's time has {:.1} s in which Python starts and loads its modules; here at most {MOST:.1} x its time and \
             memory",
            self.starting_seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_time_and_memory_against_the_converter_alone() {
        let run = |seconds, bytes| Run { seconds, peak_bytes: Some(bytes) };
        let bench = |ours: Run, reference| GgufBench {
            rounds: 1,
            versions: String::new(),
            starting_seconds: 1.0,
            pairs: vec![Pair { quantisation: "f16", reference, bytes: 1, ours, theirs: run(2.0, 100) }],
        };
        assert!(bench(run(1.9, 100), Reference::Converter).meets_its_limits());
        assert!(!bench(run(2.1, 100), Reference::Converter).meets_its_limits());
        assert!(!bench(run(1.0, 101), Reference::Converter).meets_its_limits());
        assert!(bench(run(3.0, 200), Reference::Quantizer(7)).meets_its_limits());
    }
}
