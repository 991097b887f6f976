//! What must not be recorded: what the user's list names, and what a folder says of itself in its `.agent-memory.toml`.
//!
//! The hook follows the same rules by code of its own (`hooks/src/exclusion.rs`), and a test holds the two equal; here they
//! serve what reaches us without that hook. `docs/configuration.md` holds the format.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::remote;

/// The user's list, in the folder `config` of the home.
pub const EXCLUDE_FILE: &str = "exclude";
/// What a folder says of itself and of everything in it.
pub const REPOSITORY_FILE: &str = ".agent-memory.toml";

/// A larger file is none of ours.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The user's list, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    rules: Vec<Rule>,
    /// Lines that name nothing: neither an absolute folder nor a remote.
    pub misunderstood: Vec<String>,
    /// The list is there and cannot be read. Then nothing is recorded, for nobody knows what it says.
    is_unreadable: bool,
}

/// A pattern's parts. It covers what it names and everything below; `*` stands for anything within a part, `**` for any parts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Folder(Vec<String>),
    Remote(Vec<String>),
}

impl Exclusions {
    /// Reads the list in that folder; one that is not there excludes nothing.
    pub fn load(config_dir: &Path) -> Self {
        match read_bounded(&config_dir.join(EXCLUDE_FILE)) {
            Ok(text) => Self::parse(&text, crate::home::Surroundings::of_process().home.map(PathBuf::from).as_deref()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(_) => Self { is_unreadable: true, ..Self::default() },
        }
    }

    /// One rule a line: a folder, `~` for the user's own, or `remote:` and a remote in any spelling; `#` begins a comment.
    pub fn parse(text: &str, user_home: Option<&Path>) -> Self {
        let mut exclusions = Self::default();
        for line in text.lines().map(|line| line.trim_start_matches('\u{feff}').trim()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match rule_of(line, user_home) {
                Some(rule) => exclusions.rules.push(rule),
                None => exclusions.misunderstood.push(line.to_owned()),
            }
        }
        exclusions
    }

    /// Whether nothing that was done in that folder may be recorded. Looks for `.agent-memory.toml` on this machine's disk.
    pub fn excludes(&self, folder: &Path, remote: Option<&str>) -> bool {
        self.lists(folder, remote) || says_no_capture(folder)
    }

    /// Whether the list alone names that folder, one above it, or the remote.
    pub fn lists(&self, folder: &Path, remote: Option<&str>) -> bool {
        if self.is_unreadable {
            return true;
        }
        if self.rules.is_empty() {
            return false;
        }
        let folder = folder.to_string_lossy();
        let remote = remote.and_then(remote::normalise);
        self.rules.iter().any(|rule| match rule {
            Rule::Folder(pattern) => covers(pattern, &parts_of(&folder)),
            Rule::Remote(pattern) => remote.as_deref().is_some_and(|remote| covers(pattern, &parts_of(remote))),
        })
    }
}

fn rule_of(line: &str, user_home: Option<&Path>) -> Option<Rule> {
    let owned = |text: &str| parts_of(text).into_iter().map(str::to_owned).collect::<Vec<_>>();
    if let Some(remote) = line.strip_prefix("remote:") {
        let remote = remote.trim();
        let normalised = remote::normalise(remote).or_else(|| remote::normalise(&format!("https://{remote}")))?;
        return Some(Rule::Remote(owned(&normalised)));
    }
    let folder = match line.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
            format!("{}{rest}", user_home?.to_string_lossy())
        }
        _ => line.to_owned(),
    };
    let is_absolute = folder.starts_with('/') || folder.starts_with("**/") || Path::new(&folder).is_absolute();
    let parts = owned(&folder);
    // The root alone would exclude everything: that is what AGENT_MEMORY_DISABLE is for.
    (is_absolute && !parts.is_empty()).then_some(Rule::Folder(parts))
}

fn parts_of(path: &str) -> Vec<&str> {
    let is_separator = |character| character == '/' || (cfg!(windows) && character == '\\');
    path.split(is_separator).filter(|part| !part.is_empty() && *part != ".").collect()
}

/// Whether a pattern names that path or one above it.
fn covers(pattern: &[String], path: &[&str]) -> bool {
    match pattern {
        [] => true,
        [any, rest @ ..] if any == "**" => (0..=path.len()).any(|skipped| covers(rest, &path[skipped..])),
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
fn says_no_capture(folder: &Path) -> bool {
    let wanted = |folder: &Path| folder.ancestors().find_map(|folder| wants_capture(&folder.join(REPOSITORY_FILE)));
    let said = wanted(folder).or_else(|| wanted(&main_checkout(folder)?));
    said == Some(false)
}

/// The main checkout of the worktree around a folder, if there is one.
fn main_checkout(folder: &Path) -> Option<PathBuf> {
    let dot_git = folder.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let text = read_bounded(&dot_git).ok()?;
    let git_dir = dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim());
    let trees = git_dir.parent().filter(|trees| trees.ends_with("worktrees"))?;
    trees.parent()?.parent().map(Path::to_owned)
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
    std::fs::File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(list: &str, folder: &str) -> bool {
        Exclusions::parse(list, Some(Path::new("/home/dev"))).lists(Path::new(folder), None)
    }

    #[test]
    fn a_folder_covers_itself_and_everything_in_it() {
        for list in ["/srv/secret", "/srv/secret/", "/srv/secret/**", "# why\n\n/srv/secret"] {
            assert!(lists(list, "/srv/secret") && lists(list, "/srv/secret/a/b"), "{list}");
            assert!(!lists(list, "/srv/secrets") && !lists(list, "/srv"), "{list}");
        }
        assert!(lists("~/private/**", "/home/dev/private/x") && !lists("~/private", "/home/other/private"));
        assert!(lists("~", "/home/dev/x"));
    }

    #[test]
    fn stars_stand_for_parts_of_names_and_for_folders() {
        assert!(
            lists("/srv/customer-*/src", "/srv/customer-7/src/a") && !lists("/srv/customer-*/src", "/srv/customer-7")
        );
        assert!(lists("**/secret", "/a/b/secret/c") && !lists("**/secret", "/a/b/secrets"));
        assert!(lists("/srv/*", "/srv/a") && !lists("/srv/*", "/srv"));
    }

    #[test]
    fn a_remote_is_known_in_every_spelling() {
        let lists = |list: &str, remote| Exclusions::parse(list, None).lists(Path::new("/x"), Some(remote));
        for list in
            ["remote:github.com/acme/secret", "remote: git@github.com:Acme/secret.git", "remote:github.com/acme/*"]
        {
            assert!(lists(list, "https://github.com/acme/secret.git"), "{list}");
            assert!(!lists(list, "https://github.com/other/secret.git"), "{list}");
        }
    }

    #[test]
    fn says_which_lines_it_does_not_understand() {
        let list = Exclusions::parse("private\n/\nremote:\n/srv/a", None);
        assert_eq!(list.misunderstood, ["private", "/", "remote:"]);
        assert!(list.lists(Path::new("/srv/a"), None));
    }

    #[test]
    fn reads_the_one_key_of_a_repositorys_file() {
        for (text, expected) in [
            ("capture = false", Some(false)),
            ("# no\n\"capture\"=false # said the boss", Some(false)),
            ("name = \"x\"\n capture=true", Some(true)),
            ("[other]\ncapture = false", None),
            ("# capture = false", None),
            ("capture = maybe", None),
        ] {
            assert_eq!(capture_in(text), expected, "{text}");
        }
    }

    #[test]
    fn the_nearest_file_counts_and_a_worktree_listens_to_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let (main, tree) = (folder.path().join("main"), folder.path().join("tree"));
        let inside = main.join("a/b");
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(main.join(".git/worktrees/tree")).unwrap();
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", main.join(".git/worktrees/tree").display())).unwrap();
        let none = Exclusions::default();
        assert!(!none.excludes(&inside, None));
        std::fs::write(main.join(REPOSITORY_FILE), "capture = false\n").unwrap();
        assert!(none.excludes(&inside, None) && none.excludes(&main, None) && none.excludes(&tree, None));
        assert!(!none.excludes(folder.path(), None));
        std::fs::write(main.join("a").join(REPOSITORY_FILE), "capture = true\n").unwrap();
        assert!(!none.excludes(&inside, None) && none.excludes(&main, None));
    }

    #[test]
    fn a_list_that_cannot_be_read_excludes_everything() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!Exclusions::load(folder.path()).lists(Path::new("/x"), None));
        std::fs::create_dir(folder.path().join(EXCLUDE_FILE)).unwrap();
        assert!(Exclusions::load(folder.path()).lists(Path::new("/x"), None));
    }
}
