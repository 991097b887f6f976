//! JSON of transcripts, read leniently and without copies: a member of another type than expected counts as absent, and text is
//! borrowed from the line where it holds no escapes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::without_lone_surrogates;

/// A string, or nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text, unless it is empty.
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Whether it is exactly that.
    pub(super) fn is(&self, other: &str) -> bool {
        self.0.as_deref() == Some(other)
    }

    pub(super) fn to_owned(&self) -> Option<String> {
        self.get().map(str::to_owned)
    }
}

/// `true`, or anything else.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag(pub(super) bool);

/// Whether a member is there and not null.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Present(pub(super) bool);

/// A whole number, or nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Number(pub(super) Option<f64>);

/// Parses a line. Half an emoji and bytes that are no UTF-8 are mended first, in a copy that is kept in `mended`.
pub(super) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8], mended: &'a mut Vec<u8>) -> Option<T> {
    // To serde, an array of values is a struct too.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    if let Ok(parsed) = serde_json::from_slice(line) {
        return Some(parsed);
    }
    let text = String::from_utf8_lossy(line);
    *mended = without_lone_surrogates(text.as_bytes()).unwrap_or_else(|| text.into_owned().into_bytes());
    serde_json::from_slice(mended).ok()
}

/// A part of a line as a value of its own.
pub(super) fn value_of(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok().or_else(|| {
        let mended = without_lone_surrogates(raw.get().as_bytes())?;
        serde_json::from_slice(&mended).ok()
    })
}

/// A part of a line that is a string.
pub(super) fn string_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let json = raw.get();
    if !json.starts_with('"') {
        return None;
    }
    if let Ok(Text(text)) = serde_json::from_str(json) {
        return text;
    }
    value_of(raw)?.as_str().map(|text| Cow::Owned(text.to_owned()))
}

struct Scalar;

/// What a member held, as far as it is a scalar.
enum Held<'a> {
    Text(Cow<'a, str>),
    Truth(bool),
    Number(f64),
    Null,
    Other,
}

impl<'de> Visitor<'de> for Scalar {
    type Value = Held<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Held<'de>, E> {
        Ok(Held::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Held<'de>, E> {
        Ok(Held::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Held<'de>, E> {
        Ok(Held::Truth(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Held<'de>, E> {
        Ok(Held::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Held<'de>, E> {
        Ok(Held::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Held<'de>, E> {
        Ok(Held::Number(number))
    }

    fn visit_unit<E>(self) -> Result<Held<'de>, E> {
        Ok(Held::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Held<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Held::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Held<'de>, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Held::Other)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match from.deserialize_any(Scalar)? {
            Held::Text(text) => Self(Some(text)),
            _ => Self(None),
        })
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(matches!(from.deserialize_any(Scalar)?, Held::Truth(true))))
    }
}

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(!matches!(from.deserialize_any(Scalar)?, Held::Null)))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match from.deserialize_any(Scalar)? {
            Held::Number(number) => Self(Some(number)),
            _ => Self(None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Members<'a> {
        #[serde(borrow, default)]
        name: Text<'a>,
        #[serde(default)]
        is_meta: Flag,
        #[serde(default)]
        parent: Present,
        #[serde(default)]
        code: Number,
    }

    #[test]
    fn takes_a_member_of_another_type_for_absent() {
        let line = br#"{"name": [1, {"a": 2}], "is_meta": "yes", "parent": null, "code": {"x": []}}"#;
        let mut mended = Vec::new();
        let read: Members<'_> = parse(line, &mut mended).unwrap();
        assert_eq!((read.name.get(), read.is_meta.0, read.parent.0, read.code.0), (None, false, false, None));
    }

    #[test]
    fn borrows_text_without_escapes() {
        let mut mended = Vec::new();
        let read: Members<'_> = parse(br#"{"name": "plain", "code": 3}"#, &mut mended).unwrap();
        assert!(matches!(read.name.0, Some(Cow::Borrowed("plain"))));
        assert_eq!(read.code.0, Some(3.0));
    }

    #[test]
    fn mends_half_an_emoji_and_bytes_that_are_no_text() {
        let mut mended = Vec::new();
        let read: Members<'_> = parse(b"{\"name\": \"\\ud83d \xff\"}", &mut mended).unwrap();
        assert_eq!(read.name.get(), Some("\u{fffd} \u{fffd}"));
    }
}
