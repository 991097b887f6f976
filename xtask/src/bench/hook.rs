//! What a hook costs: its wall time from spawn to exit, beside an empty process and `node -e 0`.
//!
//! All are run in turn, round after round, so that whatever else the machine does falls on each alike; what counts are
//! the ratios. The installation and its running server are the caller's: the posted events are real ones, in a session
//! of their own that is called `bench-hook`.

use std::fmt::{self, Display};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;

/// Rounds that are run first and not counted: they fill the page cache.
const WARM_UP_ROUNDS: usize = 10;

/// What the hook may cost at the median.
pub(crate) const MAX_RATIO_TO_EMPTY: f64 = 2.0;
pub(crate) const MAX_RATIO_TO_NODE: f64 = 0.1;

pub(crate) struct Parameters<'a> {
    /// `agent-memory-hook` as it is installed, that is, built with the profile `dist`.
    pub(crate) hook_program: &'a Path,
    /// The home of an installation whose server is running.
    pub(crate) home: &'a Path,
    pub(crate) rounds: usize,
}

/// The outcome of one run.
#[derive(Debug, Serialize)]
pub(crate) struct HookBench {
    pub(crate) rounds: usize,
    /// A Rust program that does nothing.
    pub(crate) empty: Series,
    /// The hook handing a PostToolUse to the server.
    pub(crate) posting: Series,
    /// Of the posted events, those that went into the spool instead: the server was slower than the hook's deadline.
    pub(crate) spooled_while_posting: usize,
    /// The hook where no server is.
    pub(crate) spooling: Series,
    /// `None` where there is no Node.js.
    pub(crate) node: Option<Series>,
}

/// Wall times of one program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Series {
    pub(crate) median_us: f64,
    pub(crate) p99_us: f64,
}

pub(crate) fn run(parameters: &Parameters<'_>) -> anyhow::Result<HookBench> {
    ensure!(parameters.rounds > 0, "cannot measure in 0 rounds");
    let folder = Folder::create(parameters.home)?;
    let empty_program = build_empty_program(&folder.path)?;
    let away = folder.home_without_server()?;
    let spool = parameters.home.join("spool");
    let spooled_before = file_count(&spool);

    let mut programs = vec![
        Program::new(Command::new(empty_program)),
        Program::new(hook(parameters.hook_program, parameters.home)),
        Program::new(hook(parameters.hook_program, &away)),
    ];
    let mut node = Command::new("node");
    node.args(["-e", "0"]);
    if node.output().is_ok_and(|output| output.status.success()) {
        programs.push(Program::new(node));
    }
    let count = programs.len();
    for round in 0..WARM_UP_ROUNDS + parameters.rounds {
        let payload = payload(round);
        // Each round begins with another program: none always runs in the wake of the same one.
        for turn in 0..count {
            let elapsed = programs[(round + turn) % count].run(&payload)?;
            if round >= WARM_UP_ROUNDS {
                programs[(round + turn) % count].elapsed.push(elapsed);
            }
        }
    }

    let spooled_while_posting = file_count(&spool).saturating_sub(spooled_before);
    let spooled_while_away = file_count(&away.join("spool"));
    ensure!(
        spooled_while_away == WARM_UP_ROUNDS + parameters.rounds,
        "without a server the hook kept {spooled_while_away} of {} events",
        WARM_UP_ROUNDS + parameters.rounds
    );
    let mut series = programs.into_iter().map(|program| Series::of(program.elapsed));
    let mut next = || series.next().context("every program has a series");
    Ok(HookBench {
        rounds: parameters.rounds,
        empty: next()?,
        posting: next()?,
        spooling: next()?,
        node: next().ok(),
        spooled_while_posting,
    })
}

impl HookBench {
    /// Whether the hook costs no more than it may. Without Node.js, the comparison with it is left out.
    pub(crate) fn meets_its_limits(&self) -> bool {
        self.posting.ratio_to(self.empty) <= MAX_RATIO_TO_EMPTY
            && self.node.is_none_or(|node| self.posting.ratio_to(node) <= MAX_RATIO_TO_NODE)
    }
}

/// A Markdown table, which reads as well in a terminal.
impl Display for HookBench {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} rounds, all programs in turn; wall time from spawn to exit\n", self.rounds)?;
        writeln!(formatter, "| program                 |    median |       p99 | x empty | x node |")?;
        writeln!(formatter, "| ----------------------- | --------: | --------: | ------: | -----: |")?;
        let rows = [
            ("empty process", Some(self.empty)),
            ("hook, server takes it", Some(self.posting)),
            ("hook, server away", Some(self.spooling)),
            ("`node -e 0`", self.node),
        ];
        for (name, series) in rows {
            let Some(series) = series else {
                writeln!(formatter, "| {name:<23} | not found |           |         |        |")?;
                continue;
            };
            let to_node = self.node.map_or("-".to_owned(), |node| format!("{:.3}", series.ratio_to(node)));
            let (median_ms, p99_ms) = (series.median_us / 1e3, series.p99_us / 1e3);
            let to_empty = series.ratio_to(self.empty);
            writeln!(
                formatter,
                "| {name:<23} | {median_ms:>6.2} ms | {p99_ms:>6.2} ms | {to_empty:>7.2} | {to_node:>6} |"
            )?;
        }
        write!(
            formatter,
            "\nratios of medians; the hook may cost {MAX_RATIO_TO_EMPTY:.1} x empty and {MAX_RATIO_TO_NODE:.1} x node; \
             {} posted events went into the spool",
            self.spooled_while_posting
        )
    }
}

impl Series {
    pub(super) fn of(mut elapsed: Vec<Duration>) -> Self {
        elapsed.sort_unstable();
        let quantile = |share: f64| {
            let rank = (share * elapsed.len() as f64).ceil() as usize;
            elapsed[rank.clamp(1, elapsed.len()) - 1].as_secs_f64() * 1e6
        };
        Self { median_us: quantile(0.5), p99_us: quantile(0.99) }
    }

    /// How many times the other's median this median is.
    pub(crate) fn ratio_to(self, other: Self) -> f64 {
        self.median_us / other.median_us
    }
}

struct Program {
    command: Command,
    elapsed: Vec<Duration>,
}

impl Program {
    fn new(mut command: Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self { command, elapsed: Vec::new() }
    }

    fn run(&mut self, payload: &str) -> anyhow::Result<Duration> {
        timed(&mut self.command, payload)
    }
}

/// Runs a command once, with the event on stdin, as an agent does, from spawn to exit; it must succeed.
pub(super) fn timed(command: &mut Command, payload: &str) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let (stdin, theirs) = stdin_pair().context("cannot make a stdin")?;
    let mut child = command.stdin(theirs).spawn().with_context(|| format!("cannot start {command:?}"))?;
    // The command keeps its copy of the child's end, and nobody would see that we close ours.
    command.stdin(Stdio::null());
    feed(stdin, &mut child, payload);
    let status = child.wait().with_context(|| format!("cannot wait for {command:?}"))?;
    let elapsed = start.elapsed();
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(elapsed)
}

/// A socket, as Claude Code and everything on Node.js gives its children for stdin.
#[cfg(unix)]
fn stdin_pair() -> std::io::Result<(std::os::unix::net::UnixStream, Stdio)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    Ok((ours, std::os::fd::OwnedFd::from(theirs).into()))
}

#[cfg(not(unix))]
fn stdin_pair() -> std::io::Result<((), Stdio)> {
    Ok(((), Stdio::piped()))
}

#[cfg(unix)]
fn feed(mut stdin: impl Write, _child: &mut Child, payload: &str) {
    // A program that does not read may have ended before.
    let _ = stdin.write_all(payload.as_bytes());
}

#[cfg(not(unix))]
fn feed((): (), child: &mut Child, payload: &str) {
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(payload.as_bytes());
    }
}

fn hook(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["claude-code", "PostToolUse"]).env("AGENT_MEMORY_HOME", home).env_remove("AGENT_MEMORY_DISABLE");
    command
}

/// A PostToolUse as Claude Code sends it, one call more each round.
fn payload(round: usize) -> String {
    serde_json::json!({
        "session_id": "bench-hook",
        "transcript_path": "/home/dev/.claude/projects/-home-dev-widgets/bench-hook.jsonl",
        "cwd": "/home/dev/widgets",
        "prompt_id": "6f0c4f0e-6f65-4a53-9d4f-0d5b9e3c1a77",
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": { "command": format!("cargo test -p widgets round_{round}"), "description": "Run one test" },
        "tool_response": {
            "stdout": "running 1 test\ntest rounds ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored",
            "stderr": "",
            "interrupted": false,
            "isImage": false
        },
        "tool_use_id": format!("toolu_bench_{:016x}_{round}", u64::from(std::process::id())),
        "duration_ms": 218
    })
    .to_string()
}

/// The process to compare with: a Rust program that does nothing, as `rustc -O` makes it.
pub(crate) fn build_empty_program(folder: &Path) -> anyhow::Result<PathBuf> {
    let source = folder.join("empty.rs");
    let program = folder.join(format!("empty{}", std::env::consts::EXE_SUFFIX));
    std::fs::write(&source, "fn main() {}\n").with_context(|| format!("cannot write `{}`", source.display()))?;
    let output = Command::new("rustc")
        .args(["--edition", "2024", "-O", "-o"])
        .args([&program, &source])
        .output()
        .context("cannot run `rustc`, which makes the empty process to compare with")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "rustc could not build the empty program: {said}");
    Ok(program)
}

fn file_count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).count()
    })
}

/// A folder for the time of the run. It lies in the home, so that the spool's disk is the one that is measured.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn create(home: &Path) -> anyhow::Result<Self> {
        let path = home.join(format!("bench-hook-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make the folder `{}`", path.display()))?;
        Ok(Self { path })
    }

    fn home_without_server(&self) -> anyhow::Result<PathBuf> {
        let home = self.path.join("away");
        // Bound and given back: a port where nobody listens.
        let address = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .context("cannot find a free port")?;
        std::fs::create_dir(&home)
            .and_then(|()| std::fs::write(home.join("address"), address.to_string()))
            .and_then(|()| std::fs::write(home.join("token"), "bench"))
            .with_context(|| format!("cannot write into `{}`", home.display()))?;
        Ok(home)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(median_us: f64) -> Series {
        Series { median_us, p99_us: median_us * 2.0 }
    }

    fn bench(posting_us: f64, node: Option<Series>) -> HookBench {
        HookBench {
            rounds: 400,
            empty: series(1000.0),
            posting: series(posting_us),
            spooled_while_posting: 0,
            spooling: series(1500.0),
            node,
        }
    }

    #[test]
    fn takes_median_and_99th_percentile_by_rank() {
        let elapsed = (1..=100).rev().map(Duration::from_micros).collect();
        assert_eq!(Series::of(elapsed), Series { median_us: 50.0, p99_us: 99.0 });
        assert_eq!(Series::of(vec![Duration::from_micros(7)]), Series { median_us: 7.0, p99_us: 7.0 });
    }

    #[test]
    fn meets_its_limits_only_where_both_ratios_do() {
        assert!(bench(1500.0, None).meets_its_limits());
        assert!(!bench(2500.0, None).meets_its_limits());
        assert!(bench(1500.0, Some(series(40_000.0))).meets_its_limits());
        assert!(!bench(1500.0, Some(series(10_000.0))).meets_its_limits());
    }

    #[test]
    fn shows_ratios_of_medians() {
        let text = bench(1500.0, Some(series(40_000.0))).to_string();
        assert!(text.contains("| hook, server takes it   |   1.50 ms |   3.00 ms |    1.50 |  0.037 |"), "{text}");
        assert!(bench(1500.0, None).to_string().contains("| `node -e 0`             | not found |"));
    }
}
