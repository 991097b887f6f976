//! The whole comparison: every row of the test split, both sides, one evaluation.

use anyhow::Result;

use super::Engines;
use super::gate::{Evidence, Thresholds, judge};
use super::measure::{Draws, JudgedRow, measure, tool_use};
use super::replay::Task;
use super::report::{Chains, Evaluation, MultiTurn};
use crate::dataset::render::Base;
use crate::dataset::row::Row;

pub struct Options<'a> {
    /// What the two sides are called in the report.
    pub base_name: String,
    pub tuned_name: String,
    /// The longest answer.
    pub max_tokens: usize,
    /// How often rows are drawn again for an interval; 2000 is usual for one of 95 %.
    pub resamples: usize,
    pub seed: u64,
    pub thresholds: Thresholds,
    /// Told after each row of each side: how many are done, and of how many.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

/// `rows` are those of the test split, `base` is whose template renders them, for both sides.
pub fn evaluate(rows: &[Row], base: &Base, engines: Engines<'_>, options: Options<'_>) -> Result<Evaluation> {
    let Engines { base: base_engine, tuned: tuned_engine } = engines;
    let (template, total) = (&base.template, 2 * rows.len());
    let (mut single, mut own) = (Vec::with_capacity(rows.len()), Vec::new());
    let (mut base_chains, mut tuned_chains) = (Chains::default(), Chains::default());
    for (place, row) in rows.iter().enumerate() {
        let task = Task::of(row, template)?;
        let base = task.replay(base_engine, template, options.max_tokens)?;
        (options.progress)(2 * place + 1, total);
        let tuned = task.replay(tuned_engine, template, options.max_tokens)?;
        (options.progress)(2 * place + 2, total);
        let recorded = task.recorded();
        if recorded.len() > 1 {
            base_chains.add(base.own.len(), recorded.len());
            tuned_chains.add(tuned.own.len(), recorded.len());
            own.push(JudgedRow { recorded: recorded.clone(), base: base.own, tuned: tuned.own });
        }
        single.push(JudgedRow { recorded, base: base.single, tuned: tuned.single });
    }
    // Rows without a trained turn would be drawn and say nothing.
    single.retain(|row| !row.recorded.is_empty());

    let draws = Draws { resamples: options.resamples, seed: options.seed };
    let (metrics, tools) = (measure(&single, draws), tool_use(&single));
    let evidence = Evidence { rows: single.len(), metrics: &metrics, tools: &tools };
    let verdict = judge(evidence, &options.thresholds);
    Ok(Evaluation {
        base: options.base_name,
        tuned: options.tuned_name,
        rows: single.len(),
        turns: single.iter().map(|row| row.recorded.len()).sum(),
        resamples: options.resamples,
        seed: options.seed,
        multi_turn: MultiTurn {
            rows: own.len(),
            base: base_chains,
            tuned: tuned_chains,
            metrics: measure(&own, draws),
        },
        metrics,
        tools,
        thresholds: options.thresholds,
        verdict,
    })
}

impl Chains {
    fn add(&mut self, judged: usize, all: usize) {
        self.turns += judged;
        self.to_the_end += usize::from(judged == all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::fake::{FakeEngine, base, recorded, row};
    use crate::eval::metrics::Metric;

    const ROWS: usize = 6;

    /// A base that talks where it should call, and a tuned form that answers as was recorded.
    fn check(thresholds: Thresholds) -> (Evaluation, Vec<(usize, usize)>) {
        let rows: Vec<_> = (0..ROWS).map(|number| row(&format!("row {number}"))).collect();
        let talks = ["I would read it.", "And the other.", "Both are read."];
        let mut base_engine = FakeEngine::scripted(std::iter::repeat_n(talks, ROWS).flatten());
        let mut tuned_engine = FakeEngine::scripted(std::iter::repeat_n(recorded(), ROWS).flatten());
        let mut told = Vec::new();
        let engines = Engines { base: &mut base_engine, tuned: &mut tuned_engine };
        let options = Options {
            base_name: "base".into(),
            tuned_name: "tuned".into(),
            max_tokens: 64,
            resamples: 200,
            seed: 7,
            thresholds,
            progress: &mut |done, total| told.push((done, total)),
        };
        let evaluation = evaluate(&rows, &base(), engines, options).unwrap();
        assert_eq!((base_engine.left(), tuned_engine.left()), (0, 0));
        (evaluation, told)
    }

    #[test]
    fn compares_two_sides_row_by_row() {
        let (evaluation, told) = check(Thresholds { min_rows: ROWS, ..Thresholds::default() });
        assert_eq!((evaluation.rows, evaluation.turns), (ROWS, 3 * ROWS));
        let names = &evaluation.metrics[Metric::ToolNameAccuracy as usize];
        assert_eq!((names.base.turns, names.tuned.turns), (2 * ROWS, 2 * ROWS));
        assert!((names.difference.unwrap().mean - 1.0).abs() < 1e-9);
        assert_eq!(evaluation.verdict.reasons, Vec::<String>::new());
        assert_eq!(evaluation.tools.len(), 1);
        assert_eq!(told.first(), Some(&(1, 2 * ROWS)));
        assert_eq!(told.last(), Some(&(2 * ROWS, 2 * ROWS)));
    }

    #[test]
    fn says_how_far_each_side_came_with_its_own_calls() {
        let (Evaluation { multi_turn, .. }, _) = check(Thresholds::default());
        assert_eq!(multi_turn.rows, ROWS);
        assert_eq!(multi_turn.base, Chains { turns: ROWS, to_the_end: 0 });
        assert_eq!(multi_turn.tuned, Chains { turns: 3 * ROWS, to_the_end: ROWS });
    }

    #[test]
    fn gives_the_same_numbers_again_and_no_verdict_on_too_few_rows() {
        let (evaluation, _) = check(Thresholds::default());
        assert_eq!(evaluation, check(Thresholds::default()).0);
        assert_eq!(evaluation.verdict.reasons, ["6 rows were judged and 100 are needed: 94 are missing."]);
    }

    #[test]
    fn leaves_out_rows_that_ask_for_nothing() {
        let mut rows = [row("one")];
        rows[0].trained.clear();
        let (mut one, mut other) = (FakeEngine::default(), FakeEngine::default());
        let options = Options {
            base_name: String::new(),
            tuned_name: String::new(),
            max_tokens: 64,
            resamples: 10,
            seed: 7,
            thresholds: Thresholds::default(),
            progress: &mut |_, _| {},
        };
        let engines = Engines { base: &mut one, tuned: &mut other };
        let evaluation = evaluate(&rows, &base(), engines, options).unwrap();
        assert_eq!((evaluation.rows, evaluation.turns, evaluation.multi_turn.rows), (0, 0, 0));
        assert!(!evaluation.verdict.passed);
    }
}
