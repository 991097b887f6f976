//! What the lessons add to a call: the hook's wall time before a call with 10, 1,000 and 10,000 active lessons, beside the same hook with
//! none. Each set has a server and a database of its own, and all are asked in turn.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memory::store::bench::{FIRING, SILENT};
use serde::Serialize;

use super::hook::{Series, timed};

/// Rounds that are run first and not counted: a pattern is compiled when it is first tried.
const WARM_UP_ROUNDS: usize = 20;
/// At the 99th percentile the gate may add so much with [`MEASURED`] lessons.
const MOST_ADDED_MS: f64 = 20.0;
const MEASURED: usize = 1_000;

/// A server with so many lessons.
pub(crate) struct Held {
    pub(crate) lessons: usize,
    pub(crate) home: PathBuf,
    pub(crate) hook_program: PathBuf,
}

#[derive(Debug, Serialize)]
pub(crate) struct GateBench {
    calls: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    lessons: usize,
    /// A call that no lesson speaks against.
    silent: Series,
    /// One that is stopped; `None` without lessons.
    stopped: Option<Series>,
}

/// Measures; the first of the servers has no lessons.
pub(crate) fn run(held: &[Held], calls: usize) -> Result<GateBench> {
    ensure!(calls > 0 && held.first().is_some_and(|first| first.lessons == 0), "nothing to compare with");
    let mut silent: Vec<Vec<Duration>> = vec![Vec::new(); held.len()];
    let mut stopped = silent.clone();
    for round in 0..WARM_UP_ROUNDS + calls {
        for turn in 0..held.len() {
            // Each round begins with another one: none always runs in the wake of the same.
            let at = (round + turn) % held.len();
            let (elapsed, said) = ask(&held[at], SILENT, round)?;
            ensure!(said.is_empty(), "a lesson spoke against `{SILENT}`: {said}");
            let (elapsed_when_stopped, said) = ask(&held[at], FIRING, round)?;
            ensure!(
                said.contains("\"deny\"") == (held[at].lessons > 0),
                "with {} lessons the hook said to `{FIRING}`: {said:?}",
                held[at].lessons
            );
            if round >= WARM_UP_ROUNDS {
                silent[at].push(elapsed);
                stopped[at].push(elapsed_when_stopped);
            }
        }
    }
    let rows = held.iter().zip(silent.into_iter().zip(stopped)).map(|(held, (silent, stopped))| Row {
        lessons: held.lessons,
        silent: Series::of(silent),
        stopped: (held.lessons > 0).then(|| Series::of(stopped)),
    });
    Ok(GateBench { calls, rows: rows.collect() })
}

impl GateBench {
    /// Whether the gate adds no more than it may.
    pub(crate) fn meets_its_limits(&self) -> bool {
        let bare = self.rows[0].silent.p99_us;
        let is_quick = |series: Series| (series.p99_us - bare) / 1e3 < MOST_ADDED_MS;
        let measured = self.rows.iter().filter(|row| row.lessons == MEASURED);
        measured.flat_map(|row| std::iter::once(row.silent).chain(row.stopped)).all(is_quick)
    }
}

/// A Markdown table, which reads as well in a terminal.
impl Display for GateBench {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} calls a row, all in turn; the hook's wall time from spawn to exit\n", self.calls)?;
        writeln!(formatter, "| lessons | the call is |   median |      p99 | x none | p99 x none | added p99 |")?;
        writeln!(formatter, "| ------: | ----------- | -------: | -------: | -----: | ---------: | --------: |")?;
        let none = self.rows[0].silent;
        for row in &self.rows {
            for (what, series) in std::iter::once(("let pass", row.silent)).chain(row.stopped.map(|it| ("stopped", it)))
            {
                writeln!(
                    formatter,
                    "| {:>7} | {what:<11} | {:>5.2} ms | {:>5.2} ms | {:>6.2} | {:>10.2} | {:>6.2} ms |",
                    row.lessons,
                    series.median_us / 1e3,
                    series.p99_us / 1e3,
                    series.ratio_to(none),
                    series.p99_us / none.p99_us,
                    (series.p99_us - none.p99_us) / 1e3,
                )?;
            }
        }
        write!(formatter, "\nwith {MEASURED} lessons the gate may add {MOST_ADDED_MS:.0} ms at the 99th percentile")
    }
}

/// Runs the hook before a call once; how long it took, and what it printed. Each round is a session of its own.
fn ask(held: &Held, command: &str, round: usize) -> Result<(Duration, String)> {
    let payload = serde_json::json!({
        "session_id": format!("bench-gate-{round}"),
        "cwd": "/home/dev/widgets",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": { "command": command, "description": "Run it" },
        "tool_use_id": format!("toolu_bench_{round}"),
    });
    let printed = held.home.join("bench-gate-printed");
    let file = std::fs::File::create(&printed).with_context(|| format!("cannot write `{}`", printed.display()))?;
    let mut hook = hook(&held.hook_program, &held.home);
    hook.stdout(file).stderr(Stdio::null());
    let elapsed = timed(&mut hook, &payload.to_string())?;
    let said = std::fs::read_to_string(&printed).with_context(|| format!("cannot read `{}`", printed.display()))?;
    Ok((elapsed, said))
}

fn hook(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["claude-code", "PreToolUse"]).env("AGENT_MEMORY_HOME", home).env_remove("AGENT_MEMORY_DISABLE");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_limit_against_the_hook_without_lessons() {
        let bench = |p99_us: f64| {
            let row = |lessons, p99_us| Row { lessons, silent: Series { median_us: 2_000.0, p99_us }, stopped: None };
            GateBench { calls: 1, rows: vec![row(0, 4_000.0), row(1_000, p99_us)] }
        };
        assert!(bench(23_000.0).meets_its_limits());
        assert!(!bench(25_000.0).meets_its_limits());
    }
}
