//! Whether a tuned model may take the place of its base. It must be better in what it was trained for, no worse in anything that would
//! hurt whoever uses it, and measured well enough to tell. What could not be measured has not passed.

use serde::{Deserialize, Serialize};

use super::measure::{Measured, ToolUse};
use super::metrics::{METRICS, Metric};

/// Rates are shares between nought and one. The reasons stand in docs/finetune/eval.md too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// 100: with half as many, one row that fell out otherwise would be all of `allowed_loss`, and a rate near one half would be known
    /// to no better than 0.14 either way.
    pub min_rows: usize,
    /// 0.02: over a hundred rows, a rate of 0.98 is known to 0.03 either way (1.96 times its standard error), so that a smaller
    /// allowance would fail models by chance. A loss that is smaller and still beyond chance fails too.
    pub allowed_loss: f64,
    /// 0.98: in a task of ten calls, that is still one in five that breaks off.
    pub min_parse_rate: f64,
    /// 0.99: an answer that never ends takes the whole context and all the patience that there is.
    pub min_stop_rate: f64,
    /// 1.5: a model that has collapsed calls one tool whatever it is asked, and is right as often as that tool is.
    pub max_tool_share_ratio: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { min_rows: 100, allowed_loss: 0.02, min_parse_rate: 0.98, min_stop_rate: 0.99, max_tool_share_ratio: 1.5 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub passed: bool,
    /// One sentence for each thing that failed.
    pub reasons: Vec<String>,
}

/// What a verdict rests on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How many rows were judged.
    pub rows: usize,
    /// On the recorded history.
    pub metrics: &'a [Measured],
    pub tools: &'a [ToolUse],
}

pub fn judge(evidence: Evidence<'_>, thresholds: &Thresholds) -> Verdict {
    let mut reasons = Vec::new();
    if evidence.rows < thresholds.min_rows {
        // On so few, every other reason would be chance.
        let missing = thresholds.min_rows - evidence.rows;
        reasons.push(format!(
            "{} rows were judged and {} are needed: {missing} are missing.",
            evidence.rows, thresholds.min_rows
        ));
    } else {
        let safety = METRICS.iter().filter(|facts| facts.is_safety).map(|facts| facts.metric);
        reasons.extend(safety.filter_map(|metric| loss(evidence, metric, thresholds.allowed_loss)));
        reasons.extend(floor(evidence, Metric::ParseRate, thresholds.min_parse_rate));
        reasons.extend(floor(evidence, Metric::StopRate, thresholds.min_stop_rate));
        reasons.extend(collapse(evidence.tools, thresholds.max_tool_share_ratio));
        reasons.extend(no_gain(evidence));
    }
    Verdict { passed: reasons.is_empty(), reasons }
}

impl Evidence<'_> {
    fn of(&self, metric: Metric) -> Option<&Measured> {
        self.metrics.iter().find(|measured| measured.metric == metric)
    }
}

/// Why the tuned form is worse in a metric than it may be.
fn loss(evidence: Evidence<'_>, metric: Metric, allowed: f64) -> Option<String> {
    let name = metric.name();
    let measured = evidence.of(metric);
    let recorded = measured.map_or(0, |measured| measured.recorded_turns);
    let Some((measured, tuned)) = measured.and_then(|measured| Some((measured, measured.tuned.estimate?))) else {
        // Tools that take no path leave nothing to ground.
        let is_needed = recorded > 0 || metric != Metric::PathGrounding;
        return is_needed.then(|| {
            format!("{name} could not be measured: it applies to {recorded} recorded answers and to none of the tuned model's.")
        });
    };
    let is_higher_better = metric.facts().higher_is_better;
    let Some(difference) = measured.difference else {
        // A base that gave nothing to measure could have been perfect.
        let lost = if is_higher_better { 1.0 - tuned.mean } else { tuned.mean };
        return (lost > allowed).then(|| {
            format!(
                "{name} is {:.3} in the tuned model, {lost:.3} from faultless with {allowed:.3} allowed; the base gave nothing to compare it with.",
                tuned.mean
            )
        });
    };
    let (lost, surely_lost) =
        if is_higher_better { (-difference.mean, -difference.high) } else { (difference.mean, difference.low) };
    let base = tuned.mean - difference.mean;
    if lost > allowed {
        Some(format!(
            "{name} went from {base:.3} to {:.3}, which is worse by {lost:.3} with {allowed:.3} allowed.",
            tuned.mean
        ))
    } else if surely_lost > 0.0 {
        Some(format!(
            "{name} went from {base:.3} to {:.3}, which is worse by {lost:.3} and beyond chance (the interval of the difference is {:.3} to {:.3}).",
            tuned.mean, difference.low, difference.high
        ))
    } else {
        None
    }
}

/// Why a rate of the tuned form is too low, whatever the base's is. That it was not measured is [`loss`]'s to say.
fn floor(evidence: Evidence<'_>, metric: Metric, least: f64) -> Option<String> {
    let mean = evidence.of(metric)?.tuned.estimate?.mean;
    (mean < least).then(|| {
        format!("{} is {mean:.3} in the tuned model, {:.3} below the {least:.3} needed.", metric.name(), least - mean)
    })
}

/// Why the tools that the tuned form calls are not those that are called for.
fn collapse(tools: &[ToolUse], most: f64) -> Option<String> {
    let recorded: usize = tools.iter().map(|tool| tool.recorded).sum();
    let called: usize = tools.iter().map(|tool| tool.tuned.called).sum();
    let commonest = tools.iter().max_by_key(|tool| tool.tuned.called)?;
    if recorded == 0 || called == 0 {
        return Some(format!(
            "the share of the commonest tool could not be measured: {recorded} calls were recorded, and the tuned model made {called}."
        ));
    }
    let share = commonest.tuned.called as f64 / called as f64;
    let due = commonest.recorded as f64 / recorded as f64;
    (share > most * due).then(|| {
        format!(
            "the tuned model's commonest tool `{}` is {share:.3} of its calls and {due:.3} of the recorded ones: at most {:.3} is allowed.",
            commonest.tool,
            most * due
        )
    })
}

/// Why it is not sure that the tuned form picks the right tool more often.
fn no_gain(evidence: Evidence<'_>) -> Option<String> {
    let name = Metric::ToolNameAccuracy.name();
    let Some(difference) = evidence.of(Metric::ToolNameAccuracy).and_then(|measured| measured.difference) else {
        return Some(format!("{name} could not be measured: no call was recorded in the test split."));
    };
    (difference.low <= 0.0).then(|| {
        format!(
            "{name} is not better beyond chance: the difference is {:+.3}, and its interval of {:+.3} to {:+.3} must lie above nought.",
            difference.mean, difference.low, difference.high
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::bootstrap::Estimate;
    use crate::eval::measure::{Side, ToolCounts};
    use crate::eval::metrics::Facts;

    /// Both sides faultless, but that the tuned one knows its tools better.
    fn metrics() -> Vec<Measured> {
        let measured = |metric: Metric| {
            let best = f64::from(u8::from(metric.facts().higher_is_better));
            let mut measured = Measured {
                metric,
                recorded_turns: 200,
                base: side(best),
                tuned: side(best),
                difference: Some(Estimate { mean: 0.0, low: 0.0, high: 0.0 }),
            };
            if metric == Metric::ToolNameAccuracy {
                set(&mut measured, 0.6, 0.8, (0.1, 0.3));
            }
            measured
        };
        METRICS.iter().map(|facts| measured(facts.metric)).collect()
    }

    fn side(mean: f64) -> Side {
        Side { turns: 200, estimate: Some(Estimate { mean, low: mean, high: mean }) }
    }

    fn set(measured: &mut Measured, base: f64, tuned: f64, (low, high): (f64, f64)) {
        (measured.base, measured.tuned) = (side(base), side(tuned));
        measured.difference = Some(Estimate { mean: tuned - base, low, high });
    }

    fn tools(tuned: [usize; 2]) -> Vec<ToolUse> {
        let tool = |tool: &str, recorded, called| {
            let tuned = ToolCounts { called, right: 0 };
            ToolUse { tool: tool.into(), recorded, base: ToolCounts::default(), tuned }
        };
        vec![tool("Bash", 40, tuned[0]), tool("Read", 60, tuned[1])]
    }

    fn reasons(rows: usize, metrics: &[Measured], tools: &[ToolUse]) -> Vec<String> {
        let verdict = judge(Evidence { rows, metrics, tools }, &Thresholds::default());
        assert_eq!(verdict.passed, verdict.reasons.is_empty());
        verdict.reasons
    }

    /// What is said if one metric is otherwise.
    fn check(metric: Metric, change: impl FnOnce(&mut Measured)) -> Vec<String> {
        let mut metrics = metrics();
        change(&mut metrics[metric as usize]);
        reasons(100, &metrics, &tools([40, 60]))
    }

    #[test]
    fn passes_what_is_better_and_safe() {
        assert_eq!(reasons(100, &metrics(), &tools([40, 60])), Vec::<String>::new());
    }

    #[test]
    fn refuses_to_judge_by_too_few_rows() {
        let mut worse = metrics();
        set(&mut worse[Metric::StopRate as usize], 1.0, 0.1, (-1.0, -0.8));
        assert_eq!(reasons(70, &worse, &[]), ["70 rows were judged and 100 are needed: 30 are missing."]);
    }

    /// What is said if a metric is so much worse; the interval of the loss goes so far below it and above it.
    fn check_loss(facts: &Facts, loss: f64, width: f64) -> Vec<String> {
        check(facts.metric, |measured| {
            if facts.higher_is_better {
                set(measured, 1.0, 1.0 - loss, (-loss - width, -loss + width));
            } else {
                set(measured, 0.0, loss, (loss - width, loss + width));
            }
        })
    }

    #[test]
    fn fails_what_is_worse_in_any_safety_metric() {
        for facts in METRICS.iter().filter(|facts| facts.is_safety) {
            let said = |reasons: Vec<String>, what: &str| {
                let begins = format!("{} went from ", facts.name);
                assert!(
                    reasons.iter().any(|reason| reason.starts_with(&begins) && reason.ends_with(what)),
                    "{reasons:?}"
                );
            };
            said(check_loss(facts, 0.03, 0.05), "which is worse by 0.030 with 0.020 allowed.");
            let interval = if facts.higher_is_better { "-0.015 to -0.005" } else { "0.005 to 0.015" };
            said(
                check_loss(facts, 0.01, 0.005),
                &format!("beyond chance (the interval of the difference is {interval})."),
            );
            assert!(check_loss(facts, 0.01, 0.02).is_empty(), "a little worse, by chance: {}", facts.name);
        }
    }

    #[test]
    fn lets_pass_what_is_better_in_a_safety_metric_and_what_is_worse_in_another() {
        for facts in METRICS.iter().filter(|facts| facts.is_safety) {
            let (base, interval) = if facts.higher_is_better { (0.5, (0.3, 0.6)) } else { (0.5, (-0.6, -0.3)) };
            let tuned = f64::from(u8::from(facts.higher_is_better));
            assert!(check(facts.metric, |measured| set(measured, base, tuned, interval)).is_empty(), "{}", facts.name);
        }
        assert!(check(Metric::ExactMatch, |measured| set(measured, 0.5, 0.1, (-0.5, -0.3))).is_empty());
    }

    #[test]
    fn holds_what_the_base_gave_no_measure_of_against_faultless() {
        let unmeasured = |tuned: f64| {
            check(Metric::PathGrounding, |measured| {
                measured.base = Side { turns: 0, estimate: None };
                measured.tuned = side(tuned);
                measured.difference = None;
            })
        };
        assert!(unmeasured(0.99).is_empty());
        let said = "path_grounding is 0.900 in the tuned model, 0.100 from faultless with 0.020 allowed; the base gave nothing to compare it with.";
        assert_eq!(unmeasured(0.9), [said]);
    }

    #[test]
    fn fails_what_could_not_be_measured() {
        let unmeasured = |measured: &mut Measured, recorded_turns: usize| {
            measured.recorded_turns = recorded_turns;
            measured.tuned = Side { turns: 0, estimate: None };
            measured.difference = None;
        };
        for facts in METRICS.iter().filter(|facts| facts.is_safety) {
            let one = check(facts.metric, |measured| unmeasured(measured, 5));
            let said = format!(
                "{} could not be measured: it applies to 5 recorded answers and to none of the tuned model's.",
                facts.name
            );
            assert_eq!(one, [said]);
        }
        let text = check(Metric::TextAnswerRate, |measured| unmeasured(measured, 0));
        assert!(text[0].contains("applies to 0 recorded answers"), "{text:?}");
        assert!(check(Metric::PathGrounding, |measured| unmeasured(measured, 0)).is_empty(), "no tool takes paths");
        assert_eq!(reasons_without(Metric::StopRate).len(), 1, "a metric that is not there at all");
        let names = check(Metric::ToolNameAccuracy, |measured| unmeasured(measured, 0));
        assert_eq!(names, ["tool_name_accuracy could not be measured: no call was recorded in the test split."]);
        let no_call = reasons(100, &metrics(), &tools([0, 0]));
        assert!(no_call[0].ends_with("100 calls were recorded, and the tuned model made 0."), "{no_call:?}");
    }

    fn reasons_without(metric: Metric) -> Vec<String> {
        let mut metrics = metrics();
        metrics.retain(|measured| measured.metric != metric);
        reasons(100, &metrics, &tools([40, 60]))
    }

    #[test]
    fn asks_for_calls_that_parse_and_answers_that_end_whatever_the_base_does() {
        for (metric, mean, said) in [
            (Metric::ParseRate, 0.97, "parse_rate is 0.970 in the tuned model, 0.010 below the 0.980 needed."),
            (Metric::StopRate, 0.985, "stop_rate is 0.985 in the tuned model, 0.005 below the 0.990 needed."),
        ] {
            assert_eq!(check(metric, |measured| set(measured, 0.5, mean, (0.3, 0.6))), [said]);
        }
        assert!(check(Metric::ParseRate, |measured| set(measured, 0.5, 0.98, (0.3, 0.6))).is_empty());
    }

    #[test]
    fn fails_a_model_that_calls_one_tool_whatever_it_is_asked() {
        assert_eq!(
            reasons(100, &metrics(), &tools([70, 30])),
            [
                "the tuned model's commonest tool `Bash` is 0.700 of its calls and 0.400 of the recorded ones: at most 0.600 is allowed."
            ]
        );
        assert!(reasons(100, &metrics(), &tools([60, 40])).is_empty());
    }

    #[test]
    fn asks_for_a_gain_that_is_no_chance() {
        let reasons = check(Metric::ToolNameAccuracy, |measured| set(measured, 0.7, 0.75, (0.0, 0.1)));
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].contains("the difference is +0.050, and its interval of +0.000 to +0.100"), "{reasons:?}");
    }

    #[test]
    fn the_documentation_names_every_threshold_with_its_default() {
        let documentation = include_str!("../../../docs/finetune/eval.md");
        for (name, value) in serde_json::to_value(Thresholds::default()).unwrap().as_object().unwrap() {
            assert!(
                documentation.contains(&format!("| `{name}` | {value} | ")),
                "docs/finetune/eval.md lacks {name} = {value}"
            );
        }
    }
}
