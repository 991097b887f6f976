//! What is taken out of a text before anything learns from it: secrets, whose computer it was, what the base model takes for control
//! tokens, and lines that only repeat.

mod claims;
mod control;
mod homes;
mod places;
mod repeats;

use std::borrow::Cow;

use memory::redact;
use serde_json::{Map, Value};

pub(super) use claims::{is_grounded, is_monologue};
pub(super) use control::ControlTokens;
pub(super) use homes::foreign_home;
pub(super) use places::{Places, is_somebodys, names_pattern, settle};
pub(super) use repeats::repeats_itself;
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
        turn.prompt = self.text(&turn.prompt, usize::MAX);
        turn.answer = turn.answer.take().and_then(|answer| self.answer(&answer));
        for step in &mut turn.steps {
            self.step(step);
        }
    }

    fn step(&self, step: &mut Step) {
        let mut arguments = Value::Object(std::mem::take(&mut step.arguments));
        redact::clean_json(&mut arguments);
        let mut had_control = false;
        map_texts(&mut arguments, &mut |text| {
            had_control |= self.control.is_in(text);
            self.control.escape(&self.places.hide(text)).into_owned()
        });
        if let Value::Object(members) = arguments {
            step.arguments = members;
        }
        // What the model writes must be what an agent wrote: no escapes of ours, no placeholder of a secret.
        step.is_trained &= !had_control && !has_mark(&step.arguments);
        step.result = self.text(&step.result, self.result_bytes);
    }

    /// What an agent said in the end; nothing if it would have to be changed for more than the places in it.
    fn answer(&self, answer: &str) -> Option<String> {
        let answer = redact::clean(answer.trim());
        let is_own = !self.control.is_in(&answer) && matches!(collapse_repeats(&answer), Cow::Borrowed(_));
        (is_own && !answer.is_empty()).then(|| self.places.hide(&answer).into_owned())
    }

    /// What a person or a tool said, and of that so many bytes. Half a secret has lost its form, so that secrets go first; half a
    /// path is hidden like a whole one, so that places go after the cut.
    fn text(&self, text: &str, bytes: usize) -> String {
        let text = redact::clean(text);
        let text = cut_middle(&collapse_repeats(&text), bytes);
        self.control.escape(&self.places.hide(&text)).into_owned()
    }
}

/// Cleans what is offered: schemas of tools, which nobody of the journal wrote.
pub(super) fn clean_schema(schema: &mut Value, control: &ControlTokens) {
    redact::clean_json(schema);
    let mut texts = Vec::new();
    for_each_string(schema, &mut |text| texts.push(text));
    let places = Places::of(None, texts.into_iter());
    map_texts(schema, &mut |text| control.escape(&places.hide(text)).into_owned());
}

fn has_mark(members: &Map<String, Value>) -> bool {
    members.iter().any(|(name, value)| redact::is_cleaned(name) || any_string(value, &redact::is_cleaned))
}

/// Every string in a value, names of members excepted.
pub(crate) fn for_each_string<'a>(value: &'a Value, see: &mut impl FnMut(&'a str)) {
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

/// Changes every string in a value, and the names of members.
pub(super) fn map_texts(value: &mut Value, change: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_texts(item, change)),
        Value::Object(members) => {
            for (name, mut member) in std::mem::take(members) {
                map_texts(&mut member, change);
                members.insert(change(&name), member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
