//! What a backfill tells of itself: a table for people, the same as JSON for scripts.

use std::fmt::Write;
use std::path::Path;

use memory::transcripts::TakenIn;
use serde::Serialize;

use super::sources::Source;
use super::{counted, reasons};
use crate::output::human_bytes;

#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) is_dry_run: bool,
    pub(super) agents: Vec<AgentOutcome>,
}

#[derive(Debug, Serialize)]
pub(super) struct AgentOutcome {
    pub(super) agent: &'static str,
    /// `null` in a dry run, or where there was nothing to read.
    pub(super) run: Option<i64>,
    pub(super) total: TakenIn,
    pub(super) files: Vec<FileOutcome>,
}

#[derive(Debug, Serialize)]
pub(super) struct FileOutcome {
    path: String,
    taken: Option<TakenIn>,
    error: Option<String>,
}

impl FileOutcome {
    pub(super) fn new(path: &Path, taken: Result<TakenIn, String>) -> Self {
        let (taken, error) = match taken {
            Ok(taken) => (Some(taken), None),
            Err(error) => (None, Some(error)),
        };
        Self { path: path.display().to_string(), taken, error }
    }
}

impl AgentOutcome {
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|file| Some((file.path.as_str(), file.error.as_deref()?)))
    }
}

impl Outcome {
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.agents.iter().flat_map(AgentOutcome::failures)
    }

    pub(super) fn text(&self, sources: &[Source]) -> String {
        let mut text = String::new();
        for (outcome, source) in self.agents.iter().zip(sources) {
            if outcome.files.is_empty() {
                let _ = writeln!(text, "{}: nothing to read in {}", outcome.agent, source.name);
                continue;
            }
            let TakenIn { read, inserted, amended, known } = &outcome.total;
            let _ = writeln!(
                text,
                "{}: {}, {}, {} prompts, {} calls ({} joined to a prompt, {} failed), {} answers, {} other events",
                outcome.agent,
                counted(outcome.files.len(), "transcript"),
                human_bytes(read.bytes),
                read.prompts,
                read.calls,
                read.joined_calls,
                read.failed_calls,
                read.answers,
                read.happenings,
            );
            if !self.is_dry_run {
                let _ = writeln!(
                    text,
                    "  new: {} prompts, {} calls, {} answers, {} other events; told more of {amended}; known {known}",
                    inserted.prompts, inserted.calls, inserted.answers, inserted.happenings,
                );
            }
            if read.unfinished_calls > 0 {
                let _ = writeln!(text, "  without a result yet: {} calls", read.unfinished_calls);
            }
            for (what, counts) in [("left out", &read.left_out), ("lines that hold no event", &read.skipped)] {
                if !counts.is_empty() {
                    let _ = writeln!(text, "  {what}: {}", reasons(counts));
                }
            }
            if let Some(run) = outcome.run {
                let _ = writeln!(text, "  to take it back: `cargo xtask backfill --rollback {run}`");
            }
        }
        if self.is_dry_run {
            text.push_str("Nothing was stored: this was a dry run.\n");
        }
        text
    }
}
