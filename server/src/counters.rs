//! What came in since the start, by what became of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Names of unknown events beyond this many are counted together, so that noise cannot fill the memory.
const MAX_NAMES: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    stored: AtomicU64,
    known: AtomicU64,
    asked: AtomicU64,
    malformed: AtomicU64,
    refused: AtomicU64,
    ignored: Mutex<BTreeMap<String, u64>>,
}

/// A reading of the counters.
#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    stored: u64,
    /// Events that the journal held already.
    known: u64,
    /// Calls that were about to run.
    asked: u64,
    malformed: u64,
    /// Requests without the right token, host or origin.
    refused: u64,
    /// Well-formed events that are not kept, by name.
    ignored: BTreeMap<String, u64>,
}

impl Counters {
    pub(crate) fn count_recorded(&self, recorded: memory::store::Recorded) {
        match recorded {
            memory::store::Recorded::Stored => &self.stored,
            memory::store::Recorded::Known | memory::store::Recorded::Amended => &self.known,
        }
        .fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_ignored(&self, event: &str) {
        let mut ignored = self.ignored.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if ignored.len() < MAX_NAMES || ignored.contains_key(event) { event } else { "other" };
        *ignored.entry(name.chars().take(64).collect()).or_default() += 1;
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            stored: self.stored.load(Ordering::Relaxed),
            known: self.known.load(Ordering::Relaxed),
            asked: self.asked.load(Ordering::Relaxed),
            malformed: self.malformed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            ignored: self.ignored.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
