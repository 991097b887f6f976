//! From the judgements of single answers to rates of both sides, and to which tools they called.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bootstrap::{Estimate, Pair, Tally, compare};
use super::metrics::{METRICS, Metric};
use super::score::Judged;

/// The judgements of one row.
#[derive(Debug, Default)]
pub(super) struct JudgedRow {
    /// What the recorded answers score.
    pub(super) recorded: Vec<Judged>,
    pub(super) base: Vec<Judged>,
    pub(super) tuned: Vec<Judged>,
}

/// How often, and from which seed, rows are drawn again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    pub(super) resamples: usize,
    pub(super) seed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub metric: Metric,
    /// In how many turns the recorded answer is one that the metric applies to.
    pub recorded_turns: usize,
    pub base: Side,
    pub tuned: Side,
    /// Tuned less base; none if either side gave nothing to measure.
    pub difference: Option<Estimate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// In how many turns the answer is one that the metric applies to.
    pub turns: usize,
    pub estimate: Option<Estimate>,
}

/// How often a tool was the first that a turn called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    pub tool: String,
    pub recorded: usize,
    pub base: ToolCounts,
    pub tuned: ToolCounts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCounts {
    pub called: usize,
    /// Where it was the recorded one.
    pub right: usize,
}

/// One for each metric, in their order.
pub(super) fn measure(rows: &[JudgedRow], draws: Draws) -> Vec<Measured> {
    let of = |metric: Metric| {
        let pairs: Vec<_> =
            rows.iter().map(|row| Pair { base: tally(&row.base, metric), tuned: tally(&row.tuned, metric) }).collect();
        let compared = compare(&pairs, draws.resamples, draws.seed);
        Measured {
            metric,
            recorded_turns: rows.iter().map(|row| tally(&row.recorded, metric).turns).sum(),
            base: Side { turns: pairs.iter().map(|pair| pair.base.turns).sum(), estimate: compared.base },
            tuned: Side { turns: pairs.iter().map(|pair| pair.tuned.turns).sum(), estimate: compared.tuned },
            difference: compared.difference,
        }
    };
    METRICS.iter().map(|facts| of(facts.metric)).collect()
}

/// By tool, those that were recorded most often first.
pub(super) fn tool_use(rows: &[JudgedRow]) -> Vec<ToolUse> {
    let mut tools: BTreeMap<&str, ToolUse> = BTreeMap::new();
    for row in rows {
        for tool in row.recorded.iter().filter_map(|judged| judged.recorded.as_deref()) {
            entry(&mut tools, tool).recorded += 1;
        }
        for (tool, judged) in called(&row.base) {
            entry(&mut tools, tool).base.count(judged);
        }
        for (tool, judged) in called(&row.tuned) {
            entry(&mut tools, tool).tuned.count(judged);
        }
    }
    let mut tools: Vec<_> = tools.into_values().collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.recorded));
    tools
}

fn tally(judged: &[Judged], metric: Metric) -> Tally {
    let mut tally = Tally::default();
    judged.iter().filter_map(|judged| judged.scores.get(metric)).for_each(|score| tally.add(score));
    tally
}

fn entry<'t, 'a>(tools: &'t mut BTreeMap<&'a str, ToolUse>, tool: &'a str) -> &'t mut ToolUse {
    let (base, tuned) = (ToolCounts::default(), ToolCounts::default());
    tools.entry(tool).or_insert_with(|| ToolUse { tool: tool.to_owned(), recorded: 0, base, tuned })
}

fn called(judged: &[Judged]) -> impl Iterator<Item = (&str, &Judged)> {
    judged.iter().filter_map(|judged| Some((judged.called.as_deref()?, judged)))
}

impl ToolCounts {
    fn count(&mut self, judged: &Judged) {
        self.called += 1;
        self.right += usize::from(judged.recorded == judged.called);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::metrics::Scores;

    fn judged(recorded: Option<&str>, called: Option<&str>, is_right: Option<bool>) -> Judged {
        let mut scores = Scores::default();
        if let Some(is_right) = is_right {
            scores.set(Metric::ToolNameAccuracy, f64::from(u8::from(is_right)));
        }
        Judged { scores, recorded: recorded.map(str::to_owned), called: called.map(str::to_owned) }
    }

    fn rows() -> Vec<JudgedRow> {
        let recorded = |tool| judged(Some(tool), Some(tool), Some(true));
        vec![
            JudgedRow {
                recorded: vec![recorded("Read"), recorded("Bash"), judged(None, None, None)],
                base: vec![
                    judged(Some("Read"), Some("Bash"), Some(false)),
                    judged(Some("Bash"), None, Some(false)),
                    judged(None, Some("Bash"), None),
                ],
                tuned: vec![
                    judged(Some("Read"), Some("Read"), Some(true)),
                    judged(Some("Bash"), Some("Bash"), Some(true)),
                    judged(None, None, None),
                ],
            },
            JudgedRow {
                recorded: vec![recorded("Bash")],
                base: vec![judged(Some("Bash"), Some("Bash"), Some(true))],
                tuned: vec![judged(Some("Bash"), Some("Fly"), Some(false))],
            },
        ]
    }

    #[test]
    fn counts_only_where_a_metric_applies() {
        let measured = measure(&rows(), Draws { resamples: 50, seed: 1 });
        assert_eq!(measured.len(), METRICS.len());
        let names = &measured[Metric::ToolNameAccuracy as usize];
        assert_eq!((names.recorded_turns, names.base.turns, names.tuned.turns), (3, 3, 3));
        assert!((names.base.estimate.unwrap().mean - 1.0 / 3.0).abs() < 1e-9);
        assert!((names.difference.unwrap().mean - 1.0 / 3.0).abs() < 1e-9);
        let loops = &measured[Metric::LoopRate as usize];
        assert_eq!((loops.base.turns, loops.base.estimate, loops.difference), (0, None, None));
    }

    #[test]
    fn counts_tools_by_who_called_them() {
        let tools = tool_use(&rows());
        let read = |tool: &ToolUse| (tool.tool.clone(), tool.recorded, tool.base, tool.tuned);
        let counts = |called, right| ToolCounts { called, right };
        assert_eq!(
            tools.iter().map(read).collect::<Vec<_>>(),
            [
                ("Bash".into(), 2, counts(3, 1), counts(1, 1)),
                ("Read".into(), 1, counts(0, 0), counts(1, 1)),
                ("Fly".into(), 0, counts(0, 0), counts(1, 0)),
            ]
        );
    }
}
