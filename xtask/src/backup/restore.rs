//! Restoring: into a database of its own first, where everything is compared; then it takes the journal's place, whose database is kept
//! under another name. Until then nothing is changed, and afterwards one command goes back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use chrono::{NaiveDateTime, Utc};
use memory::disk::Space;
use memory::store::{self, StoreError};
use serde::Serialize;

use super::archive;
use super::cipher::Key;
use super::journal::{Target, compare_with};
use super::seal::Sealed;
use crate::output::{HintExt, headline, hinted, human_bytes};
use crate::runtime::RuntimeKind;
use crate::runtime::embedded::InstalledPostgres;
use crate::runtime::external::told;
use crate::runtime::stopped::Stopped;

pub(super) const RESTORING: &str = "_restoring_";
/// What the databases are called that a restore took the place of.
pub(super) const BEFORE: &str = "_before_";
const STAMP: &str = "%Y%m%dt%H%M%Sz";

/// What a restore did.
#[derive(Debug, Clone, Serialize)]
pub struct Restored {
    pub rows: i64,
    pub tables: usize,
    /// The database with everything from before.
    pub kept: Option<String>,
    pub database: String,
    #[serde(skip)]
    pub took: Duration,
}

/// A database that a restore took the place of.
#[derive(Debug, Clone, Serialize)]
pub struct Kept {
    pub name: String,
    pub since: Option<chrono::DateTime<Utc>>,
    pub bytes: u64,
}

/// Restores into a new database of that name and leaves the installation alone.
pub async fn restore_beside(target: &mut Target<'_>, sealed: &Sealed, key: Key, name: &str) -> Result<Restored> {
    let began = Instant::now();
    sealed.manifest.check_schema()?;
    archive::check_key(sealed, &key)?;
    check_room(target, sealed)?;
    let _alone = target.alone().await?;
    if target.databases.exists(name).await? {
        let error = anyhow!("there is a database `{name}` already");
        return Err(hinted(error, "choose another name, or drop that one yourself if nobody needs it"));
    }
    let scratch = Scratch::named(target, name.to_owned()).await?;
    let filled = fill_and_compare(target, sealed, key, name).await;
    if let Err(error) = filled {
        scratch.drop(target).await?;
        return Err(error);
    }
    Ok(Restored::from(sealed, name, None, began))
}

/// Puts the backup in the journal's place. The server is stopped meanwhile: what happens goes into the spool, and from there into the
/// restored database.
pub async fn restore_over(target: &mut Target<'_>, sealed: &Sealed, key: Key) -> Result<Restored> {
    let began = Instant::now();
    sealed.manifest.check_schema()?;
    archive::check_key(sealed, &key)?;
    check_room(target, sealed)?;
    check_nobody_else(target).await?;
    let _alone = target.alone().await?;
    let installation = target.installation.clone();
    let stopped = Stopped::server(&installation, target.home, target.printer).await?;
    let restored = replace(target, sealed, key).await;
    let kept = match restored {
        Ok(kept) => kept,
        Err(error) => {
            if let Err(trouble) = stopped.start(target.printer).await {
                target.printer.warn(format_args!("the server does not start again: {}", headline(&trouble)));
            }
            return Err(error.context("nothing was restored, and the journal is as it was"));
        }
    };
    stopped
        .start(target.printer)
        .await
        .with_context(|| format!("the backup is restored (before it: `{kept}`), and the server does not start on it"))
        .hint("`cargo xtask restore --undo` goes back to the database from before")?;
    let journal = target.databases.journal().to_owned();
    Ok(Restored::from(sealed, &journal, Some(kept), began))
}

/// Goes back to the database that the last restore took the place of, which is kept in turn.
pub async fn undo(target: &mut Target<'_>) -> Result<Restored> {
    let began = Instant::now();
    let newest = kept(target).await?.pop();
    let newest = newest
        .context("no database from before a restore is kept")
        .hint("`cargo xtask backup list` shows what can be restored")?;
    let _alone = target.alone().await?;
    let installation = target.installation.clone();
    let stopped = Stopped::server(&installation, target.home, target.printer).await?;
    let now_kept = target.databases.name_beside(&format!("{BEFORE}{}", stamp()));
    let swapped = target.databases.swap(&newest.name, &now_kept).await;
    stopped.start(target.printer).await?;
    swapped.with_context(|| format!("cannot put `{}` back in place", newest.name))?;
    let journal = target.databases.journal().to_owned();
    Ok(Restored { rows: 0, tables: 0, kept: Some(now_kept), database: journal, took: began.elapsed() })
}

/// Drops the databases that are kept from before restores.
pub async fn forget(target: &mut Target<'_>) -> Result<Vec<Kept>> {
    let _alone = target.alone().await?;
    let kept = kept(target).await?;
    for database in &kept {
        let dropped = target.databases.drop(&database.name).await;
        dropped.with_context(|| format!("cannot drop the database `{}`", database.name))?;
    }
    Ok(kept)
}

/// The databases that are kept from before restores, oldest first.
pub async fn kept(target: &mut Target<'_>) -> Result<Vec<Kept>> {
    let beginning = target.databases.name_beside(BEFORE);
    let mut kept = Vec::new();
    for name in target.databases.beginning_with(&beginning).await? {
        let since = NaiveDateTime::parse_from_str(&name[beginning.len()..], STAMP).ok().map(|time| time.and_utc());
        // Another's database may begin so too.
        if since.is_some() {
            kept.push(Kept { bytes: target.databases.bytes(&name).await?, name, since });
        }
    }
    Ok(kept)
}

/// A database that is made for a while.
#[derive(Debug)]
pub(super) struct Scratch(String);

impl Scratch {
    /// One with a name of ours; what killed programs left of that kind goes first.
    pub(super) async fn create(target: &mut Target<'_>, kind: &str) -> Result<Self> {
        let beginning = target.databases.name_beside(kind);
        target.databases.sweep(&beginning).await?;
        let name = target.databases.name_beside(&format!("{kind}{}", stamp()));
        Self::named(target, name).await
    }

    async fn named(target: &mut Target<'_>, name: String) -> Result<Self> {
        let created = target.databases.create(&name).await;
        let is_refused = created.as_ref().is_err_and(StoreError::is_forbidden);
        let created = created.with_context(|| format!("cannot create the database `{name}`"));
        let created = if is_refused {
            created.hint("the role needs that right once: `alter role <name> createdb`")
        } else {
            created
        };
        created.map(|()| Self(name))
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }

    pub(super) async fn drop(self, target: &mut Target<'_>) -> Result<()> {
        Ok(target.databases.drop(&self.0).await?)
    }
}

/// Fills an empty database from a backup.
pub(super) async fn fill(target: &Target<'_>, sealed: &Sealed, key: Key, database: &str) -> Result<()> {
    let tools = target.tools().await?;
    let (sender, receiver) = archive::pieces();
    let (path, locking) = (sealed.path.clone(), sealed.name.locking);
    let reading = tokio::task::spawn_blocking(move || archive::read(&path, locking, &key, &sender));
    let url = target.url_of(database);
    let (read, restored) = tokio::join!(reading, tools.restore(&url, receiver));
    // An archive that ends too early also fails in Postgres: the reason is the one to tell.
    read.context("the reading of the backup was interrupted")??;
    restored.context("the backup's content cannot be restored")
}

impl Restored {
    fn from(sealed: &Sealed, database: &str, kept: Option<String>, began: Instant) -> Self {
        let (rows, tables) = (sealed.manifest.rows(), sealed.manifest.tables.len());
        Self { rows, tables, kept, database: database.to_owned(), took: began.elapsed() }
    }
}

/// Everything up to the moment when two names change; a failure leaves no trace.
async fn replace(target: &mut Target<'_>, sealed: &Sealed, key: Key) -> Result<String> {
    let scratch = Scratch::create(target, RESTORING).await?;
    let replaced = async {
        fill_and_compare(target, sealed, key, scratch.name()).await?;
        let kept = target.databases.name_beside(&format!("{BEFORE}{}", stamp()));
        let step = target.printer.step("Putting the restored database in place");
        let swapped = target.databases.swap(scratch.name(), &kept).await;
        swapped
            .context("cannot put the restored database in place")
            .hint("somebody uses the database; stop them, and try again")?;
        step.skip();
        Ok(kept)
    }
    .await;
    if replaced.is_err() {
        scratch.drop(target).await?;
    }
    replaced
}

async fn fill_and_compare(target: &Target<'_>, sealed: &Sealed, key: Key, database: &str) -> Result<()> {
    let step = target.printer.step(format!("Restoring into {database}"));
    fill(target, sealed, key, database).await?;
    step.say("Comparing what was restored with what was backed up");
    let db = store::connect_to(&target.url, database).await.map_err(told)?;
    let compared = compare_with(&db, &sealed.manifest).await;
    let migrated = match compared {
        Ok(()) => store::migrate(&db).await.map_err(told),
        failed => failed,
    };
    db.close().await;
    migrated?;
    step.done(format!("Restored and compared {} rows", sealed.manifest.rows()));
    Ok(())
}

/// A database is swapped as a whole: nothing of anybody else may be in it.
pub(super) async fn check_nobody_else(target: &Target<'_>) -> Result<()> {
    let db = target.journal().await?;
    let foreign = store::foreign_tables(&db).await;
    db.close().await;
    let foreign = foreign.context("cannot look for tables of others")?;
    let Some(first) = foreign.first() else { return Ok(()) };
    let error = anyhow!(
        "the database also holds {} tables of others, such as `{first}`: they would go back with ours",
        foreign.len()
    );
    Err(hinted(error, "restore beside it, and let `cargo xtask up --database-url` name the new one: `--into NAME`"))
}

fn check_room(target: &Target<'_>, sealed: &Sealed) -> Result<()> {
    check_space(target, sealed.manifest.database_bytes)
}

/// Where Postgres' data lies on a disk of this machine, there must be room for another database of that size.
pub(super) fn check_space(target: &Target<'_>, needed: u64) -> Result<()> {
    if target.installation.runtime != RuntimeKind::Embedded {
        return Ok(());
    }
    let folder = InstalledPostgres::of_home(target.home)?.data_folder();
    let Ok(space) = Space::around(&folder) else { return Ok(()) };
    if space.free_bytes < needed {
        let free = human_bytes(space.free_bytes);
        let error =
            anyhow!("`{}` has {free} left, and the restored database needs {}", folder.display(), human_bytes(needed));
        return Err(hinted(
            error,
            "free some space; the present database stays beside the restored one until you drop it",
        ));
    }
    Ok(())
}

pub(super) fn stamp() -> String {
    Utc::now().format(STAMP).to_string()
}
