//! What a call is about to do, in the form that triggers are matched against: the programs that a command runs, the files that a tool
//! changes, what it writes into them, or the input of any other tool.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::shell::{self, Line};

/// A class of tools: agents call the same thing by many names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    Bash,
    Edit,
    Write,
    NotebookEdit,
    /// By its own name.
    Other(String),
}

impl Tool {
    /// The names of shells, editors and writers are those that the agents' hooks send.
    pub fn named(name: &str) -> Self {
        const SHELLS: &str = "bash shell run_shell_command exec_command local_shell execute_command run_in_terminal runterminalcommand \
            run_terminal_cmd powershell terminal";
        const EDITORS: &str = "edit multiedit replace apply_patch editfiles edit_file search_replace str_replace \
            str_replace_editor str_replace_based_edit_tool replace_string_in_file insert_edit_into_file";
        const WRITERS: &str = "write write_file create_file createfile create";
        let lower = name.to_ascii_lowercase();
        let is_one_of = |names: &str| names.split_whitespace().any(|known| known == lower);
        match () {
            () if is_one_of(SHELLS) => Self::Bash,
            () if is_one_of(EDITORS) => Self::Edit,
            () if is_one_of(WRITERS) => Self::Write,
            () if lower == "notebookedit" => Self::NotebookEdit,
            () => Self::Other(name.to_owned()),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Bash => "Bash",
            Self::Edit => "Edit",
            Self::Write => "Write",
            Self::NotebookEdit => "NotebookEdit",
            Self::Other(name) => name,
        }
    }
}

/// What a call is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub tool: Tool,
    /// Each program that is run, as it was written.
    pub commands: Vec<String>,
    /// The same programs in the one spelling.
    pub spelt: Vec<String>,
    /// Relative to the repository, where they lie in it.
    pub paths: Vec<String>,
    /// What is written.
    pub contents: Vec<String>,
    /// Of a tool that is neither a shell nor an editor.
    pub input: Option<String>,
    /// The same for the same action, however it was spelt: 32 hexadecimal digits.
    pub key: String,
}

/// Of one text that is written so much is looked at, and of a command so much.
const MAX_CONTENT_BYTES: usize = 64 * 1024;
const MAX_COMMAND_BYTES: usize = 16 * 1024;
/// So much of an action is shown.
const MAX_SUMMARY_CHARS: usize = 300;

impl Action {
    /// Reads a call's tool and input; `root` is the repository that it works in.
    pub fn of(tool_name: &str, input: &Value, root: Option<&str>) -> Self {
        let tool = Tool::named(tool_name);
        let mut action = Self {
            tool,
            commands: Vec::new(),
            spelt: Vec::new(),
            paths: Vec::new(),
            contents: Vec::new(),
            input: None,
            key: String::new(),
        };
        let patch = patch_of(input);
        let mut given = Vec::new();
        match action.tool {
            Tool::Bash => {
                let command = shell::command_of(input).unwrap_or_default();
                let lines = shell::lines(&command[..command.floor_char_boundary(MAX_COMMAND_BYTES)]);
                for Line { written, spelt, given: with } in lines {
                    action.commands.push(written);
                    action.spelt.push(spelt);
                    given.push(with);
                }
                if let Some(patch) = patch {
                    action.read_patch(patch);
                }
            }
            Tool::Edit | Tool::Write | Tool::NotebookEdit => {
                if let Some(patch) = patch {
                    action.read_patch(patch);
                }
                action.read_edit(input);
            }
            Tool::Other(_) => action.input = Some(capped(&input.to_string()).to_owned()),
        }
        // By the paths as they were named: whoever asks later may know another root.
        action.key = action.key(&given);
        action.paths.iter_mut().for_each(|path| *path = relative(path, root));
        action
    }

    /// What it does, in a line or two.
    pub fn summary(&self) -> String {
        let parts: Vec<&str> = match self.tool {
            Tool::Other(_) => self.input.iter().map(String::as_str).collect(),
            _ => self.commands.iter().chain(&self.paths).map(String::as_str).collect(),
        };
        let text = parts.join("; ");
        let text = if text.is_empty() { self.tool.as_str() } else { &text };
        text.chars().take(MAX_SUMMARY_CHARS).collect()
    }

    /// The action as a text whose meaning can be compared.
    pub fn meaning(&self) -> String {
        format!("{}: {}", self.tool.as_str(), self.summary())
    }

    fn read_edit(&mut self, input: &Value) {
        const PATHS: [&str; 6] = ["file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file"];
        const TEXTS: [&str; 9] = [
            "content",
            "contents",
            "new_string",
            "newString",
            "new_str",
            "new_source",
            "file_text",
            "code_edit",
            "newText",
        ];
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        self.paths.extend(PATHS.iter().find_map(|name| text(input, name)));
        let edits = input.get("edits").and_then(Value::as_array).into_iter().flatten();
        for value in std::iter::once(input).chain(edits) {
            let written = TEXTS.iter().filter_map(|name| text(value, name));
            self.contents.extend(written.map(|text| capped(&text).to_owned()));
        }
    }

    /// `*** Update File: src/a.rs`, and lines that are added.
    fn read_patch(&mut self, patch: &str) {
        let mut added = String::new();
        for line in capped(patch).lines() {
            let named = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "]
                .iter()
                .find_map(|mark| line.trim_start().strip_prefix(mark));
            if let Some(path) = named {
                self.paths.push(path.trim().to_owned());
            } else if let Some(line) = line.strip_prefix('+') {
                added.push_str(line);
                added.push('\n');
            }
        }
        if !added.is_empty() {
            self.contents.push(added);
        }
    }

    fn key(&self, given: &[String]) -> String {
        let mut hash = Sha256::new();
        let mut add = |kind: &str, text: &str| {
            hash.update(kind);
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        add("tool", self.tool.as_str());
        for (line, given) in self.spelt.iter().zip(given) {
            add("command", line);
            add("given", given);
        }
        self.paths.iter().for_each(|path| add("path", path));
        self.contents.iter().for_each(|text| add("content", text));
        self.input.iter().for_each(|input| add("input", input));
        super::short_hex(&hash.finalize())
    }
}

/// A patch that is a tool's whole input, or a shell's command.
fn patch_of(input: &Value) -> Option<&str> {
    let named = ["input", "patch", "patchText", "command"].iter().find_map(|name| input.get(*name)?.as_str());
    named.or(input.as_str()).filter(|text| text.contains("*** Begin Patch"))
}

fn relative(path: &str, root: Option<&str>) -> String {
    let path = path.replace('\\', "/");
    let inside = root.and_then(|root| path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/'));
    inside.map(str::to_owned).unwrap_or(path)
}

fn capped(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_CONTENT_BYTES)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn command(command: &str) -> Action {
        Action::of("Bash", &json!({ "command": command, "description": "says" }), None)
    }

    #[test]
    fn the_same_action_has_the_same_key_however_it_is_spelt() {
        assert_eq!(command("git push -f").key, command("/usr/bin/git  push --force # again").key);
        assert_ne!(command("git push -f").key, command("git push --force-with-lease").key);
        assert_ne!(command("P=dev terraform destroy").key, command("P=prod terraform destroy").key);
        assert_ne!(command("git checkout x").key, command("git checkout -- x").key);
        assert_eq!(command("git push -f").summary(), "git push -f");
    }

    #[test]
    fn reads_edits_writes_and_patches() {
        let edit = json!({"file_path": "/w/src/a.rs", "old_string": "x", "new_string": "y"});
        let action = Action::of("Edit", &edit, Some("/w"));
        assert_eq!((action.paths, action.contents), (vec!["src/a.rs".to_owned()], vec!["y".to_owned()]));
        let patch = json!({"command": "*** Begin Patch\n*** Update File: b.txt\n-x\n+z\n*** End Patch"});
        for tool in ["apply_patch", "Bash"] {
            let action = Action::of(tool, &patch, None);
            assert_eq!(
                (&*action.paths, &*action.contents),
                (&["b.txt".to_owned()][..], &["z\n".to_owned()][..]),
                "{tool}"
            );
            assert!(action.commands.is_empty());
        }
        let other = Action::of("mcp__db__query", &json!({"sql": "drop table x"}), None);
        assert_eq!(other.input.as_deref(), Some(r#"{"sql":"drop table x"}"#));
    }
}
