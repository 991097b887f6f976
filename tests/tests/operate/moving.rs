//! What is remembered moves from one runtime to another and back, row for row, while hooks go on; and stays where it is when a move fails
//! or is killed, and when the whole home is moved to another folder.

use std::path::Path;

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store::{self, TableSum};
use serde_json::Value;
use sqlx::PgPool;
use tests::conversation::Conversation;
use tests::database::Database;
use tests::installed::{self, Installed};
use tests::many_rows::{self, Size};
use tests::{hook, operator, summary, wait};
use xtask::runtime::docker;
use xtask::runtime::embedded::InstalledPostgres;

/// Tables that a server goes on writing by itself.
pub(super) const WORKED_ON: [&str; 4] =
    ["mem_audit_log", "mem_lexemes", "mem_observation_queue", "mem_search_statistics"];

const SIZE: Size = Size { calls: 3_000, vectors: 60 };

#[tokio::test(flavor = "multi_thread")]
async fn from_embedded_to_a_postgres_of_ones_own_and_back_row_for_row() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    let own = Database::empty().await?;
    if is_older_than(own.pool(), 170_000).await? {
        summary::line("move to a Postgres of one's own: NOT TESTED, the run's is older than 17");
        return Ok(());
    }
    many_rows::fill(installed.pool(), SIZE).await?;
    installed.have_downloads().await?;
    let before = store::table_sums(installed.pool()).await?;

    let moved = moves(home, own.url()).await?;
    assert_eq!(moved["rows"], before.iter().map(|sum| sum.rows).sum::<i64>());
    assert_eq!(kept(sums_at(home).await?), kept(before.clone()));
    assert_eq!(home.database_url()?, own.url());
    runs(home, "external").await?;
    assert_eq!(InstalledPostgres::of_home(home)?.processes(), [], "the former one is stopped");
    remembers(home, "Where do I live now?").await?;
    let there = store::table_sums(own.pool()).await;
    assert!(there.is_err() || there.is_ok_and(|sums| sums != before), "it goes on over there");
    let again = operator::refused(home, &["move", "--to", own.url(), "--yes"]).await?;
    assert!(again.contains("already") && again.contains("hint: "), "{again}");

    operator::must(home, &["down"]).await?;
    let at_home = sums_at(home).await?;
    // The test's own connections ended with the database that they were to.
    let there = installed::connect(own.url()).await?;
    let marks = store::marks_columns(&there).await?;
    there.close().await;
    if marks {
        summary::line("move back from a Postgres that marks its columns: refused, as it must be");
        let said = operator::refused(home, &["move", "--to", "embedded", "--yes"]).await?;
        assert!(said.contains("marks its columns") && said.contains("cargo xtask export"), "{said}");
        assert_eq!(kept(sums_at(home).await?), kept(at_home), "nothing has changed");
        assert_eq!(home.database_url()?, own.url());
        return Ok(());
    }
    let moved = moves(home, "embedded").await?;
    assert!(
        moved["kept"].as_str().is_some_and(|kept| kept.contains("_before_")),
        "the former move's source is kept: {moved}"
    );
    assert_eq!(kept(sums_at(home).await?), kept(at_home));
    runs(home, "embedded").await?;
    remembers(home, "And now?").await?;
    operator::must(home, &["move", "--forget", "--yes"]).await?;
    operator::must(home, &["down"]).await.map(drop)
}

/// As two engines and two versions of Postgres do it.
#[tokio::test(flavor = "multi_thread")]
async fn from_embedded_into_containers_and_back_row_for_row() -> Result<()> {
    let Ok(engine) = docker::require().await else {
        summary::line("move into containers: NOT TESTED, no Docker engine answers");
        return Ok(());
    };
    let installed = Installed::embedded().await?;
    let home = installed.home();
    many_rows::fill(installed.pool(), SIZE).await?;
    installed.have_downloads().await?;
    operator::must(home, &["start"]).await?;
    remembers(home, "Before the move").await?;
    operator::must(home, &["down"]).await?;
    InstalledPostgres::of_home(home)?.start().await?;
    let before = kept(store::table_sums(installed.pool()).await?);

    let contained = async {
        moves(home, "docker").await?;
        runs(home, "docker").await?;
        assert_eq!(InstalledPostgres::of_home(home)?.processes(), [], "the former one is stopped");
        assert_eq!(kept(sums_at(home).await?), before);
        remembers(home, "In a container").await?;
        let there = kept(sums_at(home).await?);
        assert_ne!(there, before);

        moves(home, "embedded").await?;
        runs(home, "embedded").await?;
        remembers(home, "Back again").await?;
        let left: Vec<_> = docker::left(&engine, home).await?.into_iter().map(|part| part.is_data).collect();
        assert_eq!(left, [true], "the volume is kept, and nothing else");
        operator::must(home, &["move", "--forget", "--yes"]).await?;
        assert!(docker::left(&engine, home).await?.is_empty());
        operator::must(home, &["down"]).await.map(drop)
    }
    .await;
    // Whatever went wrong, the engine is as it was.
    docker::purge(&engine, home, &xtask::output::Printer::new(xtask::output::Verbosity::Quiet)).await?;
    contained
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_fails_leaves_everything_at_work_where_it_was() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    installed.have_downloads().await?;
    operator::must(home, &["start"]).await?;
    remembers(home, "Stay").await?;
    let files = [home.installation_file(), home.database_url_file()];
    let before: Vec<_> = files.iter().map(std::fs::read).collect::<Result<_, _>>()?;

    let taken = Database::fresh().await?;
    sqlx::query("insert into mem_projects (identity_key, name) values ('k', 'n')").execute(taken.pool()).await?;
    let shared = Database::empty().await?;
    sqlx::query("create table theirs (id int)").execute(shared.pool()).await?;
    let broken = Database::empty().await?;
    let cases = [
        ("postgres://u:secret@127.0.0.1:1/d".to_owned(), "no Postgres is reachable at 127.0.0.1:1"),
        (taken.url().to_owned(), "already holds what an agent-memory remembers"),
        (shared.url().to_owned(), "tables of others, such as `theirs`"),
        (format!("{}_gone", broken.url()), "does not exist"),
    ];
    for (url, why) in cases {
        let said = operator::refused(home, &["move", "--to", &url, "--yes"]).await?;
        assert!(said.contains(why) && said.contains("error: nothing was moved") && said.contains("hint: "), "{said}");
        assert!(!said.contains("secret"), "{said}");
        let now: Vec<_> = files.iter().map(std::fs::read).collect::<Result<_, _>>()?;
        assert_eq!(now, before, "{why}");
        runs(home, "embedded").await?;
    }
    remembers(home, "Stayed").await?;
    let unasked = operator::refused(home, &["move", "--to", broken.url()]).await?;
    assert!(unasked.contains("no terminal to ask") && unasked.contains("--yes"), "{unasked}");
    operator::must(home, &["down"]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_killed_leaves_the_source_and_the_next_one_goes_through() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    let own = Database::empty().await?;
    if is_older_than(own.pool(), 170_000).await? {
        summary::line("a killed move: NOT TESTED, the run's Postgres is older than 17");
        return Ok(());
    }
    many_rows::fill(installed.pool(), Size { calls: 30_000, vectors: 0 }).await?;
    installed.have_downloads().await?;
    operator::must(home, &["start"]).await?;
    let mut command = operator::command(home).await?;
    command.args(["move", "--to", own.url(), "--yes"]);
    let mut moving = command.spawn().context("starting a move")?;
    wait::until("the beginning of the copy", async || {
        let count = "select count(*) from pg_database where datname like '%\\_restoring\\_%'
                     and pg_database_size(datname) > 12000000";
        let begun: i64 = sqlx::query_scalar(count).fetch_one(own.pool()).await?;
        Ok((begun > 0).then_some(()))
    })
    .await?;
    moving.kill().await?;

    let installation: Value = serde_json::from_slice(&std::fs::read(home.installation_file())?)?;
    assert_eq!(installation["runtime"], "embedded");
    // As the hook of the next session does it.
    operator::must(home, &["start"]).await?;
    runs(home, "embedded").await?;
    remembers(home, "Still here").await?;
    operator::must(home, &["down"]).await?;
    let before = sums_at_embedded(home).await?;
    moves(home, own.url()).await?;
    assert_eq!(kept(sums_at(home).await?), kept(before));
    operator::must(home, &["down"]).await.map(drop)
}

/// As root the database lies outside of the home, and must not be forgotten there.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_is_moved_keeps_its_database_and_a_copy_of_it_is_refused() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    installed.have_downloads().await?;
    operator::must(home, &["start"]).await?;
    remembers(home, "Before the home was moved").await?;
    operator::must(home, &["down"]).await?;

    let other = Home::at(installed.scratch().join("elsewhere"));
    std::fs::rename(home.root(), other.root())?;
    let new = super::roll_back::programs_of_today(installed.scratch()).await?;
    let new = new.to_str().context("a path")?;
    let up = ["up", "--programs", new, "--no-register", "--no-schedule"];
    operator::must(&other, &up).await?;
    runs(&other, "embedded").await?;
    remembers(&other, "After it").await?;
    assert_eq!(
        prompts(&installed::connect(&other.database_url()?).await?).await?,
        ["Before the home was moved", "After it"]
    );
    operator::must(&other, &["down"]).await?;

    let copied = std::process::Command::new("cp").arg("-a").arg(other.root()).arg(home.root()).status()?;
    assert!(copied.success());
    let refused = operator::refused(home, &up).await?;
    assert!(refused.contains("is a copy of the installation in") && refused.contains("hint: "), "{refused}");
    std::fs::remove_dir_all(home.root())?;

    // Without its data it does not begin with an empty memory.
    let postgres = InstalledPostgres::of_home(&other)?;
    let aside = postgres.data_folder().with_extension("aside");
    std::fs::rename(postgres.data_folder(), &aside)?;
    let refused = operator::refused(&other, &up).await?;
    assert!(refused.contains("the data of the embedded Postgres are gone") && refused.contains("hint: "), "{refused}");
    std::fs::rename(&aside, postgres.data_folder())?;
    operator::must(&other, &["down", "--purge", "--yes"]).await?;
    assert!(!postgres.data_folder().exists() && !other.root().exists());
    Ok(())
}

async fn moves(home: &Home, to: &str) -> Result<Value> {
    Ok(serde_json::from_str(&operator::must(home, &["move", "--to", to, "--yes", "--json"]).await?)?)
}

/// The server is healthy, in that runtime.
async fn runs(home: &Home, runtime: &str) -> Result<()> {
    let status: Value = serde_json::from_str(&operator::must(home, &["status", "--json"]).await?)?;
    assert_eq!(status["installation"]["runtime"], runtime, "{status}");
    let services = status["services"].as_array().context("no services")?;
    assert!(services.iter().all(|service| service["status"] == "running"), "{status}");
    Ok(())
}

/// Sends a prompt as an agent does, and waits until it is in the database.
async fn remembers(home: &Home, prompt: &str) -> Result<()> {
    let mut session = Conversation::new(Path::new("/"));
    hook::send(home.root(), hook::CLAUDE_CODE, &session.asks(prompt)).await?;
    let pool = installed::connect(&home.database_url()?).await?;
    let stored =
        wait::until("the prompt", async || Ok(prompts(&pool).await?.iter().any(|found| found == prompt).then_some(())))
            .await;
    pool.close().await;
    stored
}

async fn prompts(pool: &PgPool) -> Result<Vec<String>> {
    let found = sqlx::query_scalar("select prompt from mem_user_prompts order by occurred_at");
    Ok(found.fetch_all(pool).await?)
}

async fn sums_at(home: &Home) -> Result<Vec<TableSum>> {
    let pool = installed::connect(&home.database_url()?).await?;
    let sums = store::table_sums(&pool).await;
    pool.close().await;
    Ok(sums?)
}

/// Of an installation that is down.
async fn sums_at_embedded(home: &Home) -> Result<Vec<TableSum>> {
    InstalledPostgres::of_home(home)?.start().await?;
    sums_at(home).await
}

/// What the journal holds: a server that runs writes its log of acts, and counts words and works its queue by itself.
fn kept(mut sums: Vec<TableSum>) -> Vec<TableSum> {
    sums.retain(|sum| !WORKED_ON.contains(&sum.table.as_str()));
    sums
}

async fn is_older_than(pool: &PgPool, version: i32) -> Result<bool> {
    let found: i32 = sqlx::query_scalar("select current_setting('server_version_num')::int").fetch_one(pool).await?;
    Ok(found < version)
}
