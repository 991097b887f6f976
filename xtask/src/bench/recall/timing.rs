//! How long searches took, and what of it the database and the model.

use std::time::Duration;

use super::report::Row;

pub(super) struct Timings {
    name: String,
    total_ms: Vec<f64>,
    database_ms: f64,
    embedding_ms: f64,
}

impl Timings {
    pub(super) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), total_ms: Vec::new(), database_ms: 0.0, embedding_ms: 0.0 }
    }

    pub(super) fn push(&mut self, took: Duration, database_ms: f64, embedding_ms: f64) {
        self.total_ms.push(took.as_secs_f64() * 1000.0);
        self.database_ms += database_ms;
        self.embedding_ms += embedding_ms;
    }

    /// All of it was the database's.
    pub(super) fn push_scan(&mut self, took: Duration) {
        self.push(took, took.as_secs_f64() * 1000.0, 0.0);
    }

    /// `raw_ms` is what the median is told as a multiple of.
    pub(super) fn finish(mut self, raw_ms: Option<f64>) -> Row {
        self.total_ms.sort_by(f64::total_cmp);
        let sum: f64 = self.total_ms.iter().sum();
        let share = |part: f64| if sum > 0.0 { part / sum } else { 0.0 };
        let p50_ms = quantile(&self.total_ms, 0.5);
        Row {
            p50_ms,
            p95_ms: quantile(&self.total_ms, 0.95),
            database: share(self.database_ms),
            embedding: share(self.embedding_ms),
            to_raw: raw_ms.filter(|raw| *raw > 0.0).map(|raw| p50_ms / raw),
            name: self.name,
        }
    }
}

/// Of sorted values; 0 where there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_median_the_tail_and_the_shares() {
        let mut timings = Timings::of("none");
        for ms in 1..=100 {
            timings.push(Duration::from_millis(ms), ms as f64 / 2.0, ms as f64 / 4.0);
        }
        let row = timings.finish(Some(25.0));
        assert_eq!((row.p50_ms, row.p95_ms, row.to_raw), (50.0, 95.0, Some(2.0)));
        assert!((row.database - 0.5).abs() < 1e-9 && (row.embedding - 0.25).abs() < 1e-9);
        assert!(quantile(&[], 0.5).abs() < f64::EPSILON);
    }
}
