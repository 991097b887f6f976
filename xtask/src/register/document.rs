//! A JSON text that is changed in places and otherwise stays as its author wrote it, comments and all.

use anyhow::{Context, bail};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// A parsed text. Clones of its nodes change it too.
pub(super) struct Document {
    root: CstRootNode,
    byte_order_mark: &'static str,
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

impl Document {
    /// Takes JSON, with the comments and trailing commas that people write into settings. No text is an empty document.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let (byte_order_mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (BYTE_ORDER_MARK, rest),
            None => ("", text),
        };
        let root = CstRootNode::parse(text, &options)?;
        if root.value().is_some_and(|value| value.as_object().is_none()) {
            bail!("the file does not hold an object");
        }
        Ok(Self { root, byte_order_mark })
    }

    pub(super) fn to_text(&self) -> String {
        format!("{}{}", self.byte_order_mark, self.root)
    }

    /// The outermost object, if there is one.
    pub(super) fn object(&self) -> Option<CstObject> {
        self.root.object_value()
    }

    /// The outermost object, made if the document is empty.
    pub(super) fn object_or_new(&self) -> CstObject {
        self.root.object_value_or_set()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.object().is_none_or(|object| object.properties().is_empty())
    }

    /// Whether the outermost object has that member and no other.
    pub(super) fn has_only(&self, name: &str) -> bool {
        self.object().is_some_and(|object| object.properties().len() == 1 && object.get(name).is_some())
    }

    /// Removes a member of the outermost object.
    pub(super) fn remove(&self, name: &str) {
        if let Some(property) = self.object().and_then(|object| object.get(name)) {
            property.remove();
        }
    }

    /// Whether there is an object or array at that path of names.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let holder = parents.iter().try_fold(self.object(), |object, name| Some(object?.object_value(name)));
        holder.flatten().is_some_and(|object| object.get(last).is_some())
    }
}

/// The object of that name, made if there is none. Anything else of that name is an error.
pub(super) fn object_in(parent: &CstObject, name: &str) -> anyhow::Result<CstObject> {
    parent.object_value_or_create(name).with_context(|| format!("`{name}` is there, but is not an object"))
}

/// The array of that name, made if there is none. Anything else of that name is an error.
pub(super) fn array_in(parent: &CstObject, name: &str) -> anyhow::Result<CstArray> {
    parent.array_value_or_create(name).with_context(|| format!("`{name}` is there, but is not an array"))
}

pub(super) fn string_in(parent: &CstObject, name: &str) -> Option<String> {
    string_of(&parent.get(name)?.value()?)
}

pub(super) fn strings_in(parent: &CstObject, name: &str) -> Option<Vec<String>> {
    parent.array_value(name)?.elements().iter().map(string_of).collect()
}

/// Sets a property and leaves those around it as they are.
pub(super) fn set(object: &CstObject, name: &str, value: Value) {
    match object.get(name) {
        Some(property) => property.set_value(input(value)),
        None => {
            object.append(name, input(value));
        }
    }
}

/// Gives an object the members of another, except those that are `free` to be otherwise. Whether anything had to change.
pub(super) fn conform(object: &CstObject, expected: &Value, free: &[&str]) -> bool {
    let differing: Vec<_> = differing(object, expected, free).collect();
    for (name, value) in &differing {
        set(object, name, (*value).clone());
    }
    !differing.is_empty()
}

/// Whether [`conform`] would leave the object as it is.
pub(super) fn conforms(object: &CstObject, expected: &Value, free: &[&str]) -> bool {
    differing(object, expected, free).next().is_none()
}

fn differing<'a>(
    object: &'a CstObject,
    expected: &'a Value,
    free: &'a [&str],
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let members = expected.as_object().into_iter().flatten();
    members.filter(|(name, value)| !free.contains(&name.as_str()) && !is_value(object, name, value))
}

/// Strings and lists of strings are what our entries are made of.
fn is_value(object: &CstObject, name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => string_in(object, name).as_ref() == Some(text),
        Value::Array(elements) => strings_in(object, name)
            .is_some_and(|texts| texts.iter().map(String::as_str).eq(elements.iter().filter_map(Value::as_str))),
        _ => false,
    }
}

/// A value in the form in which it can be put into a document.
pub(super) fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text),
        Value::Array(elements) => CstInputValue::Array(elements.into_iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.into_iter().map(|(name, value)| (name, input(value))).collect())
        }
    }
}

fn string_of(node: &CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}
