//! What a person decides about projects, while the server runs: merge and undo, split, alias, and what is not recorded; and that
//! a search in one project never shows another's.

use std::path::Path;

use anyhow::{Context, Result};
use memory::project::Exclusions;
use memory::store::{self, ProjectError, SplitBy};
use serde_json::json;
use tests::conversation::Conversation;
use tests::mcp_client::{OverHttp, Peer};
use tests::stack::Stack;
use tests::wait;

use crate::projects::{made, shell};

#[tokio::test]
async fn nothing_of_one_project_shows_in_a_search_of_another_also_after_a_merge_and_its_undoing() -> Result<()> {
    let stack = Stack::running().await?;
    let db = stack.database().pool();
    let top = made(&stack.scratch().join("disk"))?;
    for name in ["apples", "pears"] {
        shell(&top, &format!(".: git init --quiet {name}"))?;
        shell(&top, &format!("{name}: git remote add origin git@example.com:acme/{name}.git"))?;
    }
    let (apples, pears) = (top.join("apples"), top.join("pears"));
    ask(&stack, &apples, "harvest alpha").await?;
    ask(&stack, &pears, "harvest beta").await?;
    assert_eq!(search(&stack, "apples").await?, ["harvest alpha"]);
    assert_eq!(search(&stack, "pears").await?, ["harvest beta"]);

    let merged = store::merge_projects(db, "pears", "apples").await?;
    assert_eq!((merged.from.as_str(), merged.into.as_str(), merged.sessions), ("pears", "apples", 1));
    assert_eq!(search(&stack, "apples").await?, ["harvest alpha", "harvest beta"]);
    // The server holds the merged project's id; what comes by it belongs to the other at once.
    ask(&stack, &pears, "harvest gamma").await?;
    assert_eq!(search(&stack, "apples").await?, ["harvest alpha", "harvest beta", "harvest gamma"]);
    assert_eq!(search(&stack, "pears").await?, search(&stack, "apples").await?, "its old name leads there");
    assert!(matches!(store::merge_projects(db, "pears", "apples").await, Err(ProjectError::SameProject(_))));
    assert_eq!(store::list_projects(db).await?.len(), 1);
    assert_eq!(store::list_project_merges(db).await?[0].id, merged.merge);

    let undone = store::undo_merge(db, merged.merge).await?;
    assert_eq!(undone.sessions, 2, "also the session that came since");
    assert_eq!(search(&stack, "apples").await?, ["harvest alpha"]);
    assert_eq!(search(&stack, "pears").await?, ["harvest beta", "harvest gamma"]);
    wait::until("the server's notice of it", async || {
        ask(&stack, &pears, "harvest delta").await?;
        Ok(search(&stack, "pears").await?.contains(&"harvest delta".to_owned()).then_some(()))
    })
    .await?;
    assert!(matches!(store::undo_merge(db, merged.merge).await, Err(ProjectError::UnknownMerge(_))));
    let acts: Vec<String> = sqlx::query_scalar("select action from mem_audit_log order by id").fetch_all(db).await?;
    assert_eq!(acts, ["merge_projects", "undo_merge"]);
    Ok(())
}

#[tokio::test]
async fn a_merge_into_a_project_that_is_merged_itself_is_undone_in_any_order() -> Result<()> {
    let stack = Stack::running().await?;
    let db = stack.database().pool();
    for name in ["one", "two", "three"] {
        ask(&stack, Path::new(&format!("/srv/agent-memory-tests/{name}")), &format!("harvest {name}")).await?;
    }
    let first = store::merge_projects(db, "one", "two").await?;
    let second = store::merge_projects(db, "two", "three").await?;
    assert_eq!(search(&stack, "three").await?, ["harvest one", "harvest three", "harvest two"]);
    assert_eq!(search(&stack, "one").await?.len(), 3);
    store::undo_merge(db, first.merge).await?;
    assert_eq!(search(&stack, "one").await?, ["harvest one"]);
    assert_eq!(search(&stack, "two").await?, ["harvest three", "harvest two"]);
    store::undo_merge(db, second.merge).await?;
    for name in ["one", "two", "three"] {
        assert_eq!(search(&stack, name).await?, [format!("harvest {name}")]);
    }
    Ok(())
}

#[tokio::test]
async fn a_worktree_that_was_split_off_stays_so() -> Result<()> {
    let stack = Stack::running().await?;
    let db = stack.database().pool();
    let top = made(&stack.scratch().join("disk"))?;
    shell(&top, ".: git init --quiet apples")?;
    shell(&top, "apples: git commit --quiet --allow-empty -m first")?;
    shell(&top, "apples: git remote add origin git@example.com:acme/apples.git")?;
    shell(&top, "apples: git worktree add --quiet -b one ../grafts")?;
    let (apples, grafts) = (top.join("apples"), top.join("grafts"));
    ask(&stack, &apples, "harvest alpha").await?;
    ask(&stack, &grafts, "harvest beta").await?;
    assert_eq!(search(&stack, "apples").await?, ["harvest alpha", "harvest beta"]);

    let unknown = store::split_project(db, "apples", SplitBy::Folder("/srv/elsewhere")).await;
    assert!(matches!(unknown, Err(ProjectError::UnknownAlias { .. })), "{unknown:?}");
    let own = store::split_project(db, "apples", SplitBy::Remote("https://example.com/acme/apples")).await;
    assert!(matches!(own, Err(ProjectError::OwnKey { .. })), "{own:?}");
    let folder = grafts.display().to_string();
    let split = store::split_project(db, "apples", SplitBy::Folder(&folder)).await?;
    assert_eq!((split.name.as_str(), split.sessions), ("grafts", 1));
    assert_eq!(search(&stack, "apples").await?, ["harvest alpha"]);
    assert_eq!(search(&stack, &folder).await?, ["harvest beta"]);
    wait::until("the server's notice of it", async || {
        ask(&stack, &grafts, "harvest gamma").await?;
        Ok(search(&stack, "grafts").await?.contains(&"harvest gamma".to_owned()).then_some(()))
    })
    .await?;
    ask(&stack, &apples, "harvest delta").await?;
    assert!(search(&stack, "apples").await?.contains(&"harvest delta".to_owned()));

    // And back again, and off once more.
    store::merge_projects(db, "grafts", "apples").await?;
    assert!(search(&stack, "apples").await?.contains(&"harvest beta".to_owned()));
    store::split_project(db, "apples", SplitBy::Folder(&folder)).await?;
    assert!(!search(&stack, "apples").await?.contains(&"harvest beta".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_folder_belongs_to_the_project_that_a_person_says() -> Result<()> {
    let stack = Stack::running().await?;
    let db = stack.database().pool();
    let top = made(&stack.scratch().join("disk"))?;
    shell(&top, ".: git init --quiet apples")?;
    shell(&top, ".: git init --quiet pears")?;
    ask(&stack, &top.join("apples"), "harvest alpha").await?;
    let pears = top.join("pears").display().to_string();
    store::alias_project(db, "apples", &pears).await?;
    ask(&stack, Path::new(&pears), "harvest beta").await?;
    assert_eq!(search(&stack, "apples").await?, ["harvest alpha", "harvest beta"]);
    ask(&stack, Path::new("/srv/agent-memory-tests/plums"), "harvest gamma").await?;
    let taken = store::alias_project(db, "plums", &pears).await;
    assert!(matches!(taken, Err(ProjectError::AliasTaken { .. })), "{taken:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_excluded_reaches_the_journal_on_no_way() -> Result<()> {
    let stack = Stack::running().await?;
    let top = made(&stack.scratch().join("disk"))?;
    for name in ["listed", "by-remote", "by-file", "kept"] {
        shell(&top, &format!(".: git init --quiet {name}"))?;
        shell(&top, &format!("{name}: git remote add origin git@example.com:acme/{name}.git"))?;
    }
    std::fs::write(top.join("by-file/.agent-memory.toml"), "# secret\ncapture = false\n")?;
    std::fs::create_dir_all(stack.home().config())?;
    let list = format!("# private\n{}/list*\nremote:https://example.com/acme/by-remote.git\n", top.display());
    std::fs::write(stack.home().config().join("exclude"), &list)?;
    let exclusions = Exclusions::load(&stack.home().config());
    for (name, is_excluded) in [("listed", true), ("by-remote", true), ("by-file", true), ("kept", false)] {
        let folder = top.join(name);
        let remote = format!("git@example.com:acme/{name}.git");
        assert_eq!(exclusions.excludes(&folder, Some(&remote)), is_excluded, "{name}");
        stack.hook(&Conversation::new(&folder).asks("By the hook")).await?;
        // A bare event tells no remote.
        if name != "by-remote" {
            let answer = stack.post_bare(&Conversation::new(&folder).asks("Bare")).await?;
            assert_eq!(answer.status().as_u16(), 204, "{name}");
        }
    }
    stack.drained().await?;
    let prompts = wait::until("the recording of what is kept", async || {
        Ok(Some(stack.journal().prompts().await?).filter(|prompts| prompts.len() >= 2))
    })
    .await?;
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    let projects = store::list_projects(stack.database().pool()).await?;
    assert_eq!(projects.iter().map(|project| project.name.as_str()).collect::<Vec<_>>(), ["kept"]);
    let ignored = &stack.stats().await?["events"]["ignored"];
    assert_eq!(ignored["excluded from capture"], json!(2), "{ignored}");
    Ok(())
}

/// A session of its own asks that in that folder.
async fn ask(stack: &Stack, folder: &Path, prompt: &str) -> Result<()> {
    let mut session = Conversation::new(folder);
    stack.hook(&session.asks(prompt)).await?;
    wait::until("the prompt's recording", async || {
        let query = "select exists (select from mem_user_prompts prompt join mem_sessions session
                     on session.id = prompt.session_id where external_id = $1)";
        let pool = stack.database().pool();
        let found: bool = sqlx::query_scalar(query).bind(&session.session_id).fetch_one(pool).await?;
        Ok(found.then_some(()))
    })
    .await
}

/// The prompts that an agent finds when it searches that project, in the order of the alphabet, each once.
async fn search(stack: &Stack, project: &str) -> Result<Vec<String>> {
    let arguments = json!({"query": "harvest", "project": project, "limit": 50});
    let response = OverHttp::connect(stack).await?.call("search", arguments).await?;
    let text = response["result"]["content"][0]["text"].as_str().with_context(|| format!("no answer in {response}"))?;
    let words = "alpha beta gamma delta one two three".split(' ');
    let mut found: Vec<_> =
        words.map(|word| format!("harvest {word}")).filter(|prompt| text.contains(prompt)).collect();
    found.sort_unstable();
    Ok(found)
}
