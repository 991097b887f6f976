//! The log of a run: a line of JSON for each step and for each look at the validation set.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    Step {
        /// Counted from 1.
        step: usize,
        /// The mean cross-entropy per learnt token before the step.
        loss: f64,
        learning_rate: f64,
        gradient_norm: f64,
        tokens: usize,
        tokens_per_second: f64,
        peak_bytes: Option<u64>,
    },
    Validation {
        /// After so many steps.
        step: usize,
        loss: f64,
        is_best: bool,
    },
}

impl Record {
    pub const fn step(&self) -> usize {
        match self {
            Self::Step { step, .. } | Self::Validation { step, .. } => *step,
        }
    }
}

/// Appends to the file.
#[derive(Debug)]
pub(super) struct Log(File);

impl Log {
    /// Goes on after `steps` steps: what the log has of later ones was not kept, and is made again.
    pub(super) fn resume(path: &Path, steps: usize) -> io::Result<Self> {
        let mut kept = Vec::new();
        if steps > 0 {
            for record in read(path)?.iter().filter(|record| record.step() <= steps) {
                serde_json::to_writer(&mut kept, record)?;
                kept.push(b'\n');
            }
        }
        files::write(path, &kept)?;
        Ok(Self(OpenOptions::new().append(true).open(path)?))
    }

    pub(super) fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }
}

/// Reads a log; a last line that was cut short is left out.
pub fn read(path: &Path) -> io::Result<Vec<Record>> {
    let lines = BufReader::new(File::open(path)?).lines();
    let mut records = Vec::new();
    for line in lines {
        match serde_json::from_str(&line?) {
            Ok(record) => records.push(record),
            Err(_) => break,
        }
    }
    Ok(records)
}
