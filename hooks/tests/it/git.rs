//! What the program reads of repositories that `git` made, compared with what `git` says of them.

use std::path::Path;

use crate::support::{Folder, PAYLOAD, hook, hook_in, output, run};

const REMOTE: &str = "git@example.com:acme/widgets.git";

#[test]
fn reads_a_repository_from_a_folder_inside_it() {
    let repository = repository();
    std::fs::create_dir_all(repository.path().join("src/deep")).unwrap();
    check(&repository.path().join("src/deep"), &Expected { remote_url: Some(REMOTE), ..at(repository.path()) });
}

#[test]
fn reads_the_project_that_cursor_names_wherever_the_hook_runs() {
    let (repository, elsewhere) = (repository(), Folder::new());
    let home = Folder::home_without_server();
    let mut hook = hook_in(&home, "postToolUse");
    run(hook.current_dir(elsewhere.path()).env("CURSOR_PROJECT_DIR", repository.path()), PAYLOAD.as_bytes());
    assert!(home.spooled().contains(&format!(r#""root":"{}""#, repository.path().display())), "{}", home.spooled());
}

#[test]
fn reads_a_commit_that_is_packed_away() {
    let repository = repository();
    git(repository.path(), &["pack-refs", "--all"]);
    assert!(!repository.path().join(".git/refs/heads/main").exists());
    check(repository.path(), &Expected { remote_url: Some(REMOTE), ..at(repository.path()) });
}

#[test]
fn has_no_branch_where_head_is_detached() {
    let repository = repository();
    git(repository.path(), &["checkout", "--quiet", "--detach"]);
    check(repository.path(), &Expected { branch: None, remote_url: Some(REMOTE), ..at(repository.path()) });
}

#[test]
fn has_no_commit_before_the_first() {
    let folder = Folder::new();
    git(folder.path(), &["init", "--quiet", "--initial-branch", "trunk"]);
    check(folder.path(), &Expected { branch: Some("trunk"), head: None, ..at(folder.path()) });
}

#[test]
fn knows_a_worktree_as_the_same_repository_on_another_branch() {
    let repository = repository();
    let worktrees = Folder::new();
    let worktree = worktrees.path().join("feature");
    git(repository.path(), &["worktree", "add", "--quiet", "-b", "feature/one", worktree.to_str().unwrap()]);
    git(&worktree, &["commit", "--quiet", "--allow-empty", "-m", "second"]);
    assert_ne!(git(&worktree, &["rev-parse", "HEAD"]), git(repository.path(), &["rev-parse", "HEAD"]));
    let expected =
        Expected { branch: Some("feature/one"), remote_url: Some(REMOTE), is_worktree: true, ..at(&worktree) };
    check(&worktree, &expected);
    assert_eq!(expected.common_dir, repository.path().join(".git").to_str().unwrap());
}

#[test]
fn reads_a_submodule_as_a_repository_of_its_own() {
    let (outer, inner) = (repository(), repository());
    let url = inner.path().to_str().unwrap();
    git(outer.path(), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "inner"]);
    let root = outer.path().join("inner");
    let expected = Expected { remote_url: Some(url), ..at(&root) };
    check(&root, &expected);
    assert_eq!(expected.common_dir, outer.path().join(".git/modules/inner").to_str().unwrap());
}

#[test]
fn keeps_credentials_to_itself() {
    let repository = repository();
    git(repository.path(), &["remote", "set-url", "origin", "https://me:secret@example.com/acme/widgets.git"]);
    let expected = Expected { remote_url: Some("https://example.com/acme/widgets.git"), ..at(repository.path()) };
    check(repository.path(), &expected);
}

#[test]
fn takes_no_folder_for_a_repository_that_git_would_not() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join(".git")).unwrap();
    assert!(envelope_from(folder.path()).contains(r#","git":null,"#));
    std::fs::remove_dir(folder.path().join(".git")).unwrap();
    folder.write(".git", "gitdir: nowhere\n");
    assert!(envelope_from(folder.path()).contains(r#","git":null,"#));
}

struct Expected<'a> {
    root: String,
    common_dir: String,
    remote_url: Option<&'a str>,
    branch: Option<&'a str>,
    head: Option<String>,
    is_worktree: bool,
}

/// What `git` itself says there, on `main` and without a remote.
fn at<'a>(folder: &Path) -> Expected<'a> {
    let has_commit = !git(folder, &["rev-list", "--all", "--max-count=1"]).is_empty();
    Expected {
        root: git(folder, &["rev-parse", "--show-toplevel"]),
        common_dir: git(folder, &["rev-parse", "--path-format=absolute", "--git-common-dir"]),
        remote_url: None,
        branch: Some("main"),
        head: has_commit.then(|| git(folder, &["rev-parse", "HEAD"])),
        is_worktree: false,
    }
}

#[track_caller]
fn check(folder: &Path, expected: &Expected<'_>) {
    let quoted = |text: Option<&str>| text.map_or("null".to_owned(), |text| format!(r#""{text}""#));
    let json = format!(
        r#","git":{{"root":"{}","common_dir":"{}","remote_url":{},"branch":{},"head":{},"worktree":{}{}}},"#,
        expected.root,
        expected.common_dir,
        quoted(expected.remote_url),
        quoted(expected.branch),
        quoted(expected.head.as_deref()),
        expected.is_worktree,
        instance_of(Path::new(&expected.common_dir)),
    );
    let envelope = envelope_from(folder);
    assert!(envelope.contains(&json), "{json}\n{envelope}");
}

/// When the repository was made, and its number on the disk.
#[cfg(unix)]
fn instance_of(common_dir: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(common_dir.join("description")).unwrap();
    format!(r#","created_at_us":{},"inode":{}"#, file.mtime() * 1_000_000 + file.mtime_nsec() / 1_000, file.ino())
}

#[test]
fn knows_when_there_is_no_telling_which_repository_it_is() {
    let repository = repository();
    std::fs::remove_file(repository.path().join(".git/description")).unwrap();
    assert!(envelope_from(repository.path()).contains(r#""created_at_us":null,"inode":null"#));
}

#[test]
fn sends_nothing_from_a_folder_that_is_excluded() {
    let repository = repository();
    let sends = |home: &Folder| {
        let mut command = hook();
        command
            .env("AGENT_MEMORY_HOME", home.path())
            .args(["claude-code", "PostToolUse"])
            .current_dir(repository.path());
        run(&mut command, PAYLOAD.as_bytes());
        std::fs::read_dir(home.path().join("spool")).is_ok_and(|mut files| files.next().is_some())
    };
    assert!(sends(&Folder::home_without_server()));
    for list in [repository.path().to_str().unwrap(), "remote:https://example.com/acme/widgets"] {
        let home = Folder::home_without_server();
        std::fs::create_dir(home.path().join("config")).unwrap();
        home.write("config/exclude", list);
        assert!(!sends(&home), "{list}");
    }
    repository.write(".agent-memory.toml", "# ours alone\ncapture = false\n");
    assert!(!sends(&Folder::home_without_server()));
}

fn envelope_from(folder: &Path) -> String {
    let home = Folder::home_without_server();
    let mut command = hook();
    command.env("AGENT_MEMORY_HOME", home.path()).args(["claude-code", "PostToolUse"]).current_dir(folder);
    // Of another repository, as in a Git hook that starts an agent.
    command.env("GIT_DIR", "/nowhere/.git");
    run(&mut command, PAYLOAD.as_bytes());
    home.spooled()
}

/// A repository with one commit on `main` and a remote.
fn repository() -> Folder {
    let folder = Folder::new();
    git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
    git(folder.path(), &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    git(folder.path(), &["remote", "add", "origin", REMOTE]);
    folder
}

#[track_caller]
fn git(folder: &Path, arguments: &[&str]) -> String {
    let settings = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
    output("git", &[&settings, arguments].concat(), folder)
}
