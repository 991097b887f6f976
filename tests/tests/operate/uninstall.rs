//! Leaving for good: nothing of an installation is left, unless it was asked for; and what was exported is all there was.

use anyhow::{Context, Result};
use memory::store::{self, TableSum};
use serde_json::Value;
use tests::conversation::Conversation;
use tests::database::Database;
use tests::installed::{self, Installed};
use tests::many_rows::{self, Size};
use tests::stack::Stack;
use tests::{hook, operator, programs};
use xtask::runtime::embedded::InstalledPostgres;
use xtask::runtime::process::Process;

const SIZE: Size = Size { calls: 1_500, vectors: 30 };

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_but_the_backups() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    let settings = registered(&installed).await?;
    operator::must(home, &["start"]).await?;
    operator::must(home, &["backup"]).await?;
    operator::must(home, &["schedule", "install", "--with", "server"]).await?;
    let data = InstalledPostgres::of_home(home)?.data_folder();
    let address = home.address()?;
    let mut agent = tokio::process::Command::new(home.program("agent-memory-mcp"));
    let mut agent =
        agent.env("AGENT_MEMORY_HOME", home.root()).stdin(std::process::Stdio::piped()).kill_on_drop(true).spawn()?;

    let unasked = operator::refused(home, &["uninstall"]).await?;
    assert!(unasked.contains("All that is remembered") && unasked.contains("--yes"), "{unasked}");
    assert!(home.token_file().exists(), "nothing was done");
    let told = operator::run_in(home, &["uninstall", "--yes"]).await?;
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("Nothing is left") && told.stderr.contains("Backups stay in"), "{}", told.stderr);
    agent.wait().await?;

    for name in ["agent-memory-server", "agent-memory-mcp"] {
        assert_eq!(Process::all_of(&home.program(name)), [], "{name}");
    }
    assert!(std::net::TcpStream::connect(address).is_err());
    assert!(!data.exists() && !data.parent().context("a folder in no other")?.exists());
    assert_eq!(names(home.root())?, ["backups"]);
    assert_eq!(serde_json::from_slice::<Value>(&std::fs::read(&settings)?)?, before_registration());
    let again = operator::run_in(home, &["uninstall", "--yes"]).await?;
    assert!(again.code == Some(0) && again.stderr.contains("Nothing is installed"), "{again:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_are_kept_are_found_again() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    many_rows::fill(installed.pool(), SIZE).await?;
    installed.have_downloads().await?;
    let before = sums(installed.pool()).await?;
    operator::must(home, &["backup"]).await?;
    operator::must(home, &["uninstall", "--keep-data", "--yes"]).await?;
    assert!(!home.bin().exists() && !home.token_file().exists());
    assert_eq!(InstalledPostgres::of_home(home)?.processes(), []);

    installed.have_downloads().await?;
    let new = super::roll_back::programs_of_today(installed.scratch()).await?;
    operator::must(home, &["up", "--programs", new.to_str().context("a path")?, "--no-register", "--no-schedule"])
        .await?;
    let pool = installed::connect(&home.database_url()?).await?;
    assert_eq!(sums(&pool).await?, before);
    pool.close().await;
    operator::must(home, &["uninstall", "--backups", "--yes"]).await?;
    assert!(!home.root().exists(), "not even backups");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_is_all_that_there_was_with_what_waited_in_the_spool() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    many_rows::fill(installed.pool(), SIZE).await?;
    // With the server away it goes into the spool.
    let mut session = Conversation::new(installed.scratch());
    hook::send(home.root(), hook::CLAUDE_CODE, &session.asks("The last prompt")).await?;
    let path = installed.scratch().join("all.ndjson");
    let place = path.to_str().context("a path")?;

    std::fs::write(&path, "")?;
    let taken = operator::refused(home, &["uninstall", "--export", place, "--yes"]).await?;
    assert!(taken.contains("is there already") && home.token_file().exists(), "{taken}");
    std::fs::remove_file(&path)?;
    operator::must(home, &["uninstall", "--export", place, "--yes"]).await?;
    assert!(!home.root().exists() || names(home.root())?.is_empty());

    let new = Stack::on(Database::fresh().await?)?;
    operator::install(&new, "mini")?;
    operator::must(new.home(), &["import", place]).await?;
    let manifest: Value = serde_json::from_str(std::fs::read_to_string(&path)?.lines().next().context("empty")?)?;
    let exported: i64 =
        manifest["tables"].as_array().context("no tables")?.iter().filter_map(|table| table["rows"].as_i64()).sum();
    let mut imported = store::table_sums(new.database().pool()).await?;
    imported.retain(|sum| sum.table != "mem_schema_migrations");
    assert!(exported > 3_000, "{exported}");
    assert_eq!(imported.iter().map(|sum| sum.rows).sum::<i64>(), exported);
    let last: i64 = sqlx::query_scalar("select count(*) from mem_user_prompts where prompt = 'The last prompt'")
        .fetch_one(new.database().pool())
        .await?;
    assert_eq!(last, 1, "it had waited in the spool");
    Ok(())
}

/// An agent's settings with something of the person's own in them; gives their file.
async fn registered(installed: &Installed) -> Result<std::path::PathBuf> {
    let home = installed.home();
    for (program, name) in
        [(programs::hook().await?, "agent-memory-hook"), (programs::mcp().await?, "agent-memory-mcp")]
    {
        programs::place(&program, &home.program(name))?;
    }
    let settings = installed.scratch().join(".claude/settings.json");
    std::fs::create_dir_all(installed.scratch().join(".claude"))?;
    std::fs::write(&settings, before_registration().to_string())?;
    operator::must(home, &["register", "claude"]).await?;
    assert!(std::fs::read_to_string(&settings)?.contains("agent-memory-hook"));
    Ok(settings)
}

fn before_registration() -> Value {
    serde_json::json!({ "model": "opus", "env": { "A": "b" } })
}

fn names(folder: &std::path::Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?;
    let mut names: Vec<_> =
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}

/// All tables but those that know of the installation itself, and those that a server goes on writing by itself.
async fn sums(pool: &sqlx::PgPool) -> Result<Vec<TableSum>> {
    let mut sums = store::table_sums(pool).await?;
    sums.retain(|sum| sum.table != "mem_schema_migrations" && !super::moving::WORKED_ON.contains(&sum.table.as_str()));
    Ok(sums)
}
