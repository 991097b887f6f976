//! Making text fit for storing: Postgres takes no NUL, and no field may grow without bound.

use serde_json::Value;

/// A prompt or answer longer than this keeps its head and tail.
pub const MAX_PROMPT_BYTES: usize = 256 * 1024;
/// A single string of a tool's input longer than this keeps its head and tail.
pub const MAX_INPUT_STRING_BYTES: usize = 256 * 1024;
/// What is kept of a tool's output.
pub const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// A text that fits, and how long it was if it had to be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capped {
    pub text: String,
    pub truncated_at_bytes: Option<i64>,
}

impl Capped {
    /// Keeps the first two thirds and the last third of what fits, with a mark between them.
    pub fn new(text: &str, limit_bytes: usize) -> Self {
        if text.len() <= limit_bytes {
            return Self { text: without_nul(text), truncated_at_bytes: None };
        }
        let head = floor_char_boundary(text, limit_bytes / 3 * 2);
        let tail = ceil_char_boundary(text, text.len() - limit_bytes / 3);
        let cut = tail - head;
        let kept = format!("{}\n[… {cut} bytes left out …]\n{}", &text[..head], &text[tail..]);
        Self { text: without_nul(&kept), truncated_at_bytes: Some(text.len() as i64) }
    }
}

/// Caps every string in a JSON value, keys included in the cleaning; returns the length of the longest string that was cut.
pub(super) fn cap_json(value: &mut Value, limit_bytes: usize) -> Option<i64> {
    match value {
        Value::String(text) => {
            if text.len() <= limit_bytes && !text.contains('\0') {
                return None;
            }
            let capped = Capped::new(text, limit_bytes);
            *text = capped.text;
            capped.truncated_at_bytes
        }
        Value::Array(items) => items.iter_mut().filter_map(|item| cap_json(item, limit_bytes)).max(),
        Value::Object(members) => {
            if members.keys().any(|key| key.contains('\0')) {
                *members = std::mem::take(members).into_iter().map(|(key, value)| (without_nul(&key), value)).collect();
            }
            members.values_mut().filter_map(|member| cap_json(member, limit_bytes)).max()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Replaces NUL, which neither `text` nor `jsonb` can hold, by the sign for it.
pub(super) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_short_text_as_it_is() {
        assert_eq!(Capped::new("ls -la", 10), Capped { text: "ls -la".into(), truncated_at_bytes: None });
    }

    #[test]
    fn keeps_head_and_tail_of_long_text() {
        let text = format!("{}{}", "a".repeat(500), "z".repeat(500));
        let capped = Capped::new(&text, 300);
        assert!(capped.text.starts_with("aaa") && capped.text.ends_with("zzz"), "{}", capped.text);
        assert_eq!(capped.truncated_at_bytes, Some(1000));
    }

    #[test]
    fn cleans_and_caps_inside_json() {
        let mut value = json!({"a\0": ["x\0y", "é".repeat(200)], "n": 1});
        assert_eq!(cap_json(&mut value, 100), Some(400));
        assert_eq!(value["a\u{2400}"][0], "x\u{2400}y");
    }

    proptest! {
        #[test]
        fn never_panics_and_never_grows_past_the_limit(text in "\\PC{0,400}", limit in 3usize..200) {
            let capped = Capped::new(&text, limit);
            prop_assert!(capped.text.len() <= limit + 64);
            prop_assert!(!capped.text.contains('\0'));
        }
    }
}
