//! What came in since the start and what became of it, as Prometheus counts: numbers that only grow, and how long recall took.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use memory::store::Recorded;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};
use serde::Serialize;

/// Names of unknown events beyond this many are counted together, so that noise cannot fill the memory.
const MAX_NAMES: usize = 100;
/// What became of an event, as the counter's label says it.
const RESULTS: [&str; 5] = [STORED, KNOWN, ASKED, MALFORMED, IGNORED];
const STORED: &str = "stored";
const KNOWN: &str = "known";
const ASKED: &str = "asked";
const MALFORMED: &str = "malformed";
const IGNORED: &str = "ignored";
/// Seconds. What is said unasked has 0.18 s, a tool 15.
const RECALL_BUCKETS: [f64; 12] = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.18, 0.5, 1.0, 2.5, 5.0, 15.0];

/// The way in which a question reached the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Mcp,
    Rest,
    Unasked,
}

impl Way {
    const ALL: [Self; 3] = [Self::Mcp, Self::Rest, Self::Unasked];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Rest => "rest",
            Self::Unasked => "unasked",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Counters {
    registry: Registry,
    events: IntCounterVec,
    event_bytes: IntCounter,
    refused: IntCounter,
    missed_deadlines: IntCounter,
    recall: HistogramVec,
    /// Events that are not kept, by a name that another program chose: for `stats`, never for a label.
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

impl Default for Counters {
    fn default() -> Self {
        let registry = Registry::new();
        let events = IntCounterVec::new(
            Opts::new("agent_memory_events_total", "Events of agents since the start, by what became of them."),
            &["result"],
        );
        let recall = HistogramVec::new(
            HistogramOpts::new("agent_memory_recall_duration_seconds", "How long answers out of the memory took.")
                .buckets(RECALL_BUCKETS.to_vec()),
            &["way"],
        );
        let counters = Self {
            events: registered(&registry, events),
            event_bytes: counter(
                &registry,
                "agent_memory_event_bytes_total",
                "Bytes of events that were stored or known, as they came in.",
            ),
            refused: counter(
                &registry,
                "agent_memory_refused_requests_total",
                "Requests without the right token, host or origin.",
            ),
            missed_deadlines: counter(
                &registry,
                "agent_memory_hook_deadlines_missed_total",
                "Events that a hook did not wait for any longer, as hooks reported them with a later event.",
            ),
            recall: registered(&registry, recall),
            ignored: Mutex::default(),
            registry,
        };
        // What has not happened yet is 0, so that the first time is a rise.
        for result in RESULTS {
            counters.events.with_label_values(&[result]);
        }
        for way in Way::ALL {
            counters.recall.with_label_values(&[way.as_str()]);
        }
        counters
    }
}

impl mcp::Timer for Counters {
    fn count(&self, way: mcp::Way, took: Duration) {
        let way = match way {
            mcp::Way::Protocol => Way::Mcp,
            mcp::Way::Plain => Way::Rest,
        };
        self.time_recall(way, took);
    }
}

fn counter(registry: &Registry, name: &str, help: &str) -> IntCounter {
    registered(registry, IntCounter::new(name, help))
}

fn registered<M: Collector + Clone + 'static>(registry: &Registry, metric: prometheus::Result<M>) -> M {
    let metric = metric.expect("names and labels are well-formed");
    registry.register(Box::new(metric.clone())).expect("each name is registered once");
    metric
}

impl Counters {
    /// An event is in the journal, which came in as so many bytes.
    pub(crate) fn count_recorded(&self, recorded: Recorded, size_bytes: usize) {
        self.count(match recorded {
            Recorded::Stored => STORED,
            Recorded::Known | Recorded::Amended => KNOWN,
        });
        self.event_bytes.inc_by(size_bytes as u64);
    }

    pub(crate) fn count_asked(&self) {
        self.count(ASKED);
    }

    pub(crate) fn count_malformed(&self) {
        self.count(MALFORMED);
    }

    pub(crate) fn count_refused(&self) {
        self.refused.inc();
    }

    pub(crate) fn count_missed_deadlines(&self, count: u64) {
        self.missed_deadlines.inc_by(count);
    }

    pub(crate) fn count_ignored(&self, event: &str) {
        self.count(IGNORED);
        let mut ignored = self.ignored.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if ignored.len() < MAX_NAMES || ignored.contains_key(event) { event } else { "other" };
        *ignored.entry(name.chars().take(64).collect()).or_default() += 1;
    }

    pub(crate) fn time_recall(&self, way: Way, took: Duration) {
        self.recall.with_label_values(&[way.as_str()]).observe(took.as_secs_f64());
    }

    pub(crate) fn read(&self) -> Counts {
        let of = |result| self.events.with_label_values(&[result]).get();
        Counts {
            stored: of(STORED),
            known: of(KNOWN),
            asked: of(ASKED),
            malformed: of(MALFORMED),
            refused: self.refused.get(),
            ignored: self.ignored.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// What processes of their own have answered out of the memory, as they tell with the header.
    pub(crate) fn time_told(&self, header: &str) {
        mcp::read_times(header).for_each(|took| self.time_recall(Way::Mcp, took));
    }

    /// For Prometheus.
    pub(crate) fn families(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    fn count(&self, result: &str) {
        self.events.with_label_values(&[result]).inc();
    }
}
