//! Reading members of JSON whose writers change it: a member of another type than expected counts as absent.

use serde_json::Value;

use super::text;
use crate::redact;

/// A string without what must never be kept: folders, addresses and reasons can hold secrets as well as prompts can.
pub(super) fn string(object: &Value, name: &str) -> Option<String> {
    let text = object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())?;
    Some(text::without_nul(&redact::clean(text)))
}

/// A string that names something, short enough for an index.
pub(super) fn id(object: &Value, name: &str) -> Option<String> {
    string(object, name).map(text::bounded_id)
}

pub(super) fn integer(object: &Value, name: &str) -> Option<i64> {
    let value = object.get(name)?;
    value.as_i64().or_else(|| value.as_f64().map(|number| number.round() as i64))
}

/// Takes a member out of the object, so that a large one is not copied.
pub(super) fn take(object: &mut Value, name: &str) -> Option<Value> {
    object.as_object_mut()?.get_mut(name).map(Value::take).filter(|value| !value.is_null())
}
