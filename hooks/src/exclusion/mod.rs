//! What must not be recorded: what the user's list names, and what a folder says of itself in its `.agent-memory.toml`.
//!
//! The rules of `memory::project::exclusion` a second time, because this program depends on nothing. Costs an `open` for the
//! list and one for each folder above the agent's.

mod remote;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::git::Repository;
use crate::home::{self, Home};

const REPOSITORY_FILE: &str = ".agent-memory.toml";
/// A larger file is none of ours.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Whether nothing that is done in that folder may be recorded.
pub(crate) fn excludes(home: &Home, folder: &Path, repository: Option<&Repository>) -> bool {
    let listed = match read_bounded(&home.exclude_file()) {
        Ok(list) => lists(&list, home::user_folder().as_deref(), &Place::of(folder, repository)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        // Nobody knows what it says.
        Err(_) => true,
    };
    listed || says_no_capture(folder, repository)
}

/// Where the agent works, as the list speaks of it.
struct Place {
    folder: String,
    remote: Option<String>,
}

impl Place {
    fn of(folder: &Path, repository: Option<&Repository>) -> Self {
        let remote = repository.and_then(|repository| remote::normalise(repository.remote_url.as_deref()?));
        Self { folder: folder.to_string_lossy().into_owned(), remote }
    }
}

/// One rule a line: a folder, `~` for the user's own, or `remote:` and a remote in any spelling; `#` begins a comment.
fn lists(list: &str, user_folder: Option<&Path>, place: &Place) -> bool {
    list.lines().map(|line| line.trim_start_matches('\u{feff}').trim()).any(|line| match line.strip_prefix("remote:") {
        _ if line.is_empty() || line.starts_with('#') => false,
        Some(named) => {
            let named = remote::normalise(named).or_else(|| remote::normalise(&format!("https://{}", named.trim())));
            matches!((named, &place.remote), (Some(named), Some(remote)) if covers(&parts_of(&named), &parts_of(remote)))
        }
        None => covers_folder(line, user_folder, &place.folder),
    })
}

fn covers_folder(line: &str, user_folder: Option<&Path>, folder: &str) -> bool {
    let pattern = match line.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => match user_folder {
            Some(user_folder) => format!("{}{rest}", user_folder.to_string_lossy()),
            None => return false,
        },
        _ => line.to_owned(),
    };
    let is_absolute = pattern.starts_with('/') || pattern.starts_with("**/") || Path::new(&pattern).is_absolute();
    let parts = parts_of(&pattern);
    is_absolute && !parts.is_empty() && covers(&parts, &parts_of(folder))
}

fn parts_of(path: &str) -> Vec<&str> {
    let is_separator = |character| character == '/' || (cfg!(windows) && character == '\\');
    path.split(is_separator).filter(|part| !part.is_empty() && *part != ".").collect()
}

/// Whether a pattern names that path or one above it.
fn covers(pattern: &[&str], path: &[&str]) -> bool {
    match pattern {
        [] => true,
        ["**", rest @ ..] => (0..=path.len()).any(|skipped| covers(rest, &path[skipped..])),
        [first, rest @ ..] => path.first().is_some_and(|part| is_like(first, part)) && covers(rest, &path[1..]),
    }
}

fn is_like(pattern: &str, part: &str) -> bool {
    match pattern.split_once('*') {
        None if cfg!(windows) => pattern.eq_ignore_ascii_case(part),
        None => pattern == part,
        Some((before, after)) => part.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| is_like(after, &rest[at..]))
        }),
    }
}

/// What the nearest `.agent-memory.toml` says that says anything: in the folder, above it, or in the repository to which the
/// worktree around it belongs.
fn says_no_capture(folder: &Path, repository: Option<&Repository>) -> bool {
    let wanted = |folder: &Path| folder.ancestors().find_map(|folder| wants_capture(&folder.join(REPOSITORY_FILE)));
    let of_worktree = || wanted(repository.filter(|repository| repository.is_worktree)?.common_dir.parent()?);
    wanted(folder).or_else(of_worktree) == Some(false)
}

fn wants_capture(file: &Path) -> Option<bool> {
    capture_in(&read_bounded(file).ok()?)
}

/// The value of the top-level key `capture`. The file is TOML, of which no more than this is read.
fn capture_in(text: &str) -> Option<bool> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let mut top_level = lines.take_while(|line| !line.starts_with('['));
    top_level.find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.split('#').next().unwrap_or_default();
        let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        match (bare(key).as_str(), bare(value).as_str()) {
            ("capture", "true") => Some(true),
            ("capture", "false") => Some(false),
            _ => None,
        }
    })
}

fn read_bounded(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, folder: &str, remote: Option<&str>) -> bool {
        let place = Place { folder: folder.to_owned(), remote: remote.and_then(remote::normalise) };
        lists(list, Some(Path::new("/home/dev")), &place)
    }

    #[test]
    fn a_folder_covers_itself_and_everything_in_it() {
        for list in ["/srv/secret", "/srv/secret/**", "# why\n\n/srv/secret/"] {
            assert!(check(list, "/srv/secret", None) && check(list, "/srv/secret/a/b", None), "{list}");
            assert!(!check(list, "/srv/secrets", None) && !check(list, "/srv", None), "{list}");
        }
        assert!(check("~/private/**", "/home/dev/private/x", None) && !check("~/private", "/home/other/private", None));
        assert!(!check("private\n/\n", "/private", None));
    }

    #[test]
    fn a_remote_is_known_in_every_spelling() {
        for list in
            ["remote:github.com/acme/secret", "remote: git@github.com:Acme/secret.git", "remote:github.com/acme/*"]
        {
            assert!(check(list, "/x", Some("https://github.com/acme/secret.git")), "{list}");
            assert!(
                !check(list, "/x", Some("https://github.com/other/secret.git")) && !check(list, "/x", None),
                "{list}"
            );
        }
    }

    #[test]
    fn reads_the_one_key_of_a_repositorys_file() {
        assert_eq!(capture_in("# no\n\"capture\"=false # said the boss"), Some(false));
        assert_eq!(capture_in("[other]\ncapture = false"), None);
    }
}
