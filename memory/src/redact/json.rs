//! Cleaning a JSON value: every string and every name of a member, and whole values by the names of their members.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::has_mark;
use super::names::Kind;
use super::redactor::{Redactor, placeholder};
use super::value::{self, Form};

/// Members that name something whose value stands beside them, as in `{"name": "DB_PASSWORD", "value": "…"}`.
const NAMING_MEMBERS: [&str; 3] = ["name", "key", "Name"];
const NAMED_MEMBERS: [&str; 2] = ["value", "Value"];

pub(super) fn clean(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(cleaned) = redactor.clean(text) {
                *text = cleaned;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean(redactor, item)),
        Value::Object(members) => clean_members(redactor, members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean_members(redactor: &Redactor, members: &mut Map<String, Value>) {
    clean_names(redactor, members);
    members.values_mut().for_each(|member| clean(redactor, member));
    let named = NAMING_MEMBERS.iter().find_map(|naming| members.get(*naming)?.as_str()).map(str::to_owned);
    for (name, member) in &mut *members {
        let said = named.as_deref().filter(|_| NAMED_MEMBERS.contains(&name.as_str()));
        let name = said.unwrap_or(name);
        if let Some(kind) = redactor.names().kind_of(name) {
            for _ in 0..withhold(kind, name, member) {
                redactor.taken().count(&kind.id);
            }
        }
    }
}

/// Takes a value out because of its member's name; returns how many values went.
fn withhold(kind: &Kind, name: &str, member: &mut Value) -> usize {
    let is_secret = match member {
        Value::String(text) => !has_mark(text) && value::is_secret(text, Form::Member, kind.value, name),
        Value::Number(number) => value::is_secret(&number.to_string(), Form::Number, kind.value, name),
        Value::Array(items) => {
            let texts = items.iter_mut().filter(|item| item.is_string());
            return texts.map(|item| withhold(kind, name, item)).sum();
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => false,
    };
    if is_secret {
        *member = Value::String(placeholder(&kind.id));
    }
    usize::from(is_secret)
}

/// Secrets that are names of members. Two that become alike are told apart by a number, so that none is lost.
fn clean_names(redactor: &Redactor, members: &mut Map<String, Value>) {
    if members.keys().all(|name| matches!(redactor.clean(name), Cow::Borrowed(_))) {
        return;
    }
    for (name, member) in std::mem::take(members) {
        let cleaned = redactor.clean(&name).into_owned();
        let mut unique = cleaned.clone();
        let mut number = 2;
        while members.contains_key(&unique) {
            unique = format!("{cleaned} {number}");
            number += 1;
        }
        members.insert(unique, member);
    }
}
