//! What can be read of a Git repository by hand: where it is, which branch, which commit, which remote.
//!
//! No `git` is started: that alone would double what a hook costs. Worktrees and submodules are followed through their
//! `.git` files. `GIT_DIR` and its like are not looked at: they speak of one command, not of where the agent works.

mod config;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A file such as `HEAD` holds one line.
const MAX_LINE_FILE_BYTES: u64 = 4 * 1024;
const MAX_CONFIG_BYTES: u64 = 256 * 1024;
/// Some 60,000 references; above that the commit stays unknown rather than the hook slow.
const MAX_PACKED_REFS_BYTES: u64 = 4 * 1024 * 1024;
/// Git itself follows five symbolic references and no more.
const MAX_SYMBOLIC_DEPTH: usize = 5;

/// The repository an agent works in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The top folder of the working tree.
    pub(crate) root: PathBuf,
    /// The repository's own folder, the same for all its worktrees.
    pub(crate) common_dir: PathBuf,
    /// Without what could be a password or a token.
    pub(crate) remote_url: Option<String>,
    /// `None` while no branch is checked out.
    pub(crate) branch: Option<String>,
    /// `None` before the first commit.
    pub(crate) head: Option<String>,
    /// Whether this working tree is one more beside the repository's own.
    pub(crate) is_worktree: bool,
    pub(crate) instance: Instance,
}

/// What tells a repository from another one at the same place, and the same one at another place: facts of its file
/// `description`, which Git writes when it makes the repository and then never again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) created_at_us: Option<u64>,
    pub(crate) inode: Option<u64>,
}

impl Repository {
    /// The repository whose working tree holds that folder.
    pub(crate) fn around(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    fn at(root: &Path) -> Option<Self> {
        let git_dir = git_dir_of(root)?;
        let head_line = read_line(&git_dir.join("HEAD"))?;
        let (common_dir, is_worktree) = common_dir_of(&git_dir);
        let (branch, head) = resolve(&head_line, &common_dir);
        let remote_url =
            read_bounded(&common_dir.join("config"), MAX_CONFIG_BYTES).and_then(|text| config::remote_url(&text));
        let instance = Instance::of(&common_dir);
        Some(Self { root: root.to_owned(), common_dir, remote_url, branch, head, is_worktree, instance })
    }
}

/// The folder with this working tree's `HEAD`: `.git` itself, or where the file of that name points.
fn git_dir_of(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    let kind = std::fs::metadata(&dot_git).ok()?;
    if kind.is_dir() {
        return Some(dot_git);
    }
    let line = read_line(&dot_git)?;
    Some(root.join(line.strip_prefix("gitdir:")?.trim()))
}

/// The folder with references and config, and whether it is another than that of this working tree. Resolved, because it is
/// what tells that two worktrees are one repository.
fn common_dir_of(git_dir: &Path) -> (PathBuf, bool) {
    let (common_dir, is_worktree) = match read_line(&git_dir.join("commondir")) {
        Some(line) => (git_dir.join(line), true),
        None => (git_dir.to_owned(), false),
    };
    (std::fs::canonicalize(&common_dir).map(without_verbatim_prefix).unwrap_or(common_dir), is_worktree)
}

impl Instance {
    fn of(common_dir: &Path) -> Self {
        let Ok(file) = std::fs::metadata(common_dir.join("description")) else { return Self::default() };
        let since = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { created_at_us: since.and_then(|since| u64::try_from(since.as_micros()).ok()), inode: inode_of(&file) }
    }
}

#[cfg(unix)]
fn inode_of(file: &std::fs::Metadata) -> Option<u64> {
    // What the database keeps it in has a sign.
    Some(std::os::unix::fs::MetadataExt::ino(file)).filter(|inode| i64::try_from(*inode).is_ok())
}

#[cfg(not(unix))]
fn inode_of(_file: &std::fs::Metadata) -> Option<u64> {
    None
}

/// Windows resolves a path to a form that no other program writes.
fn without_verbatim_prefix(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(plain) if cfg!(windows) && !plain.starts_with("UNC\\") => PathBuf::from(plain),
        _ => path,
    }
}

/// Branch and commit that a `HEAD` of that content means.
fn resolve(head_line: &str, common_dir: &Path) -> (Option<String>, Option<String>) {
    let Some(reference) = symbolic_target(head_line) else {
        return (None, commit_in(head_line));
    };
    // What a repository with the reftable format writes for programs that read these files by hand.
    if reference == "refs/heads/.invalid" {
        return (None, None);
    }
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
    (Some(branch.to_owned()), commit_of(reference, common_dir))
}

fn commit_of(reference: &str, common_dir: &Path) -> Option<String> {
    let mut reference = reference.to_owned();
    for _ in 0..MAX_SYMBOLIC_DEPTH {
        let Some(line) = read_line(&common_dir.join(&reference)) else {
            return packed_commit_of(&reference, common_dir);
        };
        match symbolic_target(&line) {
            Some(target) => target.clone_into(&mut reference),
            None => return commit_in(&line),
        }
    }
    None
}

fn packed_commit_of(reference: &str, common_dir: &Path) -> Option<String> {
    let packed = read_bounded(&common_dir.join("packed-refs"), MAX_PACKED_REFS_BYTES)?;
    let commit = packed.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' '))?;
    commit_in(commit)
}

fn symbolic_target(line: &str) -> Option<&str> {
    let reference = line.strip_prefix("ref:")?.trim();
    let is_inside = reference.starts_with("refs/") && !reference.contains("..");
    is_inside.then_some(reference)
}

/// A commit's name is 40 hex digits, or 64 in a repository that uses SHA-256.
fn commit_in(line: &str) -> Option<String> {
    let is_commit = matches!(line.len(), 40 | 64) && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| line.to_owned())
}

fn read_line(path: &Path) -> Option<String> {
    let text = read_bounded(path, MAX_LINE_FILE_BYTES)?;
    Some(text.lines().next()?.trim_end().to_owned())
}

/// The file's text; `None` where it is missing or larger.
fn read_bounded(path: &Path, max_bytes: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(max_bytes + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= max_bytes).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789012345678901234567890123456789";

    fn check(head_line: &str, branch: Option<&str>, head: Option<&str>) {
        let (found_branch, found_head) = resolve(head_line, Path::new("/nowhere"));
        assert_eq!((found_branch.as_deref(), found_head.as_deref()), (branch, head));
    }

    #[test]
    fn has_no_branch_where_head_is_a_commit() {
        check(COMMIT, None, Some(COMMIT));
        check(&"a".repeat(64), None, Some(&"a".repeat(64)));
    }

    #[test]
    fn has_a_branch_and_no_commit_before_the_first_one() {
        check("ref: refs/heads/main", Some("main"), None);
        check("ref: refs/heads/feature/a", Some("feature/a"), None);
    }

    #[test]
    fn knows_nothing_where_head_cannot_be_understood() {
        check("ref: refs/heads/.invalid", None, None);
        check("ref: refs/heads/../../../x", None, None);
        check("0123", None, None);
        check("", None, None);
    }

    #[test]
    fn gives_up_on_references_that_point_at_each_other() {
        let folder = std::env::temp_dir().join(format!("agent-memory-git-loop-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("refs/heads")).unwrap();
        std::fs::write(folder.join("refs/heads/a"), "ref: refs/heads/a\n").unwrap();
        assert_eq!(commit_of("refs/heads/a", &folder), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
