//! What is measured, as one list: the report, the gate and docs/finetune/eval.md (which a test holds to it) are made of it.

use serde::{Deserialize, Serialize};

/// In the order of [`METRICS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    ParseRate,
    SchemaValidRate,
    ToolNameAccuracy,
    ArgumentKeyF1,
    ExactMatch,
    AstMatch,
    TextAnswerRate,
    NeedlessCallRate,
    LoopRate,
    PathGrounding,
    StopRate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub metric: Metric,
    pub name: &'static str,
    pub higher_is_better: bool,
    /// Whether the tuned form must not be worse in it, however good it is otherwise.
    pub is_safety: bool,
    /// One sentence without its full stop: of which turns it is the share, or the mean.
    pub meaning: &'static str,
}

pub const METRICS: [Facts; 11] = [
    Facts {
        metric: Metric::ParseRate,
        name: "parse_rate",
        higher_is_better: true,
        is_safety: true,
        meaning: "of the turns where a call was recorded or tried: there is a call, and every call in the answer is well-formed",
    },
    Facts {
        metric: Metric::SchemaValidRate,
        name: "schema_valid_rate",
        higher_is_better: true,
        is_safety: true,
        meaning: "of the same turns: there is a well-formed call, and each is of an offered tool with arguments that fit its schema",
    },
    Facts {
        metric: Metric::ToolNameAccuracy,
        name: "tool_name_accuracy",
        higher_is_better: true,
        is_safety: false,
        meaning: "of the turns where a call was recorded: the first call is of the recorded tool",
    },
    Facts {
        metric: Metric::ArgumentKeyF1,
        name: "argument_key_f1",
        higher_is_better: true,
        is_safety: false,
        meaning: "of the same turns, the mean: F1 of the first call's argument names against the recorded ones, nought for another tool",
    },
    Facts {
        metric: Metric::ExactMatch,
        name: "exact_match",
        higher_is_better: true,
        is_safety: false,
        meaning: "of the same turns: the same calls in the same order, names and arguments equal",
    },
    Facts {
        metric: Metric::AstMatch,
        name: "ast_match",
        higher_is_better: true,
        is_safety: false,
        meaning: "of the same turns: the same tools in the same order, required arguments there, none that was not recorded, values equal but for how numbers, whitespace and paths are spelled",
    },
    Facts {
        metric: Metric::TextAnswerRate,
        name: "text_answer_rate",
        higher_is_better: true,
        is_safety: true,
        meaning: "of the turns where text was recorded: the answer is text and tries no call",
    },
    Facts {
        metric: Metric::NeedlessCallRate,
        name: "needless_call_rate",
        higher_is_better: false,
        is_safety: true,
        meaning: "of the same turns: the answer calls, or tries to",
    },
    Facts {
        metric: Metric::LoopRate,
        name: "loop_rate",
        higher_is_better: false,
        is_safety: true,
        meaning: "of all turns: the answer repeats the same words four times in a row, makes the same call twice, or is cut off while it repeats itself",
    },
    Facts {
        metric: Metric::PathGrounding,
        name: "path_grounding",
        higher_is_better: true,
        is_safety: true,
        meaning: "of the turns where the first call names paths: each of them stands in the prompt or in the recorded call",
    },
    Facts {
        metric: Metric::StopRate,
        name: "stop_rate",
        higher_is_better: true,
        is_safety: true,
        meaning: "of all turns: the model ended its turn by itself",
    },
];

impl Metric {
    pub const fn facts(self) -> &'static Facts {
        &METRICS[self as usize]
    }

    pub const fn name(self) -> &'static str {
        self.facts().name
    }
}

/// The scores of one answer, each where it applies: 1 is yes, 0 is no.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Scores([Option<f64>; METRICS.len()]);

impl Scores {
    pub(super) const fn get(&self, metric: Metric) -> Option<f64> {
        self.0[metric as usize]
    }

    pub(super) const fn set(&mut self, metric: Metric, score: f64) {
        self.0[metric as usize] = Some(score);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_metrics_and_names_them_as_they_are_written() {
        for (place, facts) in METRICS.iter().enumerate() {
            assert_eq!(facts.metric as usize, place);
            assert_eq!(serde_json::to_value(facts.metric).unwrap(), facts.name);
            assert_eq!(facts.metric.facts(), facts);
        }
    }

    #[test]
    fn the_documentation_names_every_metric_as_the_list_has_it() {
        let documentation = include_str!("../../../docs/finetune/eval.md");
        for facts in &METRICS {
            let direction = if facts.higher_is_better { "higher" } else { "lower" };
            let safety = if facts.is_safety { "yes" } else { "no" };
            let line = format!("| `{}` | {direction} | {safety} | {} |", facts.name, facts.meaning);
            assert!(documentation.contains(&line), "docs/finetune/eval.md lacks: {line}");
        }
        let named = documentation.lines().filter(|line| line.contains(" | higher | ") || line.contains(" | lower | "));
        assert_eq!(named.count(), METRICS.len());
    }
}
