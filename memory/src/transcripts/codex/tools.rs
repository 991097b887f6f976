//! Codex' tools as its hooks name them: whatever the model calls its shell, the hook says `Bash` with a command.

use serde_json::{Value, json};

use super::super::json::{string_of, value_of};
use super::line::Payload;

/// How Codex begins its answer to a call that it did not carry out.
const NOT_DONE: [&str; 4] =
    ["unsupported call:", "failed to parse function arguments", "apply_patch verification failed", "aborted by user"];

/// How a call ended, as far as it is known.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Ending {
    pub(super) exit_code: Option<i64>,
    /// `Some(false)`: Codex says that it failed, whatever the code.
    pub(super) success: Option<bool>,
    pub(super) output: Option<String>,
    pub(super) duration_ms: Option<i64>,
    /// The command goes on in the background.
    pub(super) is_running: bool,
    /// The person did not let it run.
    pub(super) is_refused: bool,
}

impl Ending {
    /// Adds what another line says of the same call; what is known stays.
    pub(super) fn or(self, other: Self) -> Self {
        let is_over = self.exit_code.is_some() || other.exit_code.is_some();
        Self {
            exit_code: self.exit_code.or(other.exit_code),
            success: self.success.or(other.success),
            output: self.output.or(other.output),
            duration_ms: self.duration_ms.or(other.duration_ms),
            is_running: !is_over && (self.is_running || other.is_running),
            is_refused: self.is_refused || other.is_refused,
        }
    }
}

/// Tool name and input as a hook has them.
pub(super) fn call_of(payload: &Payload<'_>) -> Option<(String, Value)> {
    let kind = payload.kind.get()?;
    if kind == "local_shell_call" {
        let action = payload.action.and_then(value_of)?;
        return Some(("Bash".to_owned(), json!({ "command": command_of(&action)? })));
    }
    let name = payload.name.get()?;
    let raw = payload.arguments.or(payload.input);
    let input = raw.map_or(Value::Null, |raw| match string_of(raw) {
        // Arguments are JSON inside a string, a custom tool's input is text.
        Some(text) => serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned())),
        None => value_of(raw).unwrap_or_default(),
    });
    match name {
        "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec" => {
            Some(("Bash".to_owned(), json!({ "command": command_of(&input)? })))
        }
        "apply_patch" => {
            let patch = input.get("input").or_else(|| input.get("patch")).unwrap_or(&input).clone();
            Some((name.to_owned(), json!({ "command": patch })))
        }
        _ => {
            let namespace = payload.namespace.get().unwrap_or_default().trim_end_matches("__");
            let name = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}__{name}") };
            Some((name, if input.is_null() { json!({}) } else { input }))
        }
    }
}

/// The command of a shell call: a text, or a program with arguments, of which a shell's script is the command.
fn command_of(input: &Value) -> Option<String> {
    match input.get("cmd").or_else(|| input.get("command"))? {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words[..] {
                [shell, "-c" | "-lc", script] if shell.ends_with("sh") => Some(script.to_owned()),
                _ => Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
            }
        }
        _ => None,
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// What the model was given back: text, JSON inside a string, or blocks.
pub(super) fn ending_of(output: &Value) -> Ending {
    match output {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) if inner.get("output").is_some() => ending_of_object(&inner),
            _ => ending_of_text(text),
        },
        Value::Object(_) => ending_of_object(output),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
            ending_of_text(&texts.collect::<Vec<_>>().join("\n"))
        }
        _ => Ending::default(),
    }
}

fn ending_of_object(output: &Value) -> Ending {
    let metadata = output.get("metadata");
    let number = |name: &str| metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_f64);
    let inner = output.get("output").or_else(|| output.get("content")).map(ending_of).unwrap_or_default();
    Ending {
        exit_code: number("exit_code").map(|code| code as i64),
        success: output.get("success").and_then(Value::as_bool),
        duration_ms: number("duration_seconds").map(|seconds| (seconds * 1_000.0).round() as i64),
        ..Ending::default()
    }
    .or(inner)
}

/// Codex puts lines of its own before what a command printed, up to `Output:`.
fn ending_of_text(text: &str) -> Ending {
    let mut ending = Ending { output: Some(text.to_owned()), ..Ending::default() };
    if let Some((head, output)) = text.split_once("\nOutput:\n") {
        let is_head = head.lines().all(|line| line.contains(':') || line.starts_with("Process "));
        if is_head && head.len() < 600 {
            ending.output = Some(output.to_owned());
            for line in head.lines() {
                if let Some(code) = line.strip_prefix("Process exited with code ").or(line.strip_prefix("Exit code: "))
                {
                    ending.exit_code = code.trim().parse().ok();
                }
                ending.is_running |= line.starts_with("Process running with session ID");
                if let Some(seconds) = line.strip_prefix("Wall time: ").and_then(|rest| rest.split(' ').next()) {
                    ending.duration_ms = seconds.parse::<f64>().ok().map(|seconds| (seconds * 1_000.0).round() as i64);
                }
            }
        }
    } else if NOT_DONE.iter().any(|start| text.starts_with(start)) || text == "aborted" {
        ending.success = Some(false);
    } else if text.contains("rejected by user") && text.len() < 200 {
        ending.is_refused = true;
    }
    ending
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_call(payload: &Value, name: &str, input: &Value) {
        let text = payload.to_string();
        let payload: Payload<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!(call_of(&payload), Some((name.to_owned(), input.clone())), "{text}");
    }

    #[test]
    fn names_every_shell_as_the_hook_does() {
        let command = json!({ "command": "ls -la" });
        check_call(
            &json!({"type": "function_call", "name": "exec_command", "arguments": r#"{"cmd": "ls -la", "workdir": "/w"}"#}),
            "Bash",
            &command,
        );
        check_call(
            &json!({"type": "function_call", "name": "shell", "arguments": r#"{"command": ["bash", "-lc", "ls -la"]}"#}),
            "Bash",
            &command,
        );
        check_call(
            &json!({"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-la"]}}),
            "Bash",
            &command,
        );
        check_call(
            &json!({"type": "function_call", "name": "shell", "arguments": r#"{"command": ["echo", "it's"]}"#}),
            "Bash",
            &json!({ "command": r"echo 'it'\''s'" }),
        );
    }

    #[test]
    fn names_patches_and_tools_of_servers() {
        check_call(
            &json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch"}),
            "apply_patch",
            &json!({ "command": "*** Begin Patch" }),
        );
        check_call(
            &json!({"type": "function_call", "name": "apply_patch", "arguments": r#"{"input": "*** Begin Patch"}"#}),
            "apply_patch",
            &json!({ "command": "*** Begin Patch" }),
        );
        for (namespace, name) in [("mcp__memory__", "search"), ("mcp__memory", "search"), ("", "mcp__memory__search")] {
            check_call(
                &json!({"type": "function_call", "namespace": namespace, "name": name, "arguments": r#"{"query": "x"}"#}),
                "mcp__memory__search",
                &json!({ "query": "x" }),
            );
        }
    }

    fn check_ending(output: &Value, exit_code: Option<i64>, text: &str) {
        let ending = ending_of(output);
        assert_eq!((ending.exit_code, ending.output.as_deref()), (exit_code, Some(text)), "{output}");
    }

    #[test]
    fn takes_what_a_command_printed_from_what_codex_says_of_it() {
        check_ending(
            &json!("Chunk ID: 5802c0\nWall time: 0.2500 seconds\nProcess exited with code 1\nOutput:\nno\n"),
            Some(1),
            "no\n",
        );
        check_ending(&json!("Exit code: 2\nWall time: 1 seconds\nOutput:\nx"), Some(2), "x");
        check_ending(
            &json!(r#"{"output": "ok\n", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}"#),
            Some(0),
            "ok\n",
        );
        check_ending(&json!("plain\nOutput:\nstays"), None, "plain\nOutput:\nstays");
        check_ending(&json!([{"type": "input_text", "text": "one"}, {"type": "input_image"}]), None, "one");
    }

    #[test]
    fn knows_a_call_that_was_not_carried_out() {
        let refused =
            "apply_patch verification failed: Failed to read file to update /w/a.txt: No such file or directory";
        for text in [refused, "unsupported call: apply_patch", "aborted"] {
            assert_eq!(ending_of(&json!(text)).success, Some(false), "{text}");
        }
        assert_eq!(ending_of(&json!("all is well")).success, None);
    }

    #[test]
    fn tells_a_command_that_goes_on_in_the_background() {
        let running = ending_of(&json!("Wall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n"));
        assert!(running.is_running);
        assert!(!running.or(Ending { exit_code: Some(0), ..Ending::default() }).is_running);
    }
}
