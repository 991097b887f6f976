//! A journal on its way from one database to another, without a file between: dumped and counted in one snapshot, restored beside what the
//! other one holds, compared, and only then put in its place.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use memory::store::{self, Db, Snapshot, TableSum};

use super::archive;
use super::journal::Target;
use super::restore::{BEFORE, RESTORING, Scratch, check_nobody_else, check_space, stamp};
use crate::output::{HintExt, hinted};
use crate::runtime::RuntimeKind;
use crate::runtime::external::told;
use crate::runtime::tools::Dump;

/// Since this version Postgres' programs write a setting into archives that older servers do not know.
const NEW_ARCHIVES: i32 = 170_000;

/// What was copied.
#[derive(Debug)]
pub struct Copied {
    pub rows: i64,
    pub tables: usize,
    /// The database with what was there before, if anything was.
    pub kept: Option<String>,
    pub took: Duration,
}

/// What the journal held at one moment.
struct Counted {
    schema_version: Option<i64>,
    tables: Vec<TableSum>,
}

const OVER_AN_EXPORT: &str = "go over an export: `cargo xtask export`, an installation of its own over there (`AGENT_MEMORY_HOME=<folder> \
                              cargo xtask up`), and `cargo xtask import` in it";

/// Fails where the journal cannot go there, before anything is stopped for it.
pub async fn check_way(from: &Target<'_>, to: &mut Target<'_>) -> Result<()> {
    if from.server_version >= NEW_ARCHIVES && to.server_version < NEW_ARCHIVES {
        let error = anyhow!(
            "Postgres {} does not read what Postgres {} writes",
            to.server_version / 10_000,
            from.server_version / 10_000
        );
        return Err(hinted(error, format!("take a Postgres 17 or newer; or {OVER_AN_EXPORT}")));
    }
    check_nobody_else(to).await?;
    let db = from.journal().await?;
    let seen = async { anyhow::Ok((Snapshot::take(&db).await?.bytes().await?, store::marks_columns(&db).await?)) };
    let seen = seen.await.context("cannot tell how large the journal is");
    db.close().await;
    let (bytes, marked) = seen?;
    check_space(to, bytes.total)?;
    // Whether databases can be made there, and hold ours, is best known by making one.
    let scratch = Scratch::create(to, RESTORING).await?;
    let migrated = async {
        let db = store::connect_to(&to.url, scratch.name()).await.map_err(told)?;
        let migrated = async {
            store::migrate(&db).await.map_err(told)?;
            store::marks_columns(&db).await.context("cannot look at the other database")
        };
        let migrated = migrated.await;
        db.close().await;
        migrated
    }
    .await;
    scratch.drop(to).await?;
    let understood = migrated?;
    // Containers have the dump program of their own version, which leaves the marks out.
    if marked && !understood && from.installation.runtime == RuntimeKind::External {
        let error = anyhow!(
            "the Postgres at {} marks its columns in a way that the other one does not know",
            from.installation.database
        );
        return Err(hinted(error, OVER_AN_EXPORT));
    }
    Ok(())
}

/// How many rows are remembered in a database; none where it has no schema.
pub async fn rows(target: &Target<'_>) -> Result<i64> {
    let db = target.journal().await?;
    let counted = count(&db).await;
    db.close().await;
    Ok(counted?.map_or(0, |counted| counted.tables.iter().filter(|sum| is_memory(sum)).map(|sum| sum.rows).sum()))
}

/// Every database has these rows, also one in which nothing was ever remembered.
fn is_memory(sum: &TableSum) -> bool {
    !["mem_schema_migrations", "mem_audit_log"].contains(&sum.table.as_str())
}

/// Copies everything. Nobody may write meanwhile; until the names change at the end nothing of either database has changed.
pub async fn copy(from: &Target<'_>, to: &mut Target<'_>) -> Result<Copied> {
    let began = Instant::now();
    let step = to.printer.step("Copying what is remembered");
    let _alone = from.alone().await?;
    let before = rows(to).await?;
    let scratch = Scratch::create(to, RESTORING).await?;
    let copied = async {
        let counted = transfer(from, to, scratch.name()).await?;
        step.say("Comparing what was copied with what is there");
        compare(to, scratch.name(), &counted).await?;
        let kept = to.databases.name_beside(&format!("{BEFORE}{}", stamp()));
        let swapped = to.databases.swap(scratch.name(), &kept).await;
        swapped
            .context("cannot put the copy in place")
            .hint("somebody uses that database; stop them, and try again")?;
        anyhow::Ok((counted, kept))
    }
    .await;
    let (counted, kept) = match copied {
        Ok(copied) => copied,
        Err(error) => {
            scratch.drop(to).await?;
            return Err(error);
        }
    };
    let kept = if before == 0 {
        to.databases.drop(&kept).await?;
        None
    } else {
        Some(kept)
    };
    let rows = counted.tables.iter().map(|table| table.rows).sum();
    step.done(format!("Copied and compared {rows} rows of {} tables", counted.tables.len()));
    Ok(Copied { rows, tables: counted.tables.len(), kept, took: began.elapsed() })
}

/// Dumps and restores at the same time; gives what the dump saw.
async fn transfer(from: &Target<'_>, to: &Target<'_>, database: &str) -> Result<Counted> {
    let (reading, writing) = (from.tools().await?, to.tools().await?);
    let db = from.journal().await?;
    let mut snapshot = Snapshot::take(&db).await.context("cannot see the journal as it is now")?;
    let id = snapshot.id().to_owned();
    let (sender, receiver) = archive::pieces();
    let url = to.url_of(database);
    let counting = async {
        let schema_version = snapshot.schema_version().await?;
        anyhow::Ok(Counted { schema_version, tables: snapshot.sums().await? })
    };
    let dumping = reading.dump(Dump { url: &from.url, snapshot: &id }, sender);
    let (dumped, restored, counted) = tokio::join!(dumping, writing.restore(&url, receiver), counting);
    drop(snapshot);
    db.close().await;
    // A restore that ends too early also stops the dump: what stopped it is what to tell.
    restored.context("the copy cannot be written")?;
    dumped.context("cannot read what is remembered")?;
    counted.context("cannot count what is in the journal")
}

async fn compare(to: &Target<'_>, database: &str, counted: &Counted) -> Result<()> {
    let db = store::connect_to(&to.url, database).await.map_err(told)?;
    let found = count(&db).await;
    db.close().await;
    let found = found?.context("the copy has no schema")?;
    super::compare(&found.tables, &counted.tables).context("the copy is not what was copied")?;
    ensure!(found.schema_version == counted.schema_version, "the copy's schema is at {:?}", found.schema_version);
    Ok(())
}

async fn count(db: &Db) -> Result<Option<Counted>> {
    let schema_version = store::schema_version(db).await.context("cannot read the schema's version")?;
    if schema_version.is_none() {
        return Ok(None);
    }
    let tables = store::table_sums(db).await.context("cannot count what is in the journal")?;
    Ok(Some(Counted { schema_version, tables }))
}
