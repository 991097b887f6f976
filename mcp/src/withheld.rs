//! File texts that lost a secret are not shown: a model that copies one into a file writes the placeholder over the secret.

use memory::redact;
use serde_json::Value;

/// Members of a tool's input that hold a file's text, whole or in parts.
const FILE_TEXTS: [&str; 8] =
    ["content", "new_string", "old_string", "new_str", "old_str", "new_source", "file_text", "edits"];

const WITHHELD: &str = "(left out: this text held a secret, which was never stored; read the file itself)";

/// The input of a call, without file texts in which something was taken out. Commands and other members stay: there the
/// placeholder says what to fill in.
pub(crate) fn without_cleaned_files(mut input: Value) -> Value {
    withhold_patch(&mut input);
    if let Value::Object(members) = &mut input {
        members.values_mut().for_each(withhold_patch);
        for name in FILE_TEXTS {
            if let Some(text) = members.get_mut(name).filter(|text| holds_placeholder(text)) {
                *text = WITHHELD.into();
            }
        }
    }
    input
}

/// A patch is a file's text whatever the member is called.
fn withhold_patch(value: &mut Value) {
    if value.as_str().is_some_and(|text| text.contains("*** Begin Patch") && redact::is_cleaned(text)) {
        *value = WITHHELD.into();
    }
}

fn holds_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => redact::is_cleaned(text),
        Value::Array(items) => items.iter().any(holds_placeholder),
        Value::Object(members) => members.values().any(holds_placeholder),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_out_a_file_text_that_lost_a_secret() {
        let text = redact::clean("DB_PASSWORD=hunter2-Zx81-qq").into_owned();
        assert!(redact::is_cleaned(&text), "{text}");
        let shown = without_cleaned_files(json!({"file_path": "/w/.env", "content": text}));
        assert_eq!(shown, json!({"file_path": "/w/.env", "content": WITHHELD}));
        let shown =
            without_cleaned_files(json!({"file_path": "/w/.env", "edits": [{"old_string": "a", "new_string": text}]}));
        assert_eq!(shown["edits"], WITHHELD);
        let patch = format!("*** Begin Patch\n*** Update File: .env\n+{text}\n*** End Patch");
        assert_eq!(without_cleaned_files(json!({ "command": patch }))["command"], WITHHELD);
    }

    #[test]
    fn leaves_everything_else_as_it_is() {
        let command = redact::clean("mysql --password=hunter2-Zx81-qq widgets").into_owned();
        for input in [json!({"command": command}), json!({"file_path": "/w/a", "content": "fn main() {}"}), json!("ls")]
        {
            assert_eq!(without_cleaned_files(input.clone()), input);
        }
    }
}
