//! What reading the past costs: transcripts into events, beside `serde_json` parsing the same lines; its memory; and what the
//! database adds.
//!
//! Each measurement runs in a process of its own, whose peak of memory the system keeps, and all take turns, so that whatever
//! else the machine does falls on each alike. [`worker`] is that process, built for release.

pub(crate) mod generate;
pub(crate) mod worker;

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::cli::BackfillWork;
use crate::output::{Printer, human_bytes};

/// What is promised: at most so many times the time of parsing, and so much memory.
pub(crate) const MAX_RATIO_TO_PARSING: f64 = 4.0;
pub(crate) const MAX_PEAK_BYTES: u64 = 300_000_000;

/// Rounds of each measurement; the fastest counts, for nothing makes a run faster than it is.
const ROUNDS: usize = 3;

pub(crate) struct Parameters<'a> {
    /// This program, built for release.
    pub(crate) program: &'a Path,
    /// A folder for the transcripts.
    pub(crate) folder: &'a Path,
    /// The home of an installation whose database may be written to.
    pub(crate) home: &'a Path,
    pub(crate) bytes: u64,
    pub(crate) stored_bytes: u64,
}

/// What one process measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    /// Events read, or lines parsed.
    pub(crate) count: u64,
    /// `None` on systems that do not keep it.
    pub(crate) peak_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct BackfillBench {
    pub(crate) files: usize,
    pub(crate) many_parsed: Measured,
    pub(crate) many_read: Measured,
    pub(crate) one_parsed: Measured,
    pub(crate) one_read: Measured,
    pub(crate) stored: Measured,
}

pub(crate) async fn run(parameters: &Parameters<'_>, printer: &Printer) -> Result<BackfillBench> {
    let step = printer.step(format!("Writing transcripts of {} twice", human_bytes(parameters.bytes)));
    let many = parameters.folder.join("many");
    let one = parameters.folder.join("one.jsonl");
    let stored = parameters.folder.join("stored");
    let size = parameters.bytes.to_string();
    child(parameters, BackfillWork::WriteMany, &[&many], Some(&size)).await?;
    child(parameters, BackfillWork::WriteOne, &[&one], Some(&size)).await?;
    child(parameters, BackfillWork::WriteMany, &[&stored], Some(&parameters.stored_bytes.to_string())).await?;
    step.done(format!("Wrote transcripts of {} twice", human_bytes(parameters.bytes)));

    let step = printer.step(format!("Reading them {ROUNDS} times"));
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push([
            child(parameters, BackfillWork::Parse, &[&many], None).await?,
            child(parameters, BackfillWork::Read, &[&many], None).await?,
            child(parameters, BackfillWork::Parse, &[&one], None).await?,
            child(parameters, BackfillWork::Read, &[&one], None).await?,
        ]);
    }
    step.done(format!("Read them {ROUNDS} times"));
    let step = printer.step(format!("Storing {}", human_bytes(parameters.stored_bytes)));
    let stored = child(parameters, BackfillWork::Store, &[&stored], None).await?;
    step.done(format!("Stored {}", human_bytes(stored.bytes)));
    let best = |index: usize| {
        let measured = rounds.iter().map(|round: &[Measured; 4]| round[index]);
        let best = measured.min_by(|one, two| one.seconds.total_cmp(&two.seconds));
        best.context("nothing was measured")
    };
    Ok(BackfillBench {
        files: worker::files_below(&many)?.len(),
        many_parsed: best(0)?,
        many_read: best(1)?,
        one_parsed: best(2)?,
        one_read: best(3)?,
        stored,
    })
}

async fn child(
    parameters: &Parameters<'_>,
    work: BackfillWork,
    paths: &[&PathBuf],
    bytes: Option<&str>,
) -> Result<Measured> {
    let output = Command::new(parameters.program)
        .args(["--quiet", "bench", "backfill-worker", work.as_str()])
        .args(paths)
        .args(bytes.iter().flat_map(|bytes| ["--bytes", bytes]))
        .env("AGENT_MEMORY_HOME", parameters.home)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot start `{}`", parameters.program.display()))?;
    if !output.status.success() {
        bail!("the measurement `{}` failed; its messages are above", work.as_str());
    }
    serde_json::from_slice(&output.stdout).context("cannot read what was measured")
}

impl BackfillBench {
    pub(crate) fn ratios(&self) -> [f64; 2] {
        [self.many_read.seconds / self.many_parsed.seconds, self.one_read.seconds / self.one_parsed.seconds]
    }

    pub(crate) fn meets_its_limits(&self) -> bool {
        let peaks = [self.many_read.peak_bytes, self.one_read.peak_bytes, self.stored.peak_bytes];
        self.ratios().iter().all(|ratio| *ratio <= MAX_RATIO_TO_PARSING)
            && peaks.into_iter().flatten().all(|peak| peak <= MAX_PEAK_BYTES)
    }
}

impl Display for BackfillBench {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [many, one] = self.ratios();
        let row = |out: &mut fmt::Formatter<'_>, name: &str, measured: &Measured, ratio: &str| {
            let rate = measured.bytes as f64 / 1e6 / measured.seconds;
            let peak = measured.peak_bytes.map_or_else(|| "unknown".to_owned(), human_bytes);
            writeln!(
                out,
                "| {name:<38} | {:>8} | {:>8.2} s | {rate:>6.0} MB/s | {ratio:>9} | {peak:>8} |",
                human_bytes(measured.bytes),
                measured.seconds,
            )
        };
        writeln!(out, "best of {ROUNDS} rounds in turn, each in a process of its own\n")?;
        writeln!(
            out,
            "| what                                   |     size |       time |        rate | x parsing |     peak |"
        )?;
        writeln!(
            out,
            "| -------------------------------------- | -------: | ---------: | ----------: | --------: | -------: |"
        )?;
        row(out, &format!("{} files, lines parsed to `Value`", self.files), &self.many_parsed, "1.00")?;
        row(out, &format!("{} files, read to events", self.files), &self.many_read, &format!("{many:.2}"))?;
        row(out, "one file, lines parsed to `Value`", &self.one_parsed, "1.00")?;
        row(out, "one file, read to events", &self.one_read, &format!("{one:.2}"))?;
        row(out, "many files, read and stored", &self.stored, "")?;
        let store_ms = self.stored.seconds * 1_000.0 / self.stored.count.max(1) as f64;
        write!(
            out,
            "\nreading may cost {MAX_RATIO_TO_PARSING:.1} x parsing and {} at the peak; stored with index rows and jobs: {} events, \
             {store_ms:.2} ms each",
            human_bytes(MAX_PEAK_BYTES),
            self.stored.count,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(read_seconds: f64, peak_bytes: u64) -> BackfillBench {
        let measured = |seconds, peak| Measured { seconds, bytes: 1_000_000_000, count: 10, peak_bytes: Some(peak) };
        BackfillBench {
            files: 3,
            many_parsed: measured(2.0, 1_000),
            many_read: measured(read_seconds, peak_bytes),
            one_parsed: measured(2.0, 1_000),
            one_read: measured(3.0, 1_000),
            stored: measured(9.0, 1_000),
        }
    }

    #[test]
    fn meets_its_limits_only_where_time_and_memory_do() {
        assert!(bench(8.0, 299_000_000).meets_its_limits());
        assert!(!bench(8.1, 299_000_000).meets_its_limits());
        assert!(!bench(1.0, 301_000_000).meets_its_limits());
    }

    #[test]
    fn shows_ratios_to_parsing() {
        let text = bench(3.0, 50_000_000).to_string();
        assert!(text.contains("|  1.50 |") || text.contains("1.50 |  50.0 MB"), "{text}");
    }
}
