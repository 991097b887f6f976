//! A number that is found out when it is asked for, but not too often: how often depends on what it cost the last time.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// Prometheus gives up on a scrape after ten seconds by default.
const DEADLINE: Duration = Duration::from_secs(4);

/// How long an answer is good for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) least: Duration,
    /// And so many times as long as finding it out took: its share of the machine is never more than one in so many.
    pub(super) rest: u32,
}

#[derive(Debug)]
pub(super) struct Cached<T> {
    interval: Interval,
    answer: Mutex<Option<Answer<T>>>,
}

#[derive(Debug)]
struct Answer<T> {
    /// `None` if it could not be found out; then nothing is told, rather than something old.
    value: Option<T>,
    found_at: Instant,
    took: Duration,
}

impl<T: Clone> Cached<T> {
    pub(super) fn each(interval: Interval) -> Self {
        Self { interval, answer: Mutex::new(None) }
    }

    /// The last answer while it is good, else what `find` finds within the deadline. Who asks meanwhile waits for the same.
    pub(super) async fn get(&self, find: impl Future<Output = Option<T>>) -> Option<T> {
        let mut answer = self.answer.lock().await;
        if let Some(known) = answer.as_ref().filter(|known| self.is_good(known)) {
            return known.value.clone();
        }
        let started = Instant::now();
        let value = tokio::time::timeout(DEADLINE, find).await.ok().flatten();
        *answer = Some(Answer { value: value.clone(), found_at: Instant::now(), took: started.elapsed() });
        value
    }

    fn is_good(&self, answer: &Answer<T>) -> bool {
        answer.found_at.elapsed() < self.interval.least.max(answer.took * self.interval.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn asks_again_only_when_the_last_answer_is_old_for_what_it_cost() {
        let cached = Cached::each(Interval { least: Duration::ZERO, rest: 0 });
        assert_eq!(cached.get(async { Some(1) }).await, Some(1));
        assert_eq!(cached.get(async { Some(2) }).await, Some(2));
        let slow = Cached::each(Interval { least: Duration::ZERO, rest: 1_000_000 });
        assert_eq!(slow.get(async { Some(1) }).await, Some(1));
        assert_eq!(slow.get(async { Some(2) }).await, Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn tells_nothing_rather_than_something_old_where_there_is_no_answer_in_time() {
        let cached = Cached::each(Interval { least: Duration::ZERO, rest: 0 });
        assert_eq!(cached.get(async { Some(1) }).await, Some(1));
        assert_eq!(cached.get(std::future::pending()).await, None);
    }
}
