//! What a document can be found by: the text that is indexed for each kind, its lexemes, and what a query looks for.
//!
//! Pure functions: `tokens` cuts, `stems` reduces, `lexemes` writes what is indexed, `query` what is looked for. Ranking is
//! `recall`'s.

mod lexemes;
mod query;
mod stems;
mod tokens;

use serde_json::Value;

pub use lexemes::Lexemes;
pub(crate) use lexemes::quoted;
pub use query::{Query, Term};

/// Which version of this analysis a row of the index was made by: raise it with any change that makes other lexemes of a text, and
/// the rows of former versions are made again.
pub const VERSION: i16 = 1;

/// The lexemes of this much text stay far below Postgres' limit of 1 MB for a tsvector.
const MAX_INDEXED_BYTES: usize = 48 * 1024;
/// What of a call's input counts: the content of a written file must not crowd out what the call gave back.
const MAX_INPUT_BYTES: usize = 24 * 1024;

/// The text of a prompt and the answer it got.
pub fn prompt_text(prompt: Option<&str>, answer: Option<&str>) -> String {
    [prompt, answer].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// What every call matches whose text holds these words one after the other, as a `tsquery`. `None`: there is no word in it.
pub(crate) fn in_a_row(text: &str) -> Option<String> {
    query::phrase(text, &stems::Stems::of(text))
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

/// As much of a text as is indexed.
fn indexed(text: &str) -> &str {
    head(text, MAX_INDEXED_BYTES)
}

/// At most so many bytes of a text, cut at a character.
fn head(text: &str, limit_bytes: usize) -> &str {
    let end = (0..=text.len().min(limit_bytes)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[..end]
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
        // What names a thing comes before what it holds: the path of a long file is found too.
        Value::Object(members) => {
            let (long, short): (Vec<_>, Vec<_>) = members.values().partition(|member| is_long(member));
            short.into_iter().chain(long).for_each(|member| push_leaves(out, member));
        }
    }
}

fn is_long(value: &Value) -> bool {
    /// No path, name or pattern is longer.
    const MAX_NAME_BYTES: usize = 1024;
    match value {
        Value::String(text) => text.len() > MAX_NAME_BYTES,
        Value::Array(_) | Value::Object(_) => true,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn holds_the_whole_input_of_a_call() {
        let text = call_text("Bash", &json!({"command": "cargo test", "timeout": 5}), Some("ok"), None);
        assert_eq!(text, "Bash\ncargo test 5\nok");
        let long = call_text("Write", &json!({"content": "x".repeat(100_000)}), Some("done"), Some("no space"));
        assert!(long.ends_with("\nno space\ndone") && long.len() < 32 * 1024);
        let long = call_text("Write", &json!({"content": "x".repeat(100_000), "file_path": "/w/a.rs"}), None, None);
        assert!(long.starts_with("Write\n/w/a.rs\nxxx"), "a long file is found by its path");
    }

    #[test]
    fn names_a_call_by_what_it_was_asked() {
        assert_eq!(call_headline("Bash", &json!({"description": "Run", "command": "cargo test"})), "Bash: cargo test");
        assert_eq!(call_headline("mcp__x__y", &json!({"a": "b"})), "mcp__x__y: b");
    }

    #[test]
    fn indexes_the_beginning_of_a_long_text() {
        let text = "é".repeat(MAX_INDEXED_BYTES);
        assert!(indexed(&text).len() <= MAX_INDEXED_BYTES);
    }
}
