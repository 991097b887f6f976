//! The figures of all rounds as one table: medians, since a single round may fall into anything.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::Serialize;

use super::super::load::Audit;
use super::{MIN_RATIO, Measured, Setting};

/// The outcome of all rounds.
#[derive(Debug, Serialize)]
pub(crate) struct IngestBench {
    rounds: usize,
    events: usize,
    /// Rows inserted by hand, in batches over one connection or one event a commit over several.
    references: Vec<ByHand>,
    settings: Vec<Row>,
    audit: Audit,
}

#[derive(Debug, Serialize)]
struct ByHand {
    /// With so many connections, each of which waits for every commit.
    waiting: Option<usize>,
    events_per_second: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    setting: Setting,
    events_per_second: f64,
    /// Against batches by hand.
    ratio: f64,
    /// Against one event a commit by hand, over as many connections.
    ratio_one_by_one: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
}

/// Rounds so far.
pub(super) struct Collected {
    references: BTreeMap<Option<usize>, Vec<f64>>,
    settings: Vec<(Setting, Vec<Measured>)>,
}

impl Collected {
    pub(super) fn new(settings: &[Setting]) -> Self {
        Self { references: BTreeMap::new(), settings: settings.iter().map(|setting| (*setting, Vec::new())).collect() }
    }

    /// Rows inserted by hand, in batches or by so many connections that wait for every commit.
    pub(super) fn push_reference(&mut self, waiting: Option<usize>, events_per_second: f64) {
        self.references.entry(waiting).or_default().push(events_per_second);
    }

    pub(super) fn push(&mut self, setting: Setting, measured: Measured) {
        self.settings.iter_mut().filter(|(of, _)| *of == setting).for_each(|(_, all)| all.push(measured));
    }

    pub(super) fn finish(self, rounds: usize, events: usize, audit: Audit) -> IngestBench {
        let row = |(setting, measured): (Setting, Vec<Measured>)| {
            let of = |value: fn(&Measured) -> f64| median(measured.iter().map(value).collect());
            Row {
                setting,
                events_per_second: of(|measured| measured.events_per_second),
                ratio: of(|measured| measured.ratio),
                ratio_one_by_one: measured
                    .iter()
                    .map(|measured| measured.ratio_one_by_one)
                    .collect::<Option<_>>()
                    .map(median),
                p50_ms: of(|measured| measured.p50_ms),
                p99_ms: of(|measured| measured.p99_ms),
            }
        };
        IngestBench {
            rounds,
            events,
            references: self
                .references
                .into_iter()
                .map(|(waiting, all)| ByHand { waiting, events_per_second: median(all) })
                .collect(),
            settings: self.settings.into_iter().map(row).collect(),
            audit,
        }
    }
}

impl IngestBench {
    /// Whether the server is as fast as it shall be, however many clients send: beside batches where it may form some, beside one
    /// event a commit where its clients wait for each.
    pub(crate) fn meets_its_limit(&self) -> bool {
        self.settings.iter().all(|row| row.ratio_one_by_one.unwrap_or(row.ratio) >= MIN_RATIO)
    }
}

/// A Markdown table, which reads as well in a terminal.
impl Display for IngestBench {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} rounds of {} events; events a second until the last commit, medians\n",
            self.rounds, self.events
        )?;
        writeln!(
            formatter,
            "| clients       | answered after | events/s | x batches | x one by one |    p50 ms |    p99 ms |"
        )?;
        writeln!(
            formatter,
            "| ------------: | -------------- | -------: | --------: | -----------: | --------: | --------: |"
        )?;
        for ByHand { waiting, events_per_second } in &self.references {
            let (name, batches, one_by_one) = match waiting {
                None => ("in batches".to_owned(), "1.00", ""),
                Some(connections) => (format!("by hand, {connections}"), "", "1.00"),
            };
            writeln!(
                formatter,
                "| {name:>13} |                | {events_per_second:>8.0} | {batches:>9} | {one_by_one:>12} |           |           |"
            )?;
        }
        for row in &self.settings {
            let answered = if row.setting.waits_for_commit { "the commit" } else { "the spool" };
            let one_by_one = row.ratio_one_by_one.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
            writeln!(
                formatter,
                "| {:>13} | {answered:<14} | {:>8.0} | {:>9.2} | {one_by_one:>12} | {:>9.2} | {:>9.2} |",
                row.setting.clients, row.events_per_second, row.ratio, row.p50_ms, row.p99_ms
            )?;
        }
        write!(
            formatter,
            "\nthe server shall do {MIN_RATIO} x batches, or {MIN_RATIO} x one by one where clients wait for each commit; of {} events {} were lost and {} doubled",
            self.audit.sent, self.audit.lost, self.audit.doubled
        )
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count.is_multiple_of(2) => f64::midpoint(values[count / 2 - 1], values[count / 2]),
        count => values[count / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bench whose clients send that way: one at that ratio and many at the other.
    fn bench(waits_for_commit: bool, one: f64, many: f64) -> IngestBench {
        let settings = [(1, one), (64, many)].map(|(clients, ratio)| (Setting { clients, waits_for_commit }, ratio));
        let mut collected = Collected::new(&settings.map(|(setting, _)| setting));
        collected.push_reference(None, 1000.0);
        for (setting, ratio) in settings {
            for ratio in [ratio, ratio / 10.0, ratio * 10.0] {
                let events_per_second = 1000.0 * ratio;
                let (ratio, ratio_one_by_one) =
                    if waits_for_commit { (ratio / 5.0, Some(ratio)) } else { (ratio, None) };
                collected
                    .push(setting, Measured { events_per_second, ratio, ratio_one_by_one, p50_ms: 1.0, p99_ms: 2.0 });
            }
        }
        collected.finish(3, 100, Audit::default())
    }

    #[test]
    fn counts_the_median_round_of_every_setting() {
        assert!(bench(true, 0.5, 0.6).meets_its_limit());
        assert!(!bench(true, 0.1, 0.6).meets_its_limit());
        assert!(!bench(true, 0.6, 0.4).meets_its_limit());
        assert!(bench(false, 0.5, 0.6).meets_its_limit());
        assert!(!bench(false, 0.4, 0.6).meets_its_limit());
        let text = bench(true, 0.1, 0.6).to_string();
        assert!(text.contains("|            64 | the commit     |      600 |      0.12 |         0.60 |"), "{text}");
    }
}
