//! What is taken out of a text before anything learns from it: secrets, whose computer it was, what the base model takes for control
//! tokens, and lines that only repeat.

mod claims;
mod control;
mod places;
mod repeats;

use memory::redact;
use serde_json::{Map, Value};

pub(super) use claims::{is_grounded, is_monologue};
pub(super) use control::ControlTokens;
pub(super) use places::{Places, foreign_home, settle};
pub(super) use repeats::is_repetitive;
use repeats::{collapse_repeats, cut_middle};

use super::select::{Step, Turn};

/// Cleans the turns of one session.
#[derive(Debug)]
pub(super) struct Cleaner<'a> {
    pub control: &'a ControlTokens,
    pub places: &'a Places,
    pub result_bytes: usize,
}

impl Cleaner<'_> {
    pub(super) fn turn(&self, turn: &mut Turn) {
        turn.prompt = self.text(&turn.prompt);
        turn.answer = turn.answer.take().map(|answer| self.text(&answer).trim().to_owned());
        turn.answer = turn.answer.take().filter(|answer| !answer.is_empty());
        for step in &mut turn.steps {
            self.step(step);
        }
    }

    fn step(&self, step: &mut Step) {
        let mut arguments = Value::Object(std::mem::take(&mut step.arguments));
        redact::clean_json(&mut arguments);
        let mut had_control = false;
        map_strings(&mut arguments, &mut |text| {
            had_control |= self.control.is_in(text);
            self.control.escape(&self.places.hide(text)).into_owned()
        });
        if let Value::Object(members) = arguments {
            step.arguments = members;
        }
        // What the model writes must be what an agent wrote: no escapes of ours, no placeholder of a secret.
        step.is_trained &= !had_control && !has_mark(&step.arguments);
        step.result = cut_middle(&self.text(&step.result), self.result_bytes);
    }

    fn text(&self, text: &str) -> String {
        let text = redact::clean(text);
        let text = self.places.hide(&text);
        collapse_repeats(&self.control.escape(&text)).into_owned()
    }
}

fn has_mark(members: &Map<String, Value>) -> bool {
    members.iter().any(|(name, value)| redact::is_cleaned(name) || any_string(value, &redact::is_cleaned))
}

/// Every string in a value, names of members excepted.
pub(super) fn for_each_string<'a>(value: &'a Value, see: &mut impl FnMut(&'a str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| for_each_string(item, see)),
        Value::Object(members) => members.values().for_each(|member| for_each_string(member, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a string somewhere in a value is so.
pub(super) fn any_string(value: &Value, is: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, is)),
        Value::Object(members) => members.values().any(|member| any_string(member, is)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Changes every string in a value, names of members excepted.
pub(super) fn map_strings(value: &mut Value, change: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_strings(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| map_strings(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
