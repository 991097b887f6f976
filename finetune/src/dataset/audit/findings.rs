//! What the audit found, as it is written into `audit.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limits::Bound;
use crate::dataset::row::Ending;
use crate::dataset::split::Split;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    pub passed: bool,
    pub rows: u64,
    pub splits: BTreeMap<Split, u64>,
    pub checks: Vec<Check>,
    pub endings: BTreeMap<Ending, u64>,
    /// Trained calls by tool.
    pub tools: Histogram,
    pub projects: Histogram,
    pub agents: Histogram,
    pub source_models: Histogram,
    pub licences: Histogram,
    /// Samples by their length in tokens: by the power of two that they do not exceed.
    pub lengths: BTreeMap<u32, u64>,
    pub tokens: u64,
    pub trained_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub passed: bool,
    /// The share that was found.
    pub value: f64,
    /// Where it must lie: `<= 0.35` or `>= 0.2`.
    pub limit: String,
    /// How many rows have it, where it is counted row by row, and the first of them.
    pub count: u64,
    pub rows: Vec<String>,
}

/// How often each name was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(pub BTreeMap<String, u64>);

impl Histogram {
    pub(super) fn add(&mut self, name: &str) {
        *self.0.entry(name.to_owned()).or_default() += 1;
    }

    /// The share of the commonest name.
    pub fn largest_share(&self) -> f64 {
        let all: u64 = self.0.values().sum();
        let largest = self.0.values().max().copied().unwrap_or_default();
        if all == 0 { 0.0 } else { largest as f64 / all as f64 }
    }
}

impl Check {
    pub(super) fn measured(name: &str, value: f64, bound: Bound) -> Self {
        let (passed, limit) = match bound {
            Bound::AtMost(most) => (value <= most + f64::EPSILON, format!("<= {most}")),
            Bound::AtLeast(least) => (value + f64::EPSILON >= least, format!(">= {least}")),
        };
        Self { name: name.to_owned(), passed, value, limit, count: 0, rows: Vec::new() }
    }
}

/// What is counted while the rows go by.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) rows: u64,
    pub(super) splits: BTreeMap<Split, u64>,
    pub(super) endings: BTreeMap<Ending, u64>,
    pub(super) tools: Histogram,
    pub(super) projects: Histogram,
    pub(super) agents: Histogram,
    pub(super) source_models: Histogram,
    pub(super) licences: Histogram,
    pub(super) lengths: Vec<u32>,
    pub(super) trained_tokens: u64,
    pub(super) multi_turn: u64,
    found: BTreeMap<&'static str, Found>,
}

#[derive(Debug, Default)]
struct Found {
    count: u64,
    rows: Vec<String>,
    last: String,
}

impl Tally {
    /// That a row has something; told twice of the row that was last, it counts once.
    pub(super) fn find(&mut self, name: &'static str, row: &str) {
        const NAMED: usize = 20;
        let found = self.found.entry(name).or_default();
        if found.last == row || found.rows.iter().any(|known| known == row) {
            return;
        }
        found.count += 1;
        row.clone_into(&mut found.last);
        if found.rows.len() < NAMED {
            found.rows.push(row.to_owned());
        }
    }

    pub(super) fn counted(&self, name: &str, most: f64) -> Check {
        let found = self.found.get(name);
        let count = found.map_or(0, |found| found.count);
        let value = if self.rows == 0 { 0.0 } else { count as f64 / self.rows as f64 };
        let rows = found.map(|found| found.rows.clone()).unwrap_or_default();
        Check { passed: value <= most + f64::EPSILON, count, rows, ..Check::measured(name, value, Bound::AtMost(most)) }
    }

    pub(super) fn into_audit(self, checks: Vec<Check>) -> Audit {
        let mut lengths = BTreeMap::new();
        for length in &self.lengths {
            *lengths.entry(length.next_power_of_two().max(64)).or_default() += 1;
        }
        Audit {
            // Nothing to train on is no dataset.
            passed: self.rows > 0 && checks.iter().all(|check| check.passed),
            rows: self.rows,
            splits: self.splits,
            checks,
            endings: self.endings,
            tools: self.tools,
            projects: self.projects,
            agents: self.agents,
            source_models: self.source_models,
            licences: self.licences,
            lengths,
            tokens: self.lengths.iter().map(|length| u64::from(*length)).sum(),
            trained_tokens: self.trained_tokens,
        }
    }
}
