//! Making text fit for storing: Postgres takes no NUL, no field may grow without bound, and what is private is never kept.
//! The same text always becomes the same, for a hook's event and a transcript's meet by their content.

use serde_json::Value;
use uuid::Uuid;

use super::binary;
use crate::redact;

/// A prompt or answer longer than this keeps its head and tail.
pub const MAX_PROMPT_BYTES: usize = 256 * 1024;
/// A single string of a tool's input longer than this keeps its head and tail.
pub const MAX_INPUT_STRING_BYTES: usize = 256 * 1024;
/// A file's text in a tool's input longer than this keeps its head and tail: about 1500 lines, for the file itself is on disk.
pub const MAX_FILE_TEXT_BYTES: usize = 64 * 1024;
/// What is kept of a tool's output with the call.
pub const MAX_OUTPUT_BYTES: usize = 16 * 1024;
/// What is kept of a tool's output on its own, where the call does not hold all of it.
pub const MAX_WHOLE_OUTPUT_BYTES: usize = 256 * 1024;
/// What is kept of a tool's whole input.
pub(super) const MAX_INPUT_BYTES: usize = 1024 * 1024;
/// Ids stand in indexes, whose entries have a limit of about 2.7 kB.
const MAX_ID_BYTES: usize = 512;

/// A text that fits, and how long it was if it had to be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capped {
    pub text: String,
    pub truncated_at_bytes: Option<i64>,
}

impl Capped {
    /// Takes out what must never be kept, then keeps the first two thirds and the last third of what fits, with a mark between
    /// them. In this order, for a cut could take the mark that opens a private part and leave the part.
    pub fn new(text: &str, limit_bytes: usize) -> Self {
        let text = &*redact::clean(text);
        Self::of_clean(text, limit_bytes)
    }

    /// The same for a text in which nothing is left that must not be kept.
    pub(super) fn of_clean(text: &str, limit_bytes: usize) -> Self {
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

/// Cleans a tool's input, then caps it, string by string and as a whole; returns the length of the largest text that was cut. Binary payloads are
/// described. A file's text has a smaller cap than a command, which must stay whole; it is known by the file that is named beside
/// it, whatever the tool is called.
pub(crate) fn cap_input(input: &mut Value) -> Option<i64> {
    redact::clean_json(input);
    let cut = cap_json(input, Within::Anything);
    let size = size_of(input);
    if size <= MAX_INPUT_BYTES {
        return cut;
    }
    // Many strings rather than a long one: what is left of it as text still says what was asked.
    *input = Value::String(Capped::of_clean(&input.to_string(), MAX_INPUT_BYTES / 4).text);
    cut.max(Some(size as i64))
}

/// About what a value takes as JSON, in bytes.
fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size_of(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(name, member)| name.len() + size_of(member) + 4).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// An id that an index can hold: a longer one keeps its head and gets the digest of the whole.
pub(crate) fn bounded_id(id: String) -> String {
    if id.len() <= MAX_ID_BYTES {
        return id;
    }
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes());
    format!("{}…{digest}", &id[..floor_char_boundary(&id, MAX_ID_BYTES / 2)])
}

/// What a value is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Anything,
    /// An object that names a file, so that its texts are the file's.
    File,
    FileText,
}

impl Within {
    /// Members that name the file which a call is about.
    const PATHS: [&str; 7] = ["file_path", "filePath", "path", "absolute_path", "notebook_path", "file", "filename"];
    /// Members that hold its text, whole or in parts.
    const TEXTS: [&str; 12] = [
        "content",
        "contents",
        "old_string",
        "new_string",
        "oldString",
        "newString",
        "old_str",
        "new_str",
        "new_source",
        "file_text",
        "patch",
        "diff",
    ];

    fn of_object(self, members: &serde_json::Map<String, Value>) -> Self {
        let names_a_file = Self::PATHS.iter().any(|name| members.get(*name).is_some_and(Value::is_string));
        if self == Self::Anything && names_a_file { Self::File } else { self }
    }

    fn of_member(self, name: &str) -> Self {
        if self == Self::File && Self::TEXTS.contains(&name) { Self::FileText } else { self }
    }

    fn limit_bytes(self, text: &str) -> usize {
        let is_patch = ["*** Begin Patch", "diff --git "].iter().any(|start| text.starts_with(start));
        if self == Self::FileText || is_patch { MAX_FILE_TEXT_BYTES } else { MAX_INPUT_STRING_BYTES }
    }
}

/// Caps every string in a JSON value, and takes NUL out of its keys; returns the length of the longest string that was cut.
fn cap_json(value: &mut Value, within: Within) -> Option<i64> {
    match value {
        Value::String(text) => {
            let capped = Capped::of_clean(&binary::described(text), within.limit_bytes(text));
            *text = capped.text;
            capped.truncated_at_bytes
        }
        Value::Array(items) => items.iter_mut().filter_map(|item| cap_json(item, within)).max(),
        Value::Object(members) => {
            let within = within.of_object(members);
            if members.keys().any(|key| key.contains('\0')) {
                *members = std::mem::take(members).into_iter().map(|(key, value)| (without_nul(&key), value)).collect();
            }
            members.iter_mut().filter_map(|(name, member)| cap_json(member, within.of_member(name))).max()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Replaces NUL, which neither `text` nor `jsonb` can hold, by the sign for it.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

/// Replaces escapes of half a surrogate pair by that of the replacement character. `None` if there are none.
pub(crate) fn without_lone_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    let mut mended = Vec::with_capacity(json.len());
    let mut at = 0;
    let mut found = false;
    while at < json.len() {
        if json[at] != b'\\' {
            mended.push(json[at]);
            at += 1;
            continue;
        }
        // An escape: a pair of halves is kept together, a half alone is replaced.
        let length = match (surrogate_at(json, at), surrogate_at(json, at + 6)) {
            (Some(Half::High), Some(Half::Low)) => 12,
            (Some(_), _) => {
                found = true;
                mended.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            (None, _) => 2,
        };
        let end = (at + length).min(json.len());
        mended.extend_from_slice(&json[at..end]);
        at = end;
    }
    found.then_some(mended)
}

enum Half {
    High,
    Low,
}

fn surrogate_at(json: &[u8], at: usize) -> Option<Half> {
    let escape = json.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
    let code = u32::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()?;
    match code {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
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
        let long = "é".repeat(MAX_INPUT_STRING_BYTES);
        let mut value = json!({"a\0": ["x\0y", long], "n": 1});
        assert_eq!(cap_input(&mut value), Some(2 * MAX_INPUT_STRING_BYTES as i64));
        assert_eq!(value["a\u{2400}"][0], "x\u{2400}y");
    }

    #[test]
    fn caps_a_files_text_earlier_than_a_command() {
        let long = "let it = be;\n".repeat(8_000);
        let size = long.len() as i64;
        let cut = |mut input: Value| (cap_input(&mut input), input);
        for whole in [json!({"command": long}), json!({"file_path": "/a", "note": long}), json!({"content": long})] {
            assert_eq!(cut(whole.clone()), (None, whole));
        }
        for file in [
            json!({"file_path": "/a", "content": long}),
            json!({"file_path": "/a", "old_string": "x", "new_string": long}),
            json!({"file_path": "/a", "edits": [{"old_string": long, "new_string": "x"}]}),
            json!({"notebook_path": "/a", "new_source": long}),
            json!({"input": format!("*** Begin Patch\n{long}")}),
            json!(format!("*** Begin Patch\n{long}")),
        ] {
            let (cut_bytes, kept) = cut(file.clone());
            assert!(cut_bytes.is_some_and(|bytes| bytes >= size), "{kept}");
            assert!(size_of(&kept) < MAX_FILE_TEXT_BYTES + 512);
            assert_eq!(cut(file), (cut_bytes, kept), "and always in the same way");
        }
    }

    #[test]
    fn leaves_a_file_of_five_hundred_lines_as_it_is() {
        let file =
            "    let answer = question.answer().context(\"asking for the answer to the question\")?;\n".repeat(500);
        let mut input = json!({"file_path": "/a", "content": file});
        assert_eq!(cap_input(&mut input), None);
        assert_eq!(input["content"], file);
    }

    #[test]
    fn keeps_nothing_private_however_it_is_cut() {
        let text = format!("{}<private>{}</private>{}", "a".repeat(200), "secret ".repeat(200), "z".repeat(200));
        for limit in (30..2_000).step_by(7) {
            let capped = Capped::new(&text, limit);
            assert!(!capped.text.contains("secret"), "{limit}: {}", capped.text);
        }
    }

    #[test]
    fn bounds_an_input_of_many_strings() {
        let mut input = Value::Array(vec![json!("x".repeat(200_000)); 100]);
        assert!(cap_input(&mut input).is_some_and(|bytes| bytes > 20_000_000));
        assert!(size_of(&input) <= MAX_INPUT_BYTES);
    }

    #[test]
    fn keeps_long_ids_apart() {
        let long = |end| bounded_id(format!("{}{end}", "p".repeat(4_000)));
        assert!(long('a').len() < 400 && long('a') != long('b'));
        assert_eq!(bounded_id("toolu_1".into()), "toolu_1");
    }

    #[test]
    fn mends_only_lone_surrogates() {
        let mend =
            |json: &str| without_lone_surrogates(json.as_bytes()).map(|mended| String::from_utf8(mended).unwrap());
        assert_eq!(mend(r#""a\ud83d""#).as_deref(), Some(r#""a\ufffd""#));
        assert_eq!(mend(r#""\ude00\ud83d\ude00""#).as_deref(), Some(r#""\ufffd\ud83d\ude00""#));
        for whole in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\n\u0041""#, r"\", r"\u12"] {
            assert_eq!(mend(whole), None, "{whole}");
        }
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
