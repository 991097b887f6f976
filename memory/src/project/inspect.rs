//! What git says of a folder on this machine, for what is recorded after the fact: a transcript knows its folder and no more.
//!
//! Hooks read `.git` by themselves because a child costs them too much; here `git` itself is asked, once a folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use super::{Checkout, GitCheckout, Instance, ProjectPolicy, WorktreePolicy, places};

/// The checkout around a folder as it is now. Of a folder that is gone, the nearest that is left above it is asked; where git
/// knows nothing, or is not installed, only the folder is known. Branch and commit are left out: today's say nothing about then.
///
/// Blocks for two short processes at the first call for a folder.
pub fn inspect(folder: &Path) -> Checkout {
    static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Checkout>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(checkout) = known().get(folder) {
        return checkout.clone();
    }
    let checkout = Checkout { folder: Some(folder.to_string_lossy().into_owned()), git: git_around(folder) };
    known().insert(folder.to_owned(), checkout.clone());
    checkout
}

fn git_around(folder: &Path) -> Option<GitCheckout> {
    let existing = folder.ancestors().find(|folder| folder.is_dir())?;
    let answer = git(existing, &["rev-parse", "--show-toplevel", "--git-common-dir", "--absolute-git-dir"])?;
    let mut lines = answer.lines();
    let (root, common_dir, git_dir) = (lines.next()?, lines.next()?, lines.next()?);
    // The common folder may be told relative to where git ran.
    let common_dir = without_verbatim_prefix(std::fs::canonicalize(existing.join(common_dir)).ok()?);
    let git_dir = without_verbatim_prefix(std::fs::canonicalize(git_dir).ok()?);
    let is_gone = existing != folder;
    // Whoever has a repository in the home folder does not mean what was once somewhere in it.
    if is_gone && places::is_unfiled_itself(root, &ProjectPolicy::of_process(WorktreePolicy::Shared)) {
        return None;
    }
    Some(GitCheckout {
        // Git writes slashes everywhere, hooks what the system writes.
        root: if cfg!(windows) { root.replace('/', "\\") } else { root.to_owned() },
        remote_url: remote_url(existing),
        is_worktree: Some(git_dir != common_dir),
        instance: instance_of(&common_dir),
        common_dir: common_dir.to_string_lossy().into_owned(),
        branch: None,
        head: None,
    })
}

/// The URL of `origin`, or else of the first remote that has one.
fn remote_url(folder: &Path) -> Option<String> {
    let answer = git(folder, &["config", "--get-regexp", r"^remote\..*\.url$"])?;
    let remotes = || answer.lines().filter_map(|line| line.split_once(' '));
    let (_, url) = remotes().find(|(key, _)| *key == "remote.origin.url").or_else(|| remotes().next())?;
    Some(url.to_owned())
}

fn instance_of(common_dir: &Path) -> Instance {
    let Ok(file) = std::fs::metadata(common_dir.join("description")) else { return Instance::default() };
    let since = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Instance { created_at_us: since.and_then(|since| i64::try_from(since.as_micros()).ok()), inode: inode_of(&file) }
}

#[cfg(unix)]
fn inode_of(file: &std::fs::Metadata) -> Option<i64> {
    i64::try_from(std::os::unix::fs::MetadataExt::ino(file)).ok()
}

#[cfg(not(unix))]
fn inode_of(_file: &std::fs::Metadata) -> Option<i64> {
    None
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    // They speak of one command, not of where an agent worked.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_CEILING_DIRECTORIES"] {
        command.env_remove(variable);
    }
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Windows resolves a path to a form that no other program writes.
fn without_verbatim_prefix(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(plain) if cfg!(windows) && !plain.starts_with("UNC\\") => PathBuf::from(plain),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path, arguments: &[&str]) {
        assert!(git(folder, arguments).is_some(), "git {arguments:?}");
    }

    #[test]
    fn finds_the_repository_of_a_folder_and_of_one_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap().join("widgets");
        std::fs::create_dir(&root).unwrap();
        run(&root, &["init", "--quiet"]);
        run(&root, &["remote", "add", "origin", "git@example.com:acme/widgets.git"]);
        let git = inspect(&root).git.unwrap();
        assert_eq!((Path::new(&git.root), Path::new(&git.common_dir)), (root.as_path(), root.join(".git").as_path()));
        assert_eq!(git.remote_url.as_deref(), Some("git@example.com:acme/widgets.git"));
        assert!(git.is_worktree == Some(false) && git.instance.created_at_us.is_some(), "{git:?}");

        let gone = inspect(&root.join("gone/src"));
        assert_eq!(gone.folder, Some(root.join("gone/src").to_string_lossy().into_owned()));
        assert_eq!(gone.git, Some(git));
    }

    #[test]
    fn knows_only_the_folder_where_there_is_no_repository() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(inspect(folder.path()).git, None);
    }
}
