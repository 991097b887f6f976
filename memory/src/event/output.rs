//! What a tool gave back, as text: the part a person would have read on the screen.

use serde_json::Value;

use super::text::{Capped, MAX_OUTPUT_BYTES};

/// The members that hold what a tool printed or returned, in reading order.
const TEXT_MEMBERS: [&str; 6] = ["stdout", "stderr", "content", "text", "result", "output"];
/// Members that repeat the input or hold whole files.
const SKIPPED_MEMBERS: [&str; 5] = ["originalFile", "structuredPatch", "oldString", "newString", "gitDiff"];

/// A preview of at most [`MAX_OUTPUT_BYTES`], or nothing if there is nothing to read.
pub(crate) fn preview(response: &Value) -> Option<Capped> {
    let text = readable(response);
    let text = text.trim_end();
    (!text.is_empty()).then(|| Capped::new(text, MAX_OUTPUT_BYTES))
}

fn readable(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            items.iter().map(readable).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(members) => {
            let named = TEXT_MEMBERS.iter().filter_map(|name| members.get(*name)).map(readable);
            let nested = members.get("file").map(readable);
            let found = named.chain(nested).filter(|text| !text.is_empty()).collect::<Vec<_>>();
            // A silent command has the members and nothing in them: its flags are not its output.
            if !found.is_empty() || TEXT_MEMBERS.iter().any(|name| members.contains_key(*name)) {
                return found.join("\n");
            }
            let rest = members
                .iter()
                .filter(|(name, value)| !SKIPPED_MEMBERS.contains(&name.as_str()) && !is_blank(value))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<serde_json::Map<_, _>>();
            if rest.is_empty() { String::new() } else { Value::Object(rest).to_string() }
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(response: &Value, expected: Option<&str>) {
        assert_eq!(preview(response).map(|capped| capped.text).as_deref(), expected);
    }

    #[test]
    fn shows_what_a_command_printed_on_both_streams() {
        check(&json!({"stdout": "ok\n", "stderr": "warning: x", "interrupted": false}), Some("ok\n\nwarning: x"));
    }

    #[test]
    fn shows_the_content_of_a_file_that_was_read() {
        check(&json!({"type": "text", "file": {"filePath": "/a", "content": "fn main() {}"}}), Some("fn main() {}"));
    }

    #[test]
    fn shows_the_text_blocks_of_an_mcp_result() {
        check(&json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), Some("one\ntwo"));
    }

    #[test]
    fn shows_nothing_for_a_silent_command() {
        check(&json!({"stdout": "", "stderr": "", "interrupted": false}), None);
        check(&Value::Null, None);
    }

    #[test]
    fn leaves_out_whole_files_of_an_edit() {
        check(&json!({"filePath": "/a", "originalFile": "long", "structuredPatch": []}), Some(r#"{"filePath":"/a"}"#));
    }
}
