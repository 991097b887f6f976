//! What a tool gave back, as text: the part a person would have read on the screen.

use serde_json::Value;

use super::binary;
use super::text::{Capped, MAX_OUTPUT_BYTES, MAX_WHOLE_OUTPUT_BYTES};

/// The members that hold what a tool printed or returned, in reading order.
const TEXT_MEMBERS: [&str; 6] = ["stdout", "stderr", "content", "text", "result", "output"];
/// Members that repeat the input or hold whole files.
const SKIPPED_MEMBERS: [&str; 5] = ["originalFile", "structuredPatch", "oldString", "newString", "gitDiff"];

/// Tools that give back a file as it lies on the disk: of theirs, the preview is enough.
const FILE_READERS: [&str; 7] =
    ["read", "notebookread", "read_file", "readfile", "read_many_files", "read_text_file", "view"];

/// What is kept of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) preview: Capped,
    /// At most [`MAX_WHOLE_OUTPUT_BYTES`] of it, where the preview does not hold all.
    pub(crate) whole: Option<String>,
}

/// What is kept of what a tool gave back, or nothing if there is nothing to read.
pub(crate) fn of_tool(tool_name: &str, response: &Value) -> Option<Output> {
    let text = readable(response);
    let text = Capped::new(&binary::described(text.trim_end()), usize::MAX).text;
    if text.is_empty() {
        return None;
    }
    let preview = Capped::of_clean(&text, MAX_OUTPUT_BYTES);
    let reads_a_file = FILE_READERS.iter().any(|name| tool_name.eq_ignore_ascii_case(name));
    let is_all = preview.truncated_at_bytes.is_none() || reads_a_file;
    let whole = (!is_all).then(|| Capped::of_clean(&text, MAX_WHOLE_OUTPUT_BYTES).text);
    Some(Output { preview, whole })
}

/// A preview of at most [`MAX_OUTPUT_BYTES`], or nothing if there is nothing to read.
#[cfg(test)]
fn preview(response: &Value) -> Option<Capped> {
    of_tool("Bash", response).map(|output| output.preview)
}

fn readable(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            items.iter().map(readable).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(members) => {
            if let Some(description) = binary::described_block(value) {
                return description;
            }
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
    fn keeps_a_large_output_whole_beside_its_preview() {
        let log = (0..4_000).map(|number| format!("test case_{number} ... ok")).collect::<Vec<_>>().join("\n");
        let output = of_tool("Bash", &json!({"stdout": log})).unwrap();
        assert_eq!(output.preview.truncated_at_bytes, Some(log.len() as i64));
        assert!(output.preview.text.len() < MAX_OUTPUT_BYTES + 64);
        assert_eq!(output.whole.as_deref(), Some(log.as_str()));
        assert_eq!(of_tool("Read", &json!({"file": {"content": log}})).unwrap().whole, None, "the file is on the disk");
        assert_eq!(of_tool("Bash", &json!({"stdout": "short"})).unwrap().whole, None);
    }

    #[test]
    fn describes_an_image_among_the_text() {
        let data = "iVBORw0KGgo".repeat(400);
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
        check(&json!([{"type": "text", "text": "The page:"}, image]), Some("The page:\n[image/png, 3 kB]"));
        check(&json!({"stdout": format!("data:image/png;base64,{data}"), "isImage": true}), Some("[image/png, 3 kB]"));
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
