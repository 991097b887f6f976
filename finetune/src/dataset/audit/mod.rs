//! The gate between a dataset and a training run: each check has a threshold, and each threshold a reason
//! (docs/finetune/data-quality-gates.md). The audit looks at the rows as they are written, whatever made them.

mod findings;
mod limits;
mod paths;
mod report;

use std::collections::{BTreeMap, HashMap};

use regex::Regex;
use serde_json::Value;

pub(crate) use paths::{absolute_paths, is_on_every_machine};

pub use findings::{Audit, Check, Histogram};
pub use limits::Limits;

use self::findings::Tally;
use self::paths::{PathUse, contradicts_prompt};
use super::clean::{ControlTokens, for_each_string, foreign_home, is_grounded, is_monologue, repeats_itself};
use super::duplicates::{Kept, shingles};
use super::render::Sample;
use super::row::{Call, Ending, Message, Row, draw, turn_of};
use super::schema::Tools;
use super::split::Split;

/// Sees every row that is written, and says in the end whether they may be trained on.
#[derive(Debug)]
pub struct Auditor<'a> {
    limits: Limits,
    max_tokens: usize,
    control: &'a ControlTokens,
    tools: &'a Tools,
    /// Whose computer it was, as far as the folders of the sessions tell.
    owners: Option<Regex>,
    tally: Tally,
    paths: BTreeMap<String, PathUse>,
    sessions: HashMap<String, Split>,
    kept: Kept,
    kept_splits: Vec<(Split, String)>,
    pairs: HashMap<u64, Split>,
}

/// The checks, as the report and the limits name them.
mod names {
    pub(super) const PATH_PREFIX: &str = "path_prefix_share";
    pub(super) const PATH_CONTRADICTS: &str = "path_contradicts_prompt";
    pub(super) const FOREIGN_HOME: &str = "foreign_home";
    pub(super) const CONTROL_TOKENS: &str = "control_tokens";
    pub(super) const UNTRAINED: &str = "rows_without_trained_token";
    pub(super) const EMPTY_ARGUMENTS: &str = "empty_arguments";
    pub(super) const INVALID_ARGUMENTS: &str = "invalid_arguments";
    pub(super) const FIRST_MUTATION: &str = "mutation_first";
    pub(super) const MONOLOGUE: &str = "monologue";
    pub(super) const INVENTED: &str = "invented_references";
    pub(super) const REPETITION: &str = "repetition";
    pub(super) const MULTI_TURN: &str = "multi_turn_share";
    pub(super) const TOOL_SHARE: &str = "largest_tool_share";
    pub(super) const TOO_LONG: &str = "longer_than_the_longest";
    pub(super) const SECRETS: &str = "secrets";
    pub(super) const CANARIES: &str = "canaries";
    pub(super) const LEAKS: &str = "leaks_between_splits";
    pub(super) const ANSWERED: &str = "answered_share";
    pub(super) const TEXT_LEAST: &str = "text_share_least";
    pub(super) const TEXT_MOST: &str = "text_share_most";
    pub(super) const TEMPLATE: &str = "rows_lost_to_the_template";
    pub(super) const SMALLEST_SPLIT: &str = "smallest_split_share";
}

impl<'a> Auditor<'a> {
    /// `owners` are names that must be nowhere.
    pub fn new(
        limits: Limits,
        max_tokens: usize,
        control: &'a ControlTokens,
        tools: &'a Tools,
        owners: Option<Regex>,
    ) -> Self {
        Self {
            limits,
            max_tokens,
            control,
            tools,
            owners,
            tally: Tally::default(),
            paths: BTreeMap::new(),
            sessions: HashMap::new(),
            kept: Kept::default(),
            kept_splits: Vec::new(),
            pairs: HashMap::new(),
        }
    }

    pub fn see(&mut self, row: &Row, split: Split, samples: &[Sample]) {
        self.count(row, split, samples);
        self.calls(row);
        self.words(row);
        self.texts(row, samples);
        self.leaks(row, split);
    }

    fn count(&mut self, row: &Row, split: Split, samples: &[Sample]) {
        let tally = &mut self.tally;
        tally.rows += 1;
        *tally.splits.entry(split).or_default() += 1;
        *tally.endings.entry(row.ending).or_default() += 1;
        tally.projects.add(&row.source.project);
        tally.agents.add(&row.source.agent);
        tally.licences.add(row.source.licence.as_str());
        tally.source_models.add(row.source.source_model.as_deref().unwrap_or("unknown"));
        for call in row.trained_calls() {
            tally.tools.add(&call.function.name);
        }
        if row.messages.iter().filter(|message| message.is_assistant()).count() > 1 {
            tally.multi_turn += 1;
        }
        for sample in samples {
            tally.lengths.push(sample.ids.len() as u32);
            tally.trained_tokens += sample.carries_loss.iter().filter(|carries| **carries).count() as u64;
            if sample.ids.len() > self.max_tokens {
                tally.find(names::TOO_LONG, &row.id);
            }
            if !sample.carries_loss.contains(&true) {
                tally.find(names::UNTRAINED, &row.id);
            }
        }
        if samples.is_empty() {
            tally.find(names::UNTRAINED, &row.id);
        }
    }

    fn calls(&mut self, row: &Row) {
        let used = self.paths.entry(row.source.project.clone()).or_default();
        for call in row.trained_calls() {
            let Call { function, .. } = call;
            function.arguments.values().for_each(|value| for_each_string(value, &mut |text| used.add(text)));
            let written = Value::Object(function.arguments.clone()).to_string();
            if self.control.is_in(&written) {
                self.tally.find(names::CONTROL_TOKENS, &row.id);
            }
            if !self.tools.accepts(&function.name, &function.arguments) {
                let name =
                    if function.arguments.is_empty() { names::EMPTY_ARGUMENTS } else { names::INVALID_ARGUMENTS };
                self.tally.find(name, &row.id);
            }
        }
        if contradicts_prompt(row) {
            self.tally.find(names::PATH_CONTRADICTS, &row.id);
        }
        let first =
            row.messages.iter().rposition(|message| matches!(message, Message::User { .. })).map_or(0, |at| at + 1);
        let first = row.messages.get(first).and_then(|message| message.calls().first());
        if first.is_some_and(|call| {
            row.trained_calls().any(|trained| std::ptr::eq(trained, call)) && paths::is_mutation(call)
        }) {
            self.tally.find(names::FIRST_MUTATION, &row.id);
        }
    }

    /// What the model would learn to say.
    fn words(&mut self, row: &Row) {
        for index in &row.trained {
            let message = &row.messages[*index];
            if is_monologue(message.content()) {
                self.tally.find(names::MONOLOGUE, &row.id);
            }
            if !message.claims().all(|text| is_grounded(text, &row.messages[..*index])) {
                self.tally.find(names::INVENTED, &row.id);
            }
            if repeats_itself(message) {
                self.tally.find(names::REPETITION, &row.id);
            }
            if self.control.is_in(message.content()) {
                self.tally.find(names::CONTROL_TOKENS, &row.id);
            }
        }
    }

    /// What must be in no text, trained on or not.
    fn texts(&mut self, row: &Row, samples: &[Sample]) {
        let texts = samples.iter().map(|sample| sample.text.as_str()).chain(row.messages.iter().map(Message::content));
        for text in texts {
            let is_named = self.owners.as_ref().is_some_and(|owners| owners.is_match(text));
            if is_named || foreign_home(text).is_some() {
                self.tally.find(names::FOREIGN_HOME, &row.id);
            }
            if matches!(memory::redact::clean(text), std::borrow::Cow::Owned(cleaned) if cleaned != text) {
                self.tally.find(names::SECRETS, &row.id);
            }
        }
    }

    /// Tells of a file that holds what was planted.
    pub fn found_canary(&mut self, file: &str) {
        self.tally.find(names::CANARIES, file);
    }

    fn leaks(&mut self, row: &Row, split: Split) {
        let session = format!("{}:{}", row.source.agent, row.source.session);
        if *self.sessions.entry(session).or_insert(split) != split {
            self.tally.find(names::LEAKS, &row.id);
        }
        let turn = turn_of(row);
        let shingles = shingles(row);
        if let Some(other) = self.kept.similar(&shingles, turn, |other| self.kept_splits[other].0 != split) {
            let other = self.kept_splits[other].1.clone();
            self.tally.find(names::LEAKS, &row.id);
            self.tally.find(names::LEAKS, &other);
        }
        self.kept.push(shingles, turn);
        self.kept_splits.push((split, row.id.clone()));
        // The same question with the same answer, however short.
        let said: Vec<_> = row.trained.iter().map(|index| format!("{:?}", row.messages[*index])).collect();
        let pair = draw(1, &[row.prompt(), &said.join("\n")]);
        if *self.pairs.entry(pair).or_insert(split) != split {
            self.tally.find(names::LEAKS, &row.id);
        }
    }

    /// `lost` is how many rows the template did not render as a server would send them.
    pub fn finish(mut self, lost: u64) -> Audit {
        let limits = &self.limits;
        let rows = self.tally.rows as f64;
        let share = |count: f64| if rows > 0.0 { count / rows } else { 0.0 };
        let ending = |ending| share(self.tally.endings.get(&ending).copied().unwrap_or_default() as f64);
        let (answered, text) = (ending(Ending::Answered), ending(Ending::Text));
        let prefix = self.paths.values().filter_map(PathUse::largest_share).fold(0.0, f64::max);
        let splits = Split::ALL.map(|split| self.tally.splits.get(&split).copied().unwrap_or_default() as f64);
        let shares = [
            (names::SMALLEST_SPLIT, share(splits.into_iter().fold(f64::MAX, f64::min))),
            (names::MULTI_TURN, share(self.tally.multi_turn as f64)),
            (names::TOOL_SHARE, self.tally.tools.largest_share()),
            (names::PATH_PREFIX, prefix),
            (names::ANSWERED, answered),
            (names::TEXT_LEAST, text),
            (names::TEXT_MOST, text),
            (names::TEMPLATE, if lost == 0 { 0.0 } else { lost as f64 / (rows + lost as f64) }),
        ];
        let mut checks: Vec<_> =
            limits.counted().into_iter().map(|(name, most)| self.tally.counted(name, most)).collect();
        checks.extend(limits.measured().into_iter().map(|(name, bound)| {
            let value = shares.iter().find(|(of, _)| *of == name).map_or(0.0, |(_, value)| *value);
            Check::measured(name, value, bound)
        }));
        std::mem::take(&mut self.tally).into_audit(checks)
    }
}

#[cfg(test)]
mod tests;
