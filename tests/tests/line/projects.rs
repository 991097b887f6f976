//! Whose is it: real repositories in every shape that agents work in, through the real hook, to the project in the journal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sqlx::FromRow;
use tests::conversation::Conversation;
use tests::stack::Stack;
use tests::wait;

/// One row of the table: what is done, where an agent then works, and whose that is.
struct Case {
    what: &'static str,
    /// Words of a command, each line in the folder named before its colon; `TOP` is the folder of the test.
    before: &'static [&'static str],
    /// Below the folder of the test, unless it is absolute.
    folder: &'static str,
    /// Equal letters are one project.
    whose: &'static str,
    name: &'static str,
    is_worktree: bool,
}

const MAIN: Case = Case { what: "", before: &[], folder: "", whose: "", name: "", is_worktree: false };

/// In this order: each row finds the disk as those before it left it.
const CASES: &[Case] = &[
    Case {
        what: "the main checkout",
        before: &[
            ".: git init --quiet --initial-branch=main widgets",
            "widgets: git commit --quiet --allow-empty -m first",
            "widgets: git remote add origin git@example.com:acme/widgets.git",
        ],
        folder: "widgets",
        whose: "A",
        name: "widgets",
        ..MAIN
    },
    Case {
        what: "a folder in it",
        before: &["widgets: mkdir src"],
        folder: "widgets/src",
        whose: "A",
        name: "widgets",
        ..MAIN
    },
    Case {
        what: "a clone by https, with credentials",
        before: &[
            ".: git clone --quiet widgets by-https",
            "by-https: git remote set-url origin https://user:secret@EXAMPLE.com/acme/widgets",
        ],
        folder: "by-https",
        whose: "A",
        name: "widgets",
        ..MAIN
    },
    Case {
        what: "a clone by ssh",
        before: &[
            ".: git clone --quiet widgets by-ssh",
            "by-ssh: git remote set-url origin ssh://git@example.com:22/acme/widgets.git/",
        ],
        folder: "by-ssh",
        whose: "A",
        name: "widgets",
        ..MAIN
    },
    Case {
        what: "a worktree",
        before: &["widgets: git worktree add --quiet -b one ../trees/one"],
        folder: "trees/one",
        whose: "A",
        name: "widgets",
        is_worktree: true,
    },
    Case {
        what: "the same worktree after it was removed",
        before: &["widgets: git worktree remove ../trees/one"],
        folder: "trees/one",
        whose: "A",
        name: "widgets",
        ..MAIN
    },
    Case {
        what: "a worktree of a bare repository",
        before: &[
            ".: git clone --quiet --bare widgets stored.git",
            "stored.git: git worktree add --quiet ../stored-tree main",
        ],
        folder: "stored-tree",
        whose: "B",
        name: "stored",
        is_worktree: true,
    },
    Case {
        what: "another worktree of the bare repository",
        before: &["stored.git: git worktree add --quiet -b two ../trees/two"],
        folder: "trees/two",
        whose: "B",
        name: "stored",
        is_worktree: true,
    },
    Case {
        what: "a sub-agent's worktree",
        before: &["widgets: git worktree add --quiet -b seven .claude/worktrees/agent-7"],
        folder: "widgets/.claude/worktrees/agent-7",
        whose: "A",
        name: "widgets",
        is_worktree: true,
    },
    Case {
        what: "the sub-agent's worktree after it was removed",
        before: &["widgets: git worktree remove .claude/worktrees/agent-7"],
        folder: "widgets/.claude/worktrees/agent-7",
        whose: "A",
        name: "widgets",
        ..MAIN
    },
    Case {
        what: "a sub-agent's worktree that was never seen while it was there",
        before: &[],
        folder: "widgets/.claude/worktrees/agent-8/src",
        whose: "A",
        name: "widgets",
        ..MAIN
    },
    Case {
        what: "a submodule",
        before: &[
            ".: git init --quiet --initial-branch=main library",
            "library: git commit --quiet --allow-empty -m first",
            "widgets: git submodule --quiet add TOP/library modules/library",
            "widgets/modules/library: git remote set-url origin git@example.com:acme/library.git",
        ],
        folder: "widgets/modules/library",
        whose: "S",
        name: "library",
        ..MAIN
    },
    Case {
        what: "a submodule of a repository on this disk",
        before: &["widgets: git submodule --quiet add TOP/library modules/second"],
        folder: "widgets/modules/second",
        whose: "S2",
        name: "second",
        ..MAIN
    },
    Case {
        what: "the main checkout after its remote was renamed",
        before: &["widgets: git remote set-url origin git@example.com:acme/gadgets.git"],
        folder: "widgets",
        whose: "A",
        name: "gadgets",
        ..MAIN
    },
    Case {
        what: "a clone that knows the old remote",
        before: &[],
        folder: "by-https",
        whose: "A",
        name: "gadgets",
        ..MAIN
    },
    Case {
        what: "a new clone that knows the new remote",
        before: &[
            ".: git clone --quiet widgets renamed",
            "renamed: git remote set-url origin https://example.com/acme/gadgets.git",
        ],
        folder: "renamed",
        whose: "A",
        name: "gadgets",
        ..MAIN
    },
    Case {
        what: "a checkout that moved, with a remote",
        before: &[".: mv renamed moved-with-remote"],
        folder: "moved-with-remote",
        whose: "A",
        name: "gadgets",
        ..MAIN
    },
    Case {
        what: "a repository without a remote",
        before: &[".: git init --quiet alone"],
        folder: "alone",
        whose: "P",
        name: "alone",
        ..MAIN
    },
    Case {
        what: "a checkout that moved, without a remote",
        before: &[".: mv alone moved-alone"],
        folder: "moved-alone",
        whose: "P",
        name: "alone",
        ..MAIN
    },
    Case {
        what: "the same after it got a remote",
        before: &["moved-alone: git remote add origin git@example.com:acme/alone.git"],
        folder: "moved-alone",
        whose: "P",
        name: "alone",
        ..MAIN
    },
    Case {
        what: "another repository without a remote where one was before",
        before: &[".: git init --quiet alone"],
        folder: "alone",
        whose: "Q",
        name: "alone",
        ..MAIN
    },
    Case {
        what: "a third one at the same place",
        before: &[".: rm -rf alone", ".: git init --quiet alone"],
        folder: "alone",
        whose: "R",
        name: "alone",
        ..MAIN
    },
    Case {
        what: "another repository cloned to where one was before",
        before: &[
            ".: rm -rf by-ssh",
            ".: git clone --quiet library by-ssh",
            "by-ssh: git remote set-url origin git@example.com:acme/other.git",
        ],
        folder: "by-ssh",
        whose: "O",
        name: "other",
        ..MAIN
    },
    Case {
        what: "a bare folder",
        before: &[],
        folder: "/srv/agent-memory-tests/notes",
        whose: "N",
        name: "notes",
        ..MAIN
    },
    Case {
        what: "a bare folder in a bare folder",
        before: &[],
        folder: "/srv/agent-memory-tests/notes/old",
        whose: "N2",
        name: "old",
        ..MAIN
    },
    Case { what: "the home folder", before: &[], folder: "/home/dev", whose: "U", name: "(unfiled)", ..MAIN },
    Case {
        what: "a temporary folder",
        before: &[".: mkdir loose"],
        folder: "loose",
        whose: "U",
        name: "(unfiled)",
        ..MAIN
    },
    Case {
        what: "a folder for temporary files of another system",
        before: &[],
        folder: "/private/var/folders/ab/T/x",
        whose: "U",
        name: "(unfiled)",
        ..MAIN
    },
];

#[tokio::test]
async fn every_checkout_belongs_to_its_repository_and_every_repository_to_itself() -> Result<()> {
    let stack = Stack::running().await?;
    let top = made(&stack.scratch().join("disk"))?;
    let mut seen: BTreeMap<&str, i64> = BTreeMap::new();
    for case in CASES {
        for line in case.before {
            shell(&top, line).with_context(|| format!("preparing {}", case.what))?;
        }
        let found = work_in(&stack, &top.join(case.folder)).await.with_context(|| case.what.to_owned())?;
        let what = case.what;
        let expected = *seen.entry(case.whose).or_insert(found.project_id);
        assert_eq!(found.project_id, expected, "{what} belongs to {}, not to {}", case.whose, found.name);
        assert_eq!(found.name, case.name, "{what}");
        let worktree = case.is_worktree.then(|| top.join(case.folder).display().to_string());
        assert_eq!(found.worktree, worktree, "{what}");
        assert!(!found.identity_key.contains("secret"), "{}", found.identity_key);
    }
    let mut different: Vec<i64> = seen.values().copied().collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), seen.len(), "different repositories are different projects: {seen:?}");
    Ok(())
}

#[tokio::test]
async fn worktrees_are_projects_of_their_own_for_those_who_want_that() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    stack.set("AGENT_MEMORY_WORKTREES", "separate");
    stack.start_server().await?;
    let top = made(&stack.scratch().join("disk"))?;
    shell(&top, ".: git init --quiet widgets")?;
    shell(&top, "widgets: git commit --quiet --allow-empty -m first")?;
    shell(&top, "widgets: git worktree add --quiet -b one ../one")?;
    let main = work_in(&stack, &top.join("widgets")).await?;
    let tree = work_in(&stack, &top.join("one")).await?;
    assert_ne!(main.project_id, tree.project_id);
    assert_eq!((main.name.as_str(), tree.name.as_str()), ("widgets", "one"));
    assert_eq!(work_in(&stack, &top.join("one")).await?.project_id, tree.project_id);
    shell(&top, "widgets: git worktree remove ../one")?;
    assert_eq!(work_in(&stack, &top.join("one")).await?.project_id, tree.project_id, "also when it is gone");
    Ok(())
}

#[derive(Debug, FromRow)]
struct Found {
    project_id: i64,
    name: String,
    identity_key: String,
    worktree: Option<String>,
}

/// An agent starts a session in that folder, or in one that is gone; its hook tells the server, or the spool does.
async fn work_in(stack: &Stack, folder: &Path) -> Result<Found> {
    let session = Conversation::new(folder);
    stack.hook(&session.starts()).await?;
    wait::until("the session's recording", async || {
        let query = "select project_id, project.name, identity_key, worktree
                     from mem_sessions session join mem_projects project on project.id = session.project_id
                     where external_id = $1";
        let found = sqlx::query_as(query).bind(&session.session_id).fetch_optional(stack.database().pool()).await;
        found.context("looking for the session")
    })
    .await
}

/// Runs `folder: program arguments` below the folder of the test.
pub(crate) fn shell(top: &Path, line: &str) -> Result<()> {
    let (folder, words) = line.split_once(": ").context("a line without a folder")?;
    let words = words.replace("TOP", &top.display().to_string());
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().context("a line without a program")?);
    command
        .args(words)
        .current_dir(top.join(folder))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let settings = [("user.name", "dev"), ("user.email", "dev@example.com"), ("protocol.file.allow", "always")];
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (index, (key, value)) in settings.into_iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{index}"), key).env(format!("GIT_CONFIG_VALUE_{index}"), value);
    }
    let output = command.output().with_context(|| format!("running `{line}`"))?;
    ensure!(output.status.success(), "`{line}` failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Makes a folder, and gives its name without links in it: that is how a program sees where it is.
pub(crate) fn made(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    Ok(folder.canonicalize()?)
}
