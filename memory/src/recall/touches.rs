//! What a call did with files: which paths its input names, and whether it changed them, read them, or ran a command about them.

use serde_json::Value;

use crate::shell::{command_of, steps};

/// What in a tool's name tells that it writes; the form is Postgres' and serves both sides.
pub(super) const EDITING_TOOLS: &str = "edit|write|patch|replace|create|insert|delete|rename|move";
/// Members of an input that hold a file's text: what is said there is not touched.
pub(super) const TEXTS: [&str; 12] = [
    "content",
    "contents",
    "new_string",
    "old_string",
    "new_str",
    "old_str",
    "new_source",
    "file_text",
    "edits",
    "code",
    "diff",
    "instructions",
];
/// The lines by which a patch says what it changes.
const PATCH_HEADERS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];

/// What was done with a file; the first is the most telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    Edited,
    /// A command named it.
    Ran,
    Read,
}

impl Touch {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Ran => "ran",
            Self::Read => "read",
        }
    }
}

/// The paths that a call names, as it writes them.
pub(super) fn touches(tool_name: &str, input: &Value) -> Vec<(String, Touch)> {
    let mut found: Vec<_> = patched(input).into_iter().map(|path| (path, Touch::Edited)).collect();
    if let Some(command) = command_of(input) {
        for step in steps(&command) {
            let edited = step.edited();
            let named = if step.only_reads() { Touch::Read } else { Touch::Ran };
            found.extend(edited.iter().map(|path| ((*path).to_owned(), Touch::Edited)));
            let others = step.words.iter().filter(|word| !edited.contains(&word.as_str()));
            found.extend(others.map(|word| (word.clone(), named)));
        }
        return found;
    }
    let is_view = input.get("command").and_then(Value::as_str) == Some("view");
    let touch = if is_editing_tool(tool_name) && !is_view { Touch::Edited } else { Touch::Read };
    if let Value::Object(members) = input {
        for value in members.iter().filter(|(name, _)| names_files(name)).map(|(_, value)| value) {
            let mut paths = Vec::new();
            push_texts(&mut paths, value);
            found.extend(paths.into_iter().map(|path| (path, touch)));
        }
    }
    found
}

pub(super) fn is_editing_tool(tool_name: &str) -> bool {
    let name = tool_name.to_lowercase();
    EDITING_TOOLS.split('|').any(|word| name.contains(word))
}

fn names_files(member: &str) -> bool {
    let member = member.to_lowercase();
    !TEXTS.contains(&member.as_str())
        && (["path", "file", "uri"].iter().any(|word| member.contains(word))
            || ["source", "destination"].contains(&member.as_str()))
}

fn push_texts(out: &mut Vec<String>, value: &Value) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| push_texts(out, item)),
        _ => {}
    }
}

/// The files that a patch names, wherever in the input it stands.
fn patched(input: &Value) -> Vec<String> {
    let text = match input {
        Value::String(text) => Some(text.as_str()),
        _ => ["command", "cmd", "input", "patch"].iter().find_map(|name| input.get(*name)?.as_str()),
    };
    let Some(text) = text.filter(|text| text.contains("*** Begin Patch")) else { return Vec::new() };
    text.lines()
        .filter_map(|line| PATCH_HEADERS.iter().find_map(|header| line.trim_start().strip_prefix(header)))
        .map(|path| path.trim().to_owned())
        .collect()
}

/// A file that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WantedPath {
    parts: Vec<String>,
    is_absolute: bool,
}

impl WantedPath {
    /// `None` where no file is named.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = plain(path);
        let parts = parts(&path);
        (!parts.is_empty()).then_some(Self { parts, is_absolute: is_absolute(&path) })
    }

    /// The file's name without its folders.
    pub(super) fn name(&self) -> &str {
        self.parts.last().expect("a path has a part")
    }

    /// The file's name with the folder that it is in, as far as that is known.
    pub(super) fn tail(&self) -> String {
        self.parts[self.parts.len().saturating_sub(2)..].join("/")
    }

    /// Whether this is the file that a call names, which worked in a folder of a repository.
    pub(super) fn is(&self, named: &str, working_folder: Option<&str>, root: Option<&str>) -> bool {
        let named = plain(named);
        let mut found = parts(&named);
        if !is_absolute(&named)
            && let Some(folder) = working_folder
        {
            found.splice(0..0, parts(&plain(folder)));
            resolve(&mut found);
        }
        if !self.is_absolute {
            return ends_with(&found, &self.parts);
        }
        if found.len() == self.parts.len() && ends_with(&found, &self.parts) {
            return true;
        }
        // The same file in another checkout.
        let root = root.map(|root| parts(&plain(root))).unwrap_or_default();
        !root.is_empty()
            && self.parts.len() > root.len()
            && ends_with(&self.parts[..root.len()], &root)
            && !ends_with(&found[..root.len().min(found.len())], &root)
            && ends_with(&found, &self.parts[root.len()..])
    }
}

/// A path without what only surrounds it: quotes, `file://`, the line after it.
fn plain(path: &str) -> String {
    let path = path.trim().trim_matches(['"', '\'', '`', '(', ')', ',']);
    let path = path.strip_prefix("file://").unwrap_or(path).replace('\\', "/");
    // `lib.rs:42:7`, but not the drive in `c:/`.
    let mut kept = path.as_str();
    while let Some((before, line)) = kept.rsplit_once(':') {
        if before.len() < 2 || line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        kept = before;
    }
    kept.to_owned()
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.as_bytes().get(1) == Some(&b':')
}

fn parts(path: &str) -> Vec<String> {
    let mut parts: Vec<_> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
    resolve(&mut parts);
    parts
}

/// Takes `..` and what stands before it out.
fn resolve(parts: &mut Vec<String>) {
    let mut resolved: Vec<String> = Vec::with_capacity(parts.len());
    for part in parts.drain(..) {
        if part == ".." && resolved.last().is_some_and(|last| last != "..") {
            resolved.pop();
        } else {
            resolved.push(part);
        }
    }
    *parts = resolved;
}

/// Whoever asks may not know which letters are large, and some file systems do not either.
fn ends_with(parts: &[String], end: &[String]) -> bool {
    parts.len() >= end.len()
        && parts[parts.len() - end.len()..].iter().zip(end).all(|(one, two)| one.to_lowercase() == two.to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(wanted: &str, named: &str, expected: bool) {
        let wanted = WantedPath::of(wanted).unwrap();
        assert_eq!(wanted.is(named, Some("/home/x/p"), Some("/home/x/p")), expected, "{wanted:?} {named}");
    }

    #[test]
    fn finds_a_file_by_any_of_its_paths() {
        for named in ["/home/x/p/src/lib.rs", "src/lib.rs", "./src/lib.rs:42", "src/../src/lib.rs", "'src/lib.rs'"] {
            check("src/lib.rs", named, true);
            check("lib.rs", named, true);
            check("/home/x/p/src/lib.rs", named, true);
        }
        check("src/lib.rs", "/home/x/p/tests/lib.rs", false);
        check("src/lib.rs", "lib.rs", false);
        check("src/lib.rs", "mysrc/lib.rs", false);
        check("lib.rs", "src/lib.rs.orig", false);
    }

    #[test]
    fn finds_the_same_file_in_another_checkout() {
        check("/home/x/p/src/lib.rs", "/home/x/p-worktree/src/lib.rs", true);
        check("/home/x/p/src/lib.rs", "/home/x/p/other/src/lib.rs", false);
        check("/home/y/src/lib.rs", "/home/x/p/src/lib.rs", false);
    }

    #[test]
    fn resolves_a_path_in_the_folder_where_the_call_worked() {
        let wanted = WantedPath::of("src/lib.rs").unwrap();
        assert!(wanted.is("lib.rs", Some("/home/x/p/src"), None));
        assert!(wanted.is("../src/lib.rs", Some("/home/x/p/tests"), None));
        assert!(!wanted.is("lib.rs", None, None));
    }

    #[test]
    fn tells_edits_from_reads_and_commands() {
        let touched = |tool, input: Value, path: &str| {
            let wanted = WantedPath::of(path).unwrap();
            let found = touches(tool, &input).into_iter().filter(|(named, _)| wanted.is(named, None, None));
            found.map(|(_, touch)| touch).min()
        };
        for (tool, input, expected) in [
            ("Edit", json!({"file_path": "/w/a.rs", "new_string": "x"}), Some(Touch::Edited)),
            ("Read", json!({"file_path": "/w/a.rs"}), Some(Touch::Read)),
            ("Write", json!({"file_path": "/w/b.rs", "content": "a.rs"}), None),
            ("str_replace_editor", json!({"command": "view", "path": "/w/a.rs"}), Some(Touch::Read)),
            ("apply_patch", json!({"command": "*** Begin Patch\n*** Update File: a.rs\n"}), Some(Touch::Edited)),
            ("Bash", json!({"command": "cat a.rs | head"}), Some(Touch::Read)),
            ("Bash", json!({"command": "rustfmt a.rs"}), Some(Touch::Ran)),
            ("Bash", json!({"command": "sed -i s/x/y/ a.rs && cat a.rs"}), Some(Touch::Edited)),
            ("Bash", json!({"command": "echo 'see a.rs for it'"}), None),
        ] {
            assert_eq!(touched(tool, input.clone(), "a.rs"), expected, "{tool} {input}");
        }
    }
}
