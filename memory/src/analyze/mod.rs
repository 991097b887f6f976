//! What a document can be found by: the text that is indexed for each kind, and code identifiers split into their words.
//!
//! Pure functions; stemming and ranking are Postgres' (`recall`).

use serde_json::Value;

/// Making a tsvector of this much text takes about 0.1 s at worst, and it stays far below Postgres' limit of 1 MB.
const MAX_INDEXED_BYTES: usize = 48 * 1024;
/// What of a call's input counts: the content of a written file must not crowd out what the call gave back.
const MAX_INPUT_BYTES: usize = 24 * 1024;

/// The text of a prompt and the answer it got.
pub fn prompt_text(prompt: Option<&str>, answer: Option<&str>) -> String {
    [prompt, answer].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// The text of a tool call: its tool, what it was asked, the error if it failed, and what it gave back.
pub fn call_text(tool_name: &str, input: &Value, output: Option<&str>, error: Option<&str>) -> String {
    let mut leaves = String::new();
    push_leaves(&mut leaves, input);
    let mut text = format!("{tool_name}{}", head(&leaves, MAX_INPUT_BYTES));
    for part in [error, output].into_iter().flatten() {
        text.push('\n');
        text.push_str(part);
    }
    text
}

/// One line for a list: the tool and what it was asked.
pub fn call_headline(tool_name: &str, input: &Value) -> String {
    const TELLING: [&str; 9] =
        ["command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt"];
    let told = TELLING.iter().find_map(|name| input.get(*name)?.as_str()).map_or_else(
        || {
            let mut leaves = String::new();
            push_leaves(&mut leaves, input);
            leaves.trim().to_owned()
        },
        str::to_owned,
    );
    headline(&format!("{tool_name}: {told}"))
}

/// The first line that says something, short enough for a list.
pub fn headline(text: &str) -> String {
    const MAX_CHARS: usize = 160;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= MAX_CHARS {
        return line.to_owned();
    }
    line.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}

/// The text that goes to `to_tsvector`: the original, and the words inside its code identifiers, so that `parse_config`,
/// `parseConfig` and `parse config` find each other.
pub fn searchable(text: &str) -> String {
    let text = head(text, MAX_INDEXED_BYTES);
    let mut out = String::from(text);
    for token in text.split(|c: char| !(c.is_alphanumeric() || "_-./:".contains(c))) {
        let words = identifier_words(token);
        if words.len() > 1 {
            for word in words {
                out.push(' ');
                out.push_str(word);
            }
        }
    }
    out
}

/// At most so many bytes of a text, cut at a character.
fn head(text: &str, limit_bytes: usize) -> &str {
    let end = (0..=text.len().min(limit_bytes)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[..end]
}

/// `recall::SearchRequest`, `searchRequest` and `search_request` all give `search` and `request` among their words.
fn identifier_words(token: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in token.split(|c: char| !c.is_alphanumeric()) {
        let mut start = 0;
        let mut previous: Option<char> = None;
        for (at, c) in part.char_indices() {
            let humps = previous.is_some_and(|before| {
                (before.is_lowercase() && c.is_uppercase()) || before.is_numeric() != c.is_numeric()
            });
            if humps {
                words.push(&part[start..at]);
                start = at;
            }
            previous = Some(c);
        }
        if start < part.len() {
            words.push(&part[start..]);
        }
    }
    words
}

fn push_leaves(out: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(text) => {
            out.push('\n');
            out.push_str(text);
        }
        Value::Bool(_) | Value::Number(_) => {
            out.push(' ');
            out.push_str(&value.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| push_leaves(out, item)),
        Value::Object(members) => members.values().for_each(|member| push_leaves(out, member)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn splits_identifiers_at_case_digits_and_marks() {
        assert_eq!(identifier_words("parseConfig_v2"), ["parse", "Config", "v", "2"]);
        assert_eq!(identifier_words("recall::fuse"), ["recall", "fuse"]);
        assert_eq!(identifier_words("src/lib.rs"), ["src", "lib", "rs"]);
        assert_eq!(identifier_words("plain"), ["plain"]);
    }

    #[test]
    fn keeps_the_original_beside_the_words() {
        assert_eq!(searchable("call parseConfig now"), "call parseConfig now parse Config");
    }

    #[test]
    fn holds_the_whole_input_of_a_call() {
        let text = call_text("Bash", &json!({"command": "cargo test", "timeout": 5}), Some("ok"), None);
        assert_eq!(text, "Bash\ncargo test 5\nok");
        let long = call_text("Write", &json!({"content": "x".repeat(100_000)}), Some("done"), Some("no space"));
        assert!(long.ends_with("\nno space\ndone") && long.len() < 32 * 1024);
    }

    #[test]
    fn names_a_call_by_what_it_was_asked() {
        assert_eq!(call_headline("Bash", &json!({"description": "Run", "command": "cargo test"})), "Bash: cargo test");
        assert_eq!(call_headline("mcp__x__y", &json!({"a": "b"})), "mcp__x__y: b");
    }

    #[test]
    fn cuts_long_text_at_a_character() {
        let text = "é".repeat(MAX_INDEXED_BYTES);
        assert!(searchable(&text).len() <= MAX_INDEXED_BYTES);
    }
}
