//! The whole `up` on an older installation, older data and older programs; and what comes back, and what does not, when the server that it
//! brings does not get healthy.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use memory::home::Home;
use memory::store;
use serde_json::Value;
use sqlx::Executor as _;
use tests::conversation::Conversation;
use tests::installed::Installed;
use tests::{hook, operator, programs, wait};
use xtask::runtime::process::Process;

use super::upgrade::{FIRST, JOURNAL, ROWS, copy_migrations, run};

#[tokio::test(flavor = "multi_thread")]
async fn an_older_installation_becomes_todays_and_nothing_of_the_former_programs_is_left() -> Result<()> {
    let installed = older().await?;
    let home = installed.home();
    let new = programs_with(installed.scratch(), &programs::server().await?).await?;
    must_up(home, &new).await?;
    assert_eq!(store::schema_version(installed.pool()).await?, Some(store::known_schema_version()));
    holds_the_journal(&installed).await?;
    assert!(!is_older(&home.program("agent-memory-server"))? && !is_older(&home.program("agent-memory"))?);
    assert!(!home.bin().join("former").exists(), "nothing piles up");
    assert_eq!(backups(home)?.len(), 1, "made before the upgrade");
    let undone = operator::refused(home, &["up", "--undo"]).await?;
    assert!(undone.contains("no programs from before an upgrade are kept"), "{undone}");
    must_up(home, &new).await?;
    assert_eq!(backups(home)?.len(), 1, "twice is once");
    remembers(&installed, "After the upgrade").await?;
    operator::must(home, &["down"]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_at_once_gives_way_to_the_one_from_before() -> Result<()> {
    let installed = Installed::embedded().await?;
    let ending = installed.scratch().join("ending");
    script(&ending, "echo the new server cannot run >&2\nexit 3").await?;
    comes_back(&installed, &ending, "the server ended at once").await
}

/// Takes as long as a start may take.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_gives_way_to_the_one_from_before() -> Result<()> {
    let installed = Installed::embedded().await?;
    comes_back(&installed, &programs::silent_server().await?, "the server is not healthy after").await
}

async fn comes_back(installed: &Installed, server: &Path, why: &str) -> Result<()> {
    let home = installed.home();
    installed.have_downloads().await?;
    installed.have_older_programs().await?;
    operator::must(home, &["start"]).await?;
    remembers(installed, "Before the upgrade").await?;
    let new = programs_with(installed.scratch(), server).await?;
    let told = up(home, &new).await?;
    ensure!(told.code == Some(1), "{told:?}");
    let said = &told.stderr;
    assert!(
        said.contains("error: the new server did not get healthy; agent-memory 0.1.0 from before is back and runs"),
        "{said}"
    );
    assert!(said.contains(why) && said.contains("hint: `") && said.contains("server.log"), "{said}");
    for name in ["hook", "server", "mcp", "finetune"].map(|name| format!("agent-memory-{name}")) {
        assert!(is_older(&home.program(&name))?, "{name}");
    }
    assert!(is_older(&home.program("agent-memory"))?);
    assert!(!home.bin().join("former").exists(), "nothing piles up");
    assert_eq!(Process::all_of(&home.program("agent-memory-server")).len(), 1, "one server runs");
    let status: Value = serde_json::from_str(&operator::must(home, &["status", "--json"]).await?)?;
    assert_eq!(status["services"][1]["status"], "running", "{status}");
    remembers(installed, "After it came back").await?;
    assert_eq!(prompts(installed).await?, ["Before the upgrade", "After it came back"]);

    // Mended, the same upgrade goes through.
    let mended = programs_with(installed.scratch(), &programs::server().await?).await?;
    must_up(home, &mended).await?;
    assert!(!is_older(&home.program("agent-memory-server"))?);
    operator::must(home, &["down"]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_has_changed_is_not_pretended_away_and_one_command_goes_back_to_the_backup() -> Result<()> {
    let installed = older().await?;
    let home = installed.home();
    let migrating = installed.scratch().join("migrating");
    let real = programs::server().await?;
    script(&migrating, &format!("exec '{}' --migrate \"$@\"", real.display())).await?;
    let new = programs_with(installed.scratch(), &migrating).await?;
    let told = up(home, &new).await?;
    ensure!(told.code == Some(1), "{told:?}");
    let known = store::known_schema_version();
    let expected = format!("the schema is at {known} by now, which agent-memory 0.1.0 from before ({FIRST}) refuses");
    assert!(told.stderr.contains(&expected) && told.stderr.contains("up --undo"), "{}", told.stderr);
    assert_eq!(store::schema_version(installed.pool()).await?, Some(known));
    assert!(!is_older(&home.program("agent-memory"))?, "the new ones stay");
    assert_eq!(Process::all_of(&home.program("agent-memory-server")), []);
    let [backup] = &backups(home)?[..] else { anyhow::bail!("not one backup") };
    assert!(told.stderr.contains(&backup.display().to_string()), "{}", told.stderr);

    // A second try that fails like the first one does not take what is kept for what failed.
    ensure!(up(home, &new).await?.code == Some(1));
    assert!(is_older(&home.bin().join("former/agent-memory-server"))?);
    installed.pool().execute("delete from mem_lessons").await?;
    let undone = operator::must(home, &["up", "--undo"]).await?;
    assert!(undone.contains("agent-memory 0.1.0 is back and runs"), "{undone}");
    assert!(is_older(&home.program("agent-memory-server"))? && is_older(&home.program("agent-memory"))?);
    assert!(!home.bin().join("former").exists());
    holds_the_journal(&installed).await?;
    operator::must(home, &["down"]).await.map(drop)
}

/// An installation with the first schema, something in it, and programs of another build.
async fn older() -> Result<Installed> {
    let installed = Installed::embedded().await?;
    installed.pool().execute("drop schema public cascade; create schema public").await?;
    let migrations = tempfile::tempdir()?;
    copy_migrations(migrations.path(), |version| version <= FIRST)?;
    run(migrations.path(), installed.pool()).await?;
    installed.pool().execute(JOURNAL).await.context("filling the first schema")?;
    installed.have_downloads().await?;
    installed.have_older_programs().await?;
    Ok(installed)
}

async fn holds_the_journal(installed: &Installed) -> Result<()> {
    for (expected, query) in ROWS {
        let found: Vec<String> = sqlx::query_scalar(query).fetch_all(installed.pool()).await.context(query)?;
        assert_eq!(found, [expected], "{query}");
    }
    Ok(())
}

/// A folder with the built programs, of which that is the server. Nobody runs the two that are large: the hook stands in for them.
async fn programs_with(scratch: &Path, server: &Path) -> Result<PathBuf> {
    let folder = scratch.join(format!("programs-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir(&folder)?;
    programs::place(&programs::xtask().await?, &folder.join("xtask"))?;
    for name in ["hook", "mcp", "finetune"] {
        programs::place(&programs::hook().await?, &folder.join(format!("agent-memory-{name}")))?;
    }
    programs::place(server, &folder.join("agent-memory-server"))?;
    Ok(folder)
}

/// A folder with the programs as they are built.
pub(super) async fn programs_of_today(scratch: &Path) -> Result<PathBuf> {
    programs_with(scratch, &programs::server().await?).await
}

/// By a child: what this process has open for writing, another test's child would hold open too.
async fn script(path: &Path, lines: &str) -> Result<()> {
    let mut write = tokio::process::Command::new("sh");
    write.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(path).arg(lines);
    ensure!(write.status().await?.success(), "cannot write `{}`", path.display());
    Ok(())
}

async fn up(home: &Home, programs: &Path) -> Result<operator::Told> {
    let programs = programs.to_str().context("a path")?;
    operator::run_in(home, &["up", "--programs", programs, "--no-register", "--no-schedule"]).await
}

async fn must_up(home: &Home, programs: &Path) -> Result<()> {
    let told = up(home, programs).await?;
    ensure!(told.code == Some(0), "`up` ended with {:?}: {}", told.code, told.stderr);
    Ok(())
}

fn is_older(program: &Path) -> Result<bool> {
    Ok(std::fs::read(program).with_context(|| format!("reading `{}`", program.display()))?.ends_with(b"older"))
}

fn backups(home: &Home) -> Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(home.backups())?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(files.filter(|path| path.extension().is_some_and(|end| end == "dump")).collect())
}

/// Sends a prompt as an agent does, and waits until it is in the database.
async fn remembers(installed: &Installed, prompt: &str) -> Result<()> {
    let mut session = Conversation::new(installed.scratch());
    hook::send(installed.home().root(), hook::CLAUDE_CODE, &session.asks(prompt)).await?;
    wait::until("the prompt", async || Ok(prompts(installed).await?.iter().any(|found| found == prompt).then_some(())))
        .await
}

async fn prompts(installed: &Installed) -> Result<Vec<String>> {
    let found = sqlx::query_scalar("select prompt from mem_user_prompts order by occurred_at");
    Ok(found.fetch_all(installed.pool()).await?)
}
