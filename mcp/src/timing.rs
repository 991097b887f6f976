//! How long answers out of the memory took, told to whoever counts them. A process of its own has nobody to tell: it keeps the times until
//! it next asks the server for a vector, and tells them with that.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// With a request for a vector: how long each answer since the last one took, in whole microseconds, separated by commas.
pub const RECALL_HEADER: &str = "agent-memory-recall-us";

/// Where no server answers for long, the oldest are forgotten.
const MAX_KEPT: usize = 100;

/// How a tool was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over MCP.
    Protocol,
    /// Over plain HTTP.
    Plain,
}

/// Counts how long answers took.
pub trait Timer: Send + Sync {
    fn count(&self, way: Way, took: Duration);
}

/// Times that the server has yet to be told.
#[derive(Debug, Default)]
pub(crate) struct Untold(Mutex<Vec<u128>>);

impl Untold {
    /// What the header says; `None` where there is nothing to tell.
    pub(crate) fn take(&self) -> Option<Vec<u128>> {
        let times = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (!times.is_empty()).then_some(times)
    }

    /// The server did not hear it.
    pub(crate) fn put_back(&self, times: impl IntoIterator<Item = u128>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(times);
        let surplus = kept.len().saturating_sub(MAX_KEPT);
        kept.drain(..surplus);
    }
}

impl Timer for Untold {
    fn count(&self, _way: Way, took: Duration) {
        self.put_back([took.as_micros()]);
    }
}

/// The header's value.
pub(crate) fn written(times: &[u128]) -> String {
    times.iter().map(u128::to_string).collect::<Vec<_>>().join(",")
}

/// The times of such a header. What is no number is none.
pub fn read_times(header: &str) -> impl Iterator<Item = Duration> {
    header.split(',').take(MAX_KEPT).filter_map(|time| time.trim().parse().ok().map(Duration::from_micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_each_time_once_and_again_where_it_was_not_heard() {
        let untold = Untold::default();
        assert_eq!(untold.take(), None);
        untold.count(Way::Protocol, Duration::from_millis(2));
        let times = untold.take().unwrap();
        assert_eq!((written(&times), untold.take()), ("2000".to_owned(), None));
        untold.put_back(times);
        untold.put_back(0..150);
        let kept = untold.take().unwrap();
        assert_eq!((kept.len(), kept.last()), (MAX_KEPT, Some(&149)));
    }

    #[test]
    fn reads_what_is_a_time_and_not_too_many() {
        let read: Vec<_> = read_times("2000, x,-1,5").collect();
        assert_eq!(read, [Duration::from_millis(2), Duration::from_micros(5)]);
        assert_eq!(read_times(&"1,".repeat(500)).count(), MAX_KEPT);
    }
}
