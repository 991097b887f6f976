//! What reading a transcript came to.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;

/// Different reasons that are told apart; unknown types beyond that are one.
const MAX_REASONS: usize = 64;

/// Counts of one file, or of several together.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub bytes: u64,
    pub lines: u64,
    pub prompts: u64,
    pub answers: u64,
    pub calls: u64,
    pub failed_calls: u64,
    /// Of the calls, those that are joined to a prompt.
    pub joined_calls: u64,
    /// Compactions, subagents, refusals.
    pub happenings: u64,
    /// Calls without a result at the end of the file: they may still be running, and are left to the next run.
    pub unfinished_calls: u64,
    /// Events outside what was asked for: before `--since`, of another project or session, of an excluded folder.
    pub left_out: BTreeMap<String, u64>,
    /// Lines that gave no event, by reason.
    pub skipped: BTreeMap<String, u64>,
}

impl Report {
    pub(super) fn skip(&mut self, reason: &str) {
        count(&mut self.skipped, reason);
    }

    pub(super) fn leave_out(&mut self, reason: &str) {
        count(&mut self.left_out, reason);
    }

    pub fn skipped_lines(&self) -> u64 {
        self.skipped.values().sum()
    }
}

fn count(counts: &mut BTreeMap<String, u64>, reason: &str) {
    if let Some(count) = counts.get_mut(reason) {
        *count += 1;
    } else if counts.len() < MAX_REASONS {
        counts.insert(reason.to_owned(), 1);
    } else {
        *counts.entry("other".to_owned()).or_default() += 1;
    }
}

impl AddAssign<&Self> for Report {
    fn add_assign(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.prompts += other.prompts;
        self.answers += other.answers;
        self.calls += other.calls;
        self.failed_calls += other.failed_calls;
        self.joined_calls += other.joined_calls;
        self.happenings += other.happenings;
        self.unfinished_calls += other.unfinished_calls;
        for (mine, others) in [(&mut self.left_out, &other.left_out), (&mut self.skipped, &other.skipped)] {
            for (reason, count) in others {
                *mine.entry(reason.clone()).or_default() += count;
            }
        }
    }
}
