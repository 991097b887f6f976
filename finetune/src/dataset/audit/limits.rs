//! The thresholds. Their reasons are in docs/finetune/data-quality-gates.md, which a test holds to this list.

use serde::{Deserialize, Serialize};

use super::names;

/// Shares are of all rows, but for tools (of trained calls) and path prefixes (of a project's absolute paths).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub path_prefix_share: f64,
    pub path_contradicts_prompt: f64,
    pub foreign_home: f64,
    pub control_tokens: f64,
    pub rows_without_trained_token: f64,
    pub empty_arguments: f64,
    pub invalid_arguments: f64,
    pub mutation_first: f64,
    pub monologue: f64,
    pub invented_references: f64,
    pub repetition: f64,
    pub multi_turn_share: f64,
    pub largest_tool_share: f64,
    pub longer_than_the_longest: f64,
    pub secrets: f64,
    pub canaries: f64,
    pub leaks_between_splits: f64,
    pub answered_share: f64,
    pub text_share_least: f64,
    pub text_share_most: f64,
    pub rows_lost_to_the_template: f64,
    pub smallest_split_share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            path_prefix_share: 0.40,
            path_contradicts_prompt: 0.02,
            foreign_home: 0.0,
            control_tokens: 0.0,
            rows_without_trained_token: 0.0,
            empty_arguments: 0.0,
            invalid_arguments: 0.0,
            mutation_first: 0.25,
            monologue: 0.02,
            invented_references: 0.0,
            repetition: 0.0,
            multi_turn_share: 0.20,
            largest_tool_share: 0.35,
            longer_than_the_longest: 0.0,
            secrets: 0.0,
            canaries: 0.0,
            leaks_between_splits: 0.0,
            answered_share: 0.30,
            text_share_least: 0.05,
            text_share_most: 0.15,
            rows_lost_to_the_template: 0.01,
            smallest_split_share: 0.01,
        }
    }
}

/// Where a measured share must lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Limits {
    /// What is counted row by row, and the share of rows that may have it.
    pub(super) fn counted(&self) -> Vec<(&'static str, f64)> {
        vec![
            (names::PATH_CONTRADICTS, self.path_contradicts_prompt),
            (names::FOREIGN_HOME, self.foreign_home),
            (names::CONTROL_TOKENS, self.control_tokens),
            (names::UNTRAINED, self.rows_without_trained_token),
            (names::EMPTY_ARGUMENTS, self.empty_arguments),
            (names::INVALID_ARGUMENTS, self.invalid_arguments),
            (names::FIRST_MUTATION, self.mutation_first),
            (names::MONOLOGUE, self.monologue),
            (names::INVENTED, self.invented_references),
            (names::REPETITION, self.repetition),
            (names::TOO_LONG, self.longer_than_the_longest),
            (names::SECRETS, self.secrets),
            (names::CANARIES, self.canaries),
            (names::LEAKS, self.leaks_between_splits),
        ]
    }

    /// What is measured over all rows.
    pub(super) fn measured(&self) -> Vec<(&'static str, Bound)> {
        vec![
            (names::PATH_PREFIX, Bound::AtMost(self.path_prefix_share)),
            (names::MULTI_TURN, Bound::AtLeast(self.multi_turn_share)),
            (names::TOOL_SHARE, Bound::AtMost(self.largest_tool_share)),
            (names::ANSWERED, Bound::AtLeast(self.answered_share)),
            (names::TEXT_LEAST, Bound::AtLeast(self.text_share_least)),
            (names::TEXT_MOST, Bound::AtMost(self.text_share_most)),
            (names::TEMPLATE, Bound::AtMost(self.rows_lost_to_the_template)),
            (names::SMALLEST_SPLIT, Bound::AtLeast(self.smallest_split_share)),
        ]
    }
}
