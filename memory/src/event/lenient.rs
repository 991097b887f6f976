//! Reading members of JSON whose writers change it: a member of another type than expected counts as absent.
//!
//! Members are asked for by their name in snake case; a writer of camel case is read by the same name.

use serde_json::Value;

use super::text;
use crate::redact;

pub(super) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let found = object.get(name).or_else(|| object.get(camel_case(name)?));
    found.filter(|value| !value.is_null())
}

/// A string without what must never be kept: folders, addresses and reasons can hold secrets as well as prompts can.
pub(super) fn string(object: &Value, name: &str) -> Option<String> {
    let text = member(object, name).and_then(Value::as_str).filter(|text| !text.is_empty())?;
    Some(text::without_nul(&redact::clean(text)))
}

/// A string or a whole number that names something, short enough for an index.
pub(super) fn id(object: &Value, name: &str) -> Option<String> {
    let number = || member(object, name).filter(|value| value.is_i64() || value.is_u64()).map(Value::to_string);
    string(object, name).or_else(number).map(text::bounded_id)
}

/// A word or two for people, short and with nothing private in it.
pub(super) fn label(object: &Value, name: &str) -> Option<String> {
    string(object, name).map(text::bounded_id)
}

/// A path that a system could open.
pub(super) fn path(object: &Value, name: &str) -> Option<String> {
    path_of(member(object, name)?)
}

pub(super) fn path_of(value: &Value) -> Option<String> {
    const MAX_BYTES: usize = 4096;
    const MAX_PART_BYTES: usize = 1024;
    let text = value.as_str().filter(|text| !text.is_empty() && text.len() <= MAX_BYTES)?;
    let has_long_part = text.split(['/', '\\']).any(|part| part.len() > MAX_PART_BYTES);
    (!has_long_part).then(|| text::without_nul(&redact::clean(text)))
}

/// A number, also one that was written as a string.
pub(super) fn integer(object: &Value, name: &str) -> Option<i64> {
    let value = member(object, name)?;
    let written = || value.as_str()?.trim().parse().ok();
    value.as_i64().or_else(|| value.as_f64().or_else(written).map(|number| number.round() as i64))
}

/// Takes a member out of the object, so that a large one is not copied.
pub(super) fn take(object: &mut Value, name: &str) -> Option<Value> {
    let object = object.as_object_mut()?;
    let found = match object.get_mut(name) {
        Some(value) => value,
        None => object.get_mut(&camel_case(name)?)?,
    };
    Some(found.take()).filter(|value| !value.is_null())
}

/// `tool_name` as `toolName`; `None` if it would be the same.
fn camel_case(name: &str) -> Option<String> {
    let mut words = name.split('_');
    let mut camel = words.next()?.to_owned();
    let before = camel.len();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    (camel.len() > before).then_some(camel)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_a_member_in_either_spelling() {
        let mut object = json!({"toolName": "a", "tool_input": "b", "text_result_for_llm": "", "cwd": null});
        assert_eq!(string(&object, "tool_name").as_deref(), Some("a"));
        assert_eq!(string(&object, "text_result_for_llm"), None);
        assert_eq!(member(&object, "cwd"), None);
        assert_eq!(take(&mut object, "tool_input"), Some(json!("b")));
        assert_eq!(take(&mut object, "tool_name"), Some(json!("a")));
        assert_eq!(take(&mut object, "tool_name"), None);
    }

    #[test]
    fn reads_numbers_that_were_written_as_strings_and_ids_that_were_written_as_numbers() {
        let object = json!({"a": "55", "b": 1.6, "c": "long", "d": 7});
        let read = ["a", "b", "c", "d"].map(|name| integer(&object, name));
        assert_eq!(read, [Some(55), Some(2), None, Some(7)]);
        assert_eq!(["a", "b", "d"].map(|name| id(&object, name)), [Some("55".into()), None, Some("7".into())]);
    }
}
