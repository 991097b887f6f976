//! Whether a call goes to paths that somebody had told of. A model that makes up paths looks right in every other number.

use serde_json::Value;

use crate::dataset::audit::{absolute_paths, is_on_every_machine};
use crate::dataset::for_each_string;
use crate::dataset::row::Function;

/// Arguments that are paths, as agents name them; so is every argument whose name ends in `path` or `paths`.
const PATH_ARGUMENTS: [&str; 9] =
    ["file", "files", "filename", "file_name", "directory", "dir", "folder", "cwd", "workdir"];
/// Arguments that are read for absolute paths.
const COMMAND_ARGUMENTS: [&str; 2] = ["command", "cmd"];

/// The paths that a call names: whole arguments, and the absolute ones in commands.
pub(super) fn paths(call: &Function) -> Vec<&str> {
    let mut paths = Vec::new();
    for (name, value) in &call.arguments {
        let name = name.to_ascii_lowercase();
        if name.ends_with("path") || name.ends_with("paths") || PATH_ARGUMENTS.contains(&name.as_str()) {
            for_each_string(value, &mut |path| paths.push(path));
        } else if COMMAND_ARGUMENTS.contains(&name.as_str()) {
            for_each_string(value, &mut |text| paths.extend(absolute_paths(text)));
        }
    }
    paths.retain(|path| !path.trim().is_empty());
    paths
}

/// Whether a path stands in a prompt, or in the recorded call: as it is written, or, of an absolute one, a folder and the rest apart,
/// as where the working directory is named once and a listing goes on from there.
pub(super) fn is_told(path: &str, prompt: &str, recorded: Option<&Function>) -> bool {
    let path = path.trim();
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = if path.len() > 1 { path.trim_end_matches(['/', '\\']) } else { path };
    if matches!(path, "" | "." | "/" | "~") || is_on_every_machine(path) || stands_in(path, prompt) {
        return true;
    }
    let is_recorded = recorded.is_some_and(|call| paths(call).iter().any(|recorded| stands_in(path, recorded)));
    let is_absolute = path.starts_with('/') || path.get(1..2) == Some(":");
    let mut borders = path.match_indices(['/', '\\']).filter(|(at, _)| *at > 0);
    is_recorded
        || (is_absolute && borders.any(|(at, _)| stands_in(&path[..at], prompt) && stands_in(&path[at + 1..], prompt)))
}

/// Whether a text has a path, and not only a longer word with the path in it. In JSON a backslash is doubled.
fn stands_in(path: &str, text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let stands = |path: &str| {
        text.match_indices(path).any(|(at, _)| {
            let mut after = text[at + path.len()..].chars();
            let (next, second) = (after.next(), after.next());
            let ends = match next {
                Some('.') => second.is_none_or(|c| !is_word(c)),
                Some(next) => !is_word(next),
                None => true,
            };
            ends && text[..at].chars().next_back().is_none_or(|c| !is_word(c) && c != '.')
        })
    };
    !path.is_empty() && (stands(path) || (path.contains('\\') && stands(&escaped(path))))
}

fn escaped(path: &str) -> String {
    Value::from(path).to_string().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: &Value) -> Function {
        Function { name: "Read".into(), arguments: arguments.as_object().unwrap().clone() }
    }

    #[test]
    fn finds_the_paths_that_a_call_names() {
        let arguments = json!({
            "file_path": "src/a.rs", "filePath": "b.rs", "paths": ["c.rs"], "cwd": "/srv/widgets",
            "command": "cat /srv/widgets/d.rs > /tmp/out/e", "content": "see /srv/widgets/f.rs", "limit": 4, "dir": " ",
        });
        assert_eq!(paths(&call(&arguments)), ["src/a.rs", "b.rs", "c.rs", "/srv/widgets", "/srv/widgets/d.rs"]);
    }

    #[test]
    fn knows_a_path_that_the_prompt_tells_of() {
        let prompt = "You are in /srv/widgets.\nRead src/main.rs, then `docs/a.md`: \"C:\\\\work\\\\b.rs\"";
        for path in [
            "src/main.rs",
            "./src/main.rs",
            "main.rs",
            "docs/a.md",
            "docs/",
            "/srv/widgets",
            "/srv/widgets/src/main.rs",
            "C:\\work\\b.rs",
            ".",
            "/tmp/made/up",
        ] {
            assert!(is_told(path, prompt, None), "{path}");
        }
    }

    #[test]
    fn knows_a_path_that_nobody_told_of() {
        let prompt = "You are in /srv/widgets.\nRead src/main.rs, data.rs.bak and .envrc";
        for path in [
            "path/to/your/file.txt",
            "src/main",
            "ain.rs",
            "data.rs",
            "envrc",
            "a.rs",
            "widgets/main.rs",
            "/srv/gadgets/src/main.rs",
            "/srv/widgets/src/lib.rs",
        ] {
            assert!(!is_told(path, prompt, None), "{path}");
        }
    }

    #[test]
    fn takes_the_recorded_path_for_known() {
        let recorded = call(&json!({"file_path": "/srv/widgets/new.rs"}));
        assert!(is_told("/srv/widgets/new.rs", "nothing", Some(&recorded)));
        assert!(!is_told("/srv/widgets/other.rs", "nothing", Some(&recorded)));
    }
}
