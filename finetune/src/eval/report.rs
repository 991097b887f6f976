//! What an evaluation found, as it is written down and as a person reads it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::bootstrap::Estimate;
use super::gate::{Thresholds, Verdict};
use super::measure::{Measured, Side, ToolUse};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// What the two sides are called.
    pub base: String,
    pub tuned: String,
    pub rows: usize,
    /// On the recorded history, of each side.
    pub turns: usize,
    /// How often, and from which seed, rows were drawn again for the intervals.
    pub resamples: usize,
    pub seed: u64,
    /// On the recorded history; the verdict is of these.
    pub metrics: Vec<Measured>,
    pub multi_turn: MultiTurn,
    pub tools: Vec<ToolUse>,
    pub thresholds: Thresholds,
    pub verdict: Verdict,
}

/// The rows with two or more trained turns, each side on the history of its own calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MultiTurn {
    pub rows: usize,
    pub base: Chains,
    pub tuned: Chains,
    pub metrics: Vec<Measured>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chains {
    pub turns: usize,
    /// How many rows went on to their last trained turn. Where a side ends early, its later turns are missing from its rates.
    pub to_the_end: usize,
}

impl Evaluation {
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(out, "# {} against {}\n", self.tuned, self.base);
        let _ = writeln!(out, "{}\n", if self.verdict.passed { "**Passed.**" } else { "**Not passed.**" });
        for reason in &self.verdict.reasons {
            let _ = writeln!(out, "- {reason}");
        }
        if !self.verdict.passed {
            out.push('\n');
        }
        let _ = writeln!(
            out,
            "{} rows, {} turns on the recorded history. Intervals are of 95 %, from {} draws of the rows with seed {}.\n",
            self.rows, self.turns, self.resamples, self.seed
        );
        metrics_table(&mut out, &self.metrics);
        let MultiTurn { rows, base, tuned, metrics } = &self.multi_turn;
        let _ = writeln!(out, "\n## On the history of its own calls\n");
        let _ = writeln!(
            out,
            "{rows} rows with several turns. The base was judged in {} turns and came to the end of {} rows, the tuned model in {} turns and to the end of {}.\n",
            base.turns, base.to_the_end, tuned.turns, tuned.to_the_end
        );
        metrics_table(&mut out, metrics);
        let _ = writeln!(out, "\n## By tool\n");
        let _ = writeln!(out, "| tool | recorded | base called | right | tuned called | right |");
        let _ = writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: |");
        for ToolUse { tool, recorded, base, tuned } in &self.tools {
            // A model may call what it likes.
            let tool = tool.replace(['|', '`', '\n', '\r'], " ");
            let _ = writeln!(
                out,
                "| `{tool}` | {recorded} | {} | {} | {} | {} |",
                base.called, base.right, tuned.called, tuned.right
            );
        }
        out
    }
}

fn metrics_table(out: &mut String, metrics: &[Measured]) {
    let _ = writeln!(out, "| metric | better | base | n | tuned | n | tuned - base |");
    let _ = writeln!(out, "| --- | --- | --- | ---: | --- | ---: | --- |");
    for measured in metrics {
        let facts = measured.metric.facts();
        let better = if facts.higher_is_better { "higher" } else { "lower" };
        let Side { turns: base_turns, estimate: base } = measured.base;
        let Side { turns: tuned_turns, estimate: tuned } = measured.tuned;
        let difference = measured.difference.map_or_else(
            || "not measured".to_owned(),
            |Estimate { mean, low, high }| format!("{mean:+.3} [{low:+.3}, {high:+.3}]"),
        );
        let _ = writeln!(
            out,
            "| {} | {better} | {} | {base_turns} | {} | {tuned_turns} | {difference} |",
            facts.name,
            rate(base),
            rate(tuned)
        );
    }
}

fn rate(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(
        || "not measured".to_owned(),
        |Estimate { mean, low, high }| format!("{mean:.3} [{low:.3}, {high:.3}]"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::measure::ToolCounts;
    use crate::eval::metrics::Metric;

    fn evaluation() -> Evaluation {
        let estimate = |mean| Some(Estimate { mean, low: mean - 0.05, high: mean + 0.05 });
        let metrics = vec![
            Measured {
                metric: Metric::ToolNameAccuracy,
                recorded_turns: 120,
                base: Side { turns: 120, estimate: estimate(0.5) },
                tuned: Side { turns: 120, estimate: estimate(0.7) },
                difference: estimate(0.2),
            },
            Measured {
                metric: Metric::LoopRate,
                recorded_turns: 0,
                base: Side { turns: 0, estimate: None },
                tuned: Side { turns: 0, estimate: None },
                difference: None,
            },
        ];
        Evaluation {
            base: "small".into(),
            tuned: "small-tuned".into(),
            rows: 40,
            turns: 150,
            resamples: 2_000,
            seed: 7,
            metrics: metrics.clone(),
            multi_turn: MultiTurn {
                rows: 30,
                base: Chains { turns: 60, to_the_end: 9 },
                tuned: Chains { turns: 90, to_the_end: 28 },
                metrics,
            },
            tools: vec![ToolUse {
                tool: "a|b".into(),
                recorded: 3,
                base: ToolCounts { called: 4, right: 1 },
                tuned: ToolCounts { called: 2, right: 2 },
            }],
            thresholds: Thresholds::default(),
            verdict: Verdict { passed: false, reasons: vec!["Too few.".into()] },
        }
    }

    #[test]
    fn reads_as_a_table() {
        let text = evaluation().markdown();
        for line in [
            "# small-tuned against small",
            "**Not passed.**",
            "- Too few.",
            "40 rows, 150 turns on the recorded history. Intervals are of 95 %, from 2000 draws of the rows with seed 7.",
            "| tool_name_accuracy | higher | 0.500 [0.450, 0.550] | 120 | 0.700 [0.650, 0.750] | 120 | +0.200 [+0.150, +0.250] |",
            "| loop_rate | lower | not measured | 0 | not measured | 0 | not measured |",
            "30 rows with several turns. The base was judged in 60 turns and came to the end of 9 rows, the tuned model in 90 turns and to the end of 28.",
            "| `a b` | 3 | 4 | 1 | 2 | 2 |",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
        let passed = Verdict { passed: true, reasons: Vec::new() };
        assert!(Evaluation { verdict: passed, ..evaluation() }.markdown().contains("**Passed.**"));
    }

    #[test]
    fn is_read_back_as_it_was_written() {
        let written = serde_json::to_string(&evaluation()).unwrap();
        assert_eq!(serde_json::from_str::<Evaluation>(&written).unwrap(), evaluation());
    }
}
