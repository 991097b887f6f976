//! What the operator sees: data on stdout, conversation on stderr, progress only where a person watches.
//!
//! Commands get a [`Printer`] and never write by themselves. How a failure is told is in `failure`, how a running
//! step is shown in `step`.

mod failure;
mod step;

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressDrawTarget};

pub use failure::{HintExt, headline, hinted, report};
pub use step::Step;

/// How much of the conversation is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Warnings and failures only.
    Quiet,
    #[default]
    Default,
    /// Also what a step is made of.
    Verbose,
}

/// For whom to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
}

impl Form {
    /// The form that the flag `--json` asks for.
    pub fn of_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// The one way out for text. Clones are cheap and write to the same terminal.
#[derive(Debug, Clone)]
pub struct Printer {
    verbosity: Verbosity,
    bars: Arc<MultiProgress>,
}

impl Printer {
    pub fn new(verbosity: Verbosity) -> Self {
        let target = match verbosity {
            Verbosity::Quiet => ProgressDrawTarget::hidden(),
            Verbosity::Default | Verbosity::Verbose => ProgressDrawTarget::stderr(),
        };
        Self { verbosity, bars: Arc::new(MultiProgress::with_draw_target(target)) }
    }

    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Begins something that takes time; `doing` reads like "Starting Postgres".
    pub fn step(&self, doing: impl Into<String>) -> Step {
        Step::begin(self.clone(), doing.into())
    }

    /// One line of conversation.
    pub fn note(&self, line: impl Display) {
        if self.verbosity > Verbosity::Quiet {
            self.line(line);
        }
    }

    /// One line for those who want to know more.
    pub fn detail(&self, line: impl Display) {
        if self.verbosity == Verbosity::Verbose {
            self.line(line);
        }
    }

    /// Something that the operator should know even when quiet.
    pub fn warn(&self, line: impl Display) {
        self.line(format_args!("warning: {line}"));
    }

    /// A result, for people and for pipes: stdout, one line feed added.
    pub fn data(&self, text: impl Display) {
        // A reader that has gone away (`| head`) is no failure of ours.
        self.bars.suspend(|| drop(writeln!(std::io::stdout().lock(), "{text}")));
    }

    /// The end of a failed run, as [`report`] tells it.
    pub fn failure(&self, report: impl Display) {
        self.line(report.to_string().trim_end());
    }

    fn line(&self, line: impl Display) {
        self.bars.suspend(|| drop(writeln!(std::io::stderr().lock(), "{line}")));
    }
}

/// A duration as a person reads it: `80 ms`, `3.4 s`, `4 min 10 s`.
pub fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match duration.as_secs() {
        0 if seconds < 0.9995 => format!("{} ms", duration.as_millis()),
        0..60 => format!("{seconds:.1} s"),
        whole => format!("{} min {} s", whole / 60, whole % 60),
    }
}

/// A size as a person reads it, in powers of 1000: `812 B`, `23.1 MB`.
pub fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_durations_in_the_unit_a_person_would_choose() {
        assert_eq!(human_duration(Duration::from_millis(80)), "80 ms");
        assert_eq!(human_duration(Duration::from_millis(3_420)), "3.4 s");
        assert_eq!(human_duration(Duration::from_secs(250)), "4 min 10 s");
    }

    #[test]
    fn tells_sizes_in_the_unit_a_person_would_choose() {
        assert_eq!(human_bytes(812), "812 B");
        assert_eq!(human_bytes(466_247), "466 kB");
        assert_eq!(human_bytes(22_928_619), "22.9 MB");
    }
}
