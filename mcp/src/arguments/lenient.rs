//! Single values in the forms in which models send them: a number as text, one id where a list is wanted, a list as text.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected};
use serde_json::Value;

/// A whole number, or the text of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count(pub(super) i64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = match &value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.map(Self).ok_or_else(|| D::Error::custom(format_args!("expected a whole number, got {}", Short(&value))))
    }
}

impl JsonSchema for Count {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer" })
    }
}

/// Yes or no, or the text of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag(pub(super) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let flag = match &value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.trim().to_lowercase().parse().ok(),
            _ => None,
        };
        flag.map(Self).ok_or_else(|| D::Error::custom(format_args!("expected true or false, got {}", Short(&value))))
    }
}

impl JsonSchema for Flag {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Flag".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// A list of short texts: a JSON list, one text, several with commas, numbers, or a JSON list inside a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        words(Value::deserialize(deserializer)?).map(Self).map_err(|wrong| {
            D::Error::invalid_type(Unexpected::Other(&Short(&wrong).to_string()), &"a text or a list of texts")
        })
    }
}

fn words(value: Value) -> Result<Vec<String>, Value> {
    match value {
        Value::Number(number) => Ok(vec![number.to_string()]),
        Value::Array(items) => {
            let lists = items.into_iter().map(words).collect::<Result<Vec<_>, _>>()?;
            Ok(lists.concat())
        }
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(list @ Value::Array(_)) => words(list),
            _ => Ok(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()),
        },
        other => Err(other),
    }
}

/// A value for a message.
struct Short<'a>(&'a Value);

impl fmt::Display for Short<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Object(_) => out.write_str("an object"),
            Value::Array(_) => out.write_str("a list"),
            value => write!(out, "`{value}`"),
        }
    }
}

pub(super) fn text_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

pub(super) fn ids_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": super::MAX_IDS })
}

pub(super) fn kinds_schema(_: &mut SchemaGenerator) -> Schema {
    let kinds = memory::ids::DocumentKind::ALL.map(memory::ids::DocumentKind::as_str);
    json_schema!({
        "anyOf": [
            { "type": "string", "enum": kinds },
            { "type": "array", "items": { "type": "string", "enum": kinds } }
        ]
    })
}
