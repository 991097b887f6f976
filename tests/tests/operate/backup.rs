//! A journal of a size that somebody has after a year is backed up, damaged, and restored row for row; and a small one while its
//! server runs and hooks go on.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store;
use serde_json::{Value, json};
use sqlx::PgPool;
use tests::conversation::{Conversation, Event};
use tests::installed::Installed;
use tests::many_rows::{self, Size};
use tests::{hook, operator, summary, wait};

const SIZE: Size = Size { calls: 120_000, vectors: 1_000 };
/// The issue's own measure of a large journal.
const LARGE: i64 = 200_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_journal_comes_back_row_for_row_and_one_command_goes_back() -> Result<()> {
    let installed = Installed::embedded().await?;
    many_rows::fill(installed.pool(), SIZE).await?;
    let plain = installed.dump().await?;
    let measured = comes_back(installed.home(), installed.pool()).await?;
    let (plain_took, plain_bytes) = plain;
    summary::line(&format!(
        "backup and restore (embedded): {measured}; pg_dump alone {plain_took:.1?}, {plain_bytes} bytes"
    ));
    Ok(())
}

/// How large it was and how long it took.
pub(super) struct Measured {
    rows: i64,
    database_bytes: i64,
    bytes: i64,
    backup: Duration,
    verify: Duration,
    deep: Duration,
    restore: Duration,
}

impl Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, database_bytes, bytes, backup, verify, deep, restore } = self;
        write!(
            formatter,
            "{rows} rows, database {database_bytes} bytes, backup {bytes} bytes in {backup:.1?}, verify {verify:.1?}, \
             verify --deep {deep:.1?}, restore {restore:.1?}"
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_a_server_runs_is_in_the_backup_or_in_the_spool() -> Result<()> {
    let installed = Installed::embedded().await?;
    let home = installed.home();
    operator::must(home, &["start"]).await?;
    let mut session = Conversation::new(installed.scratch());
    send(home, &session.asks("Before the backup")).await?;
    prompts(&installed, &["Before the backup"]).await?;
    operator::must(home, &["backup"]).await?;
    send(home, &session.asks("After the backup")).await?;
    prompts(&installed, &["Before the backup", "After the backup"]).await?;

    operator::must(home, &["restore", "latest", "--yes"]).await?;
    let status: Value = serde_json::from_str(&operator::must(home, &["status", "--json"]).await?)?;
    assert_eq!(status["services"][1]["status"], "running", "the server runs again: {status}");
    assert_eq!((&status["backup"]["count"], &status["backup"]["last_run"]["succeeded"]), (&json!(1), &json!(true)));
    prompts(&installed, &["Before the backup"]).await?;
    send(home, &session.asks("After the restore")).await?;
    prompts(&installed, &["Before the backup", "After the restore"]).await?;

    operator::must(home, &["restore", "--undo", "--yes"]).await?;
    prompts(&installed, &["Before the backup", "After the backup"]).await?;
    operator::must(home, &["down"]).await.map(drop)
}

async fn send(home: &Home, event: &Event) -> Result<()> {
    let outcome = hook::send(home.root(), hook::CLAUDE_CODE, event).await?;
    assert!(outcome.status.success(), "{outcome:?}");
    Ok(())
}

/// Waits until the journal holds exactly these prompts.
async fn prompts(installed: &Installed, expected: &[&str]) -> Result<()> {
    wait::until("the prompts", async || {
        let found: Vec<String> = sqlx::query_scalar("select prompt from mem_user_prompts order by occurred_at")
            .fetch_all(installed.pool())
            .await?;
        Ok((found == expected).then_some(()))
    })
    .await
}

/// The round trip on whatever runs below the home.
pub(super) async fn comes_back(home: &Home, pool: &PgPool) -> Result<Measured> {
    let before = store::table_sums(pool).await?;
    let rows: i64 = before.iter().map(|table| table.rows).sum();
    assert!(rows >= LARGE, "{rows} rows are few");
    let empty: Vec<_> = before.iter().filter(|sum| sum.rows == 0).map(|sum| sum.table.as_str()).collect();
    assert!(empty.is_empty(), "every table has rows, but {empty:?}");

    let database_bytes = sqlx::query_scalar("select pg_database_size(current_database())").fetch_one(pool).await?;
    let began = Instant::now();
    let made: Value =
        serde_json::from_str(&operator::must(home, &["backup", "--json", "--label", "round-trip"]).await?)?;
    let path = PathBuf::from(made["path"].as_str().context("no path")?);
    let backup = began.elapsed();
    is_private(&path)?;
    assert_eq!(made["rows"], rows);
    let listed: Value = serde_json::from_str(&operator::must(home, &["backup", "list", "--json"]).await?)?;
    assert_eq!(listed["backups"][0]["manifest"]["tables"], serde_json::to_value(&before)?, "counted as it is");
    let began = Instant::now();
    operator::must(home, &["backup", "verify"]).await?;
    let verify = began.elapsed();
    let began = Instant::now();
    operator::must(home, &["backup", "verify", "latest", "--deep"]).await?;
    let deep = began.elapsed();
    assert_eq!(databases(pool).await?, 1, "the scratch database is gone");

    for statement in [
        "delete from mem_tool_calls where id % 3 = 0",
        "update mem_user_prompts set prompt = 'lost' where id % 5 = 0",
        "delete from mem_forgotten",
    ] {
        sqlx::query(statement).execute(pool).await?;
    }
    let damaged = store::table_sums(pool).await?;
    assert_ne!(damaged, before);

    let began = Instant::now();
    let told = operator::must(home, &["restore", "latest", "--yes"]).await?;
    let restore = began.elapsed();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains(&format!("Restored {rows} rows")) && told.contains("restore --undo"), "{told}");
    assert_eq!(store::table_sums(pool).await?, before, "row for row");
    let next: i64 = sqlx::query_scalar("insert into mem_projects (identity_key, name) values ('k', 'n') returning id")
        .fetch_one(pool)
        .await?;
    assert_eq!(next, 21, "numbers go on where they stood");
    sqlx::query("delete from mem_projects where id = 21").execute(pool).await?;

    operator::must(home, &["restore", "--undo", "--yes"]).await?;
    assert_eq!(store::table_sums(pool).await?, damaged, "one command goes back");
    operator::must(home, &["restore", "--undo", "--yes"]).await?;
    assert_eq!(store::table_sums(pool).await?, before, "and forth");
    let forgotten = operator::must(home, &["restore", "--forget", "--yes"]).await?;
    assert!(forgotten.contains("_before_"), "{forgotten}");
    assert_eq!(databases(pool).await?, 1);

    let beside = operator::must(home, &["restore", path.to_str().context("a path")?, "--into", "another"]).await?;
    assert!(beside.contains("the installation is as it was"), "{beside}");
    let taken = operator::refused(home, &["restore", "latest", "--into", "another"]).await?;
    assert!(taken.contains("there is a database `another` already") && taken.contains("hint: "), "{taken}");
    let other = pool.connect_options().as_ref().clone().database("another");
    let other = sqlx::postgres::PgPoolOptions::new().max_connections(1).connect_with(other).await?;
    assert_eq!(store::table_sums(&other).await?, before);
    other.close().await;
    sqlx::query("drop database another").execute(pool).await?;
    let bytes = made["bytes"].as_i64().context("no size")?;
    Ok(Measured { rows, database_bytes, bytes, backup, verify, deep, restore })
}

async fn databases(pool: &PgPool) -> Result<i64> {
    let count = "select count(*) from pg_database where datname like 'agent\\_memory%'";
    Ok(sqlx::query_scalar(count).fetch_one(pool).await?)
}

#[cfg(unix)]
fn is_private(path: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let name = path.file_name().context("a path without a name")?.to_string_lossy().into_owned();
    for entry in std::fs::read_dir(path.parent().context("a file in no folder")?)? {
        let entry = entry?;
        assert!(entry.file_name().to_string_lossy().starts_with(&name), "{entry:?} is left over");
        assert_eq!(entry.metadata()?.permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
    Ok(())
}

#[cfg(not(unix))]
fn is_private(_path: &std::path::Path) -> Result<()> {
    Ok(())
}
