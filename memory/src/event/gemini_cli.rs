//! Gemini CLI's hook events (written against 0.61.0).
//!
//! It gives neither calls nor turns an id: calls belong to the prompt before them, and keys are derived from the content and
//! the payload's timestamp. A command that failed says so only in the text that the model gets.

use serde_json::Value;

use super::common::failed;
use super::wire::{NotKept, Wire, not_kept};
use super::{EventKind, Outcome, lenient};

const SHELL: &str = "run_shell_command";
/// What the person is shown of a command that failed without a word.
const SILENT: &str = "Command exited with code: ";

const NOT_KEPT: [(&str, NotKept); 5] = [
    ("BeforeModel", "a request to the model"),
    ("AfterModel", "a part of an answer; the whole is told at the end"),
    ("BeforeToolSelection", "a request to the model"),
    ("PreCompress", "it comes before every request to the model, compressed or not"),
    ("Notification", "a message to the person"),
];

pub(super) fn read(wire: &mut Wire) -> Result<EventKind, NotKept> {
    match wire.event().as_str() {
        "SessionStart" => Ok(wire.session_started()),
        "SessionEnd" => Ok(wire.session_ended()),
        "BeforeAgent" => {
            if let Some(Value::String(prompt)) = wire.payload.get_mut("prompt") {
                *prompt = without_context(prompt).to_owned();
            }
            wire.prompt()
        }
        "AfterAgent" => wire.turn_ended(wire.string("prompt_response")),
        "AfterTool" => {
            let response = wire.take("tool_response").unwrap_or_default();
            let shown = shown(&response);
            let tool_name = wire.id("tool_name").unwrap_or_default();
            wire.call(&shown, outcome(&tool_name, &response, &shown))
        }
        name => not_kept(&NOT_KEPT, name),
    }
}

/// What the person said, without what hooks told: the client puts that of a session's start before the first prompt, and that of a
/// prompt behind it.
pub(crate) fn without_context(prompt: &str) -> &str {
    const OPEN: &str = "<hook_context>";
    const CLOSE: &str = "</hook_context>";
    let mut said = prompt;
    while let Some((_, rest)) = said.trim_start().strip_prefix(OPEN).and_then(|told| told.split_once(CLOSE)) {
        said = rest.trim_start();
    }
    while let Some((rest, _)) = said.trim_end().strip_suffix(CLOSE).and_then(|told| told.rsplit_once(OPEN)) {
        said = rest.trim_end();
    }
    said
}

/// What the model was given, else what the person was shown.
fn shown(response: &Value) -> Value {
    let given = lenient::member(response, "llm_content").filter(|content| content.as_str() != Some(""));
    match given.or_else(|| lenient::member(response, "return_display")) {
        Some(Value::String(text)) => Value::String(unwrapped(text).to_owned()),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

/// The text inside the mark that the client puts around what it does not vouch for.
fn unwrapped(text: &str) -> &str {
    let inside = text.trim().strip_prefix("<untrusted_context>");
    inside.and_then(|text| text.strip_suffix("</untrusted_context>")).map_or(text, str::trim)
}

fn outcome(tool_name: &str, response: &Value, shown: &Value) -> Outcome {
    if let Some(error) = lenient::member(response, "error") {
        return failed(error);
    }
    let display = lenient::string(response, "return_display").unwrap_or_default();
    let text = shown.as_str().unwrap_or_default();
    let exit_code = (tool_name == SHELL).then(|| exit_code(text, &display)).flatten();
    match exit_code {
        None | Some(0) => Outcome::Succeeded,
        Some(code) => {
            let printed = if display.starts_with(SILENT) { "" } else { display.trim_end() };
            failed(&Value::String(format!("Exit code {code}\n{printed}").trim_end().to_owned()))
        }
    }
}

/// The exit code among the lines that the client writes below the command's own output. What a command prints may look just
/// like them, so that what the person was shown, which is the output alone, is skipped first.
fn exit_code(text: &str, display: &str) -> Option<i64> {
    if let Some(code) = display.strip_prefix(SILENT) {
        return code.trim().parse().ok();
    }
    let output = display.trim_end();
    let below = match text.find(output) {
        Some(at) if !output.is_empty() => &text[at + output.len()..],
        _ => text,
    };
    let code = below.lines().rev().find_map(|line| line.strip_prefix("Exit Code: "))?;
    code.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(content: &str, display: &str, expected: Option<&str>) {
        let response = json!({"llmContent": content, "returnDisplay": display});
        let error = match outcome(SHELL, &response, &shown(&response)) {
            Outcome::Failed { error } => Some(error),
            _ => None,
        };
        assert_eq!(error.as_deref(), expected, "{content}");
    }

    #[test]
    fn takes_what_hooks_told_for_no_part_of_a_prompt() {
        let told = "<hook_context>a brief</hook_context>\n\nFix it\n\n<hook_context>two hits</hook_context>";
        assert_eq!(without_context(told), "Fix it");
        assert_eq!(without_context("What is <hook_context> there?"), "What is <hook_context> there?");
    }

    #[test]
    fn finds_the_exit_code_below_the_output() {
        let told =
            "<untrusted_context>\nOutput: no such target\nExit Code: 2\nProcess Group PGID: 7\n</untrusted_context>";
        check(told, "no such target", Some("Exit code 2\nno such target"));
        let silent = "<untrusted_context>\nOutput: (empty)\nExit Code: 1\nProcess Group PGID: 7\n</untrusted_context>";
        check(silent, "Command exited with code: 1", Some("Exit code 1"));
        check("Output: fine\nExit Code: 0\nSignal: (none)", "fine", None);
        check("Output: fine\nProcess Group PGID: 7", "fine", None);
    }

    #[test]
    fn takes_no_line_that_the_command_printed_for_its_exit_code() {
        check("Output: log:\nExit Code: 1\nProcess Group PGID: 7", "log:\nExit Code: 1", None);
    }

    #[test]
    fn takes_the_words_of_a_file_for_no_exit_code() {
        let response = json!({"llmContent": "Exit Code: 1", "returnDisplay": ""});
        assert_eq!(outcome("read_file", &response, &shown(&response)), Outcome::Succeeded);
    }

    #[test]
    fn fails_where_there_is_an_error() {
        let response = json!({"llmContent": "x", "error": {"message": "not found", "type": "file_not_found"}});
        assert_eq!(outcome("read_file", &response, &json!("x")), Outcome::Failed { error: "not found".into() });
    }
}
