//! Making one: a snapshot is dumped and counted at the same time, while everybody goes on writing. The file gets its name when the
//! disk has all of it; whatever goes wrong before, the backups that were there are as they were.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use chrono::{TimeDelta, Utc};
use memory::disk::Space;
use memory::settings;
use memory::store::{DatabaseBytes, Snapshot, StoreError};

use super::archive::{self, Written};
use super::cipher::Lock;
use super::folder::Folder;
use super::journal::Target;
use super::manifest::Manifest;
use super::name::{Label, Name, Origin};
use super::room::Estimate;
use super::{Rotation, seal};
use crate::files;
use crate::output::{HintExt, hinted, human_bytes};
use crate::runtime::tools::{Dump, Tools};

/// What kind of backup.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub settings: &'a settings::Backup,
    pub origin: Origin,
    pub label: Option<Label>,
}

/// A backup that is whole and on the disk.
#[derive(Debug)]
pub struct Made {
    pub path: PathBuf,
    pub manifest: Manifest,
    pub took: Duration,
    /// Names of those that the rotation removed for it.
    pub rotated: Vec<String>,
}

/// Makes a backup, and after a scheduled one removes those that the rotation has no place for.
pub async fn make(target: &Target<'_>, wanted: Wanted<'_>) -> Result<Made> {
    let began = Instant::now();
    let folder = Folder::of(target.home, wanted.settings)?;
    let tools = target.tools().await?;
    let lock = Lock::of(wanted.settings)?;
    folder.create()?;
    let _alone = target.alone().await?;
    folder.sweep()?;
    let name = free_name(&folder, Name::new(Utc::now(), wanted.origin, wanted.label, lock.locking()));

    let db = target.journal().await?;
    let mut snapshot = Snapshot::take(&db).await.context("cannot see the journal as it is now")?;
    let bytes = snapshot.bytes().await.context("cannot tell how large the journal is")?;
    check_room(&folder, bytes)?;

    let unfinished = folder.unfinished(&name);
    let id = snapshot.id().to_owned();
    let dump = Dump { url: &target.url, snapshot: &id };
    let writing = Writing { tools: &tools, dump, path: &unfinished, server_version: target.server_version };
    let described = writing.run(&mut snapshot, lock).await;
    drop(snapshot);
    db.close().await;
    let finished = described.and_then(|(written, manifest)| {
        let manifest = Manifest { made_at: name.made_at, database_bytes: bytes.total, ..manifest };
        let path = folder.path().join(name.to_string());
        seal::write(&path, &written, &manifest)?;
        std::fs::rename(&unfinished, &path).with_context(|| format!("cannot name `{}`", path.display()))?;
        files::sync_folder(folder.path())?;
        Ok((path, manifest))
    });
    let (path, manifest) = match finished {
        Ok(finished) => finished,
        Err(error) => {
            // The first failure is the one to tell; what is left is swept away by the next one.
            drop(folder.sweep());
            return Err(error);
        }
    };
    let rotated = match wanted.origin {
        Origin::Scheduled => rotate(&folder, Rotation::of(wanted.settings))?,
        Origin::Manual => Vec::new(),
    };
    Ok(Made { path, manifest, took: began.elapsed(), rotated })
}

/// What dumping needs.
struct Writing<'a> {
    tools: &'a Tools,
    dump: Dump<'a>,
    path: &'a Path,
    server_version: i32,
}

impl Writing<'_> {
    /// Dumps and counts what the snapshot sees.
    async fn run(self, snapshot: &mut Snapshot, lock: Lock) -> Result<(Written, Manifest)> {
        let (sender, receiver) = archive::pieces();
        let path = self.path.to_owned();
        let writing = tokio::task::spawn_blocking(move || archive::write(&path, lock, receiver));
        let dumping = self.tools.dump(self.dump, sender);
        let counting = async {
            let version = snapshot.schema_version().await?.unwrap_or_default();
            Ok::<_, StoreError>((version, snapshot.sums().await?))
        };
        let (written, dumped, counted) = tokio::join!(writing, dumping, counting);
        // A disk that is full also stops the dump: what stopped it is what to tell.
        let written = written.context("the writing of the backup was interrupted")??;
        dumped
            .context("cannot dump the database")
            .hint("earlier backups are as they were; `cargo xtask doctor` checks every part")?;
        let (schema_version, tables) = counted.context("cannot count what is in the journal")?;
        let manifest = Manifest {
            backup: Manifest::format(),
            made_at: Utc::now(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            postgres: self.server_version,
            schema_version,
            database_bytes: 0,
            bytes: written.bytes,
            tables,
        };
        Ok((written, manifest))
    }
}

fn check_room(folder: &Folder, bytes: DatabaseBytes) -> Result<()> {
    let backups = folder.list()?;
    let earlier = backups.iter().find_map(|backup| {
        let manifest = backup.manifest.as_ref()?;
        Some((manifest.bytes, manifest.database_bytes))
    });
    let estimate = Estimate { table_bytes: bytes.tables, earlier, database_bytes: bytes.total };
    let place = folder.path().display();
    let space = Space::around(folder.path()).with_context(|| format!("cannot tell how much room `{place}` has"))?;
    let Some(missing) = estimate.missing_on(space) else { return Ok(()) };
    let error = anyhow!(
        "there is no room for a backup: `{place}` has {} left, and it may take {}",
        human_bytes(space.free_bytes),
        human_bytes(estimate.bytes())
    );
    Err(hinted(
        error,
        format!(
            "earlier backups are as they were; free {} (`cargo xtask backup prune` removes what the rotation does not need), or let \
             `backup.folder` in settings.toml name another disk",
            human_bytes(missing)
        ),
    ))
}

fn rotate(folder: &Folder, rotation: Rotation) -> Result<Vec<String>> {
    let outdated = folder.outdated(rotation)?;
    outdated.iter().try_for_each(super::Backup::remove)?;
    Ok(outdated.iter().map(super::Backup::file).collect())
}

/// Two within one second have different seconds all the same.
fn free_name(folder: &Folder, mut name: Name) -> Name {
    while folder.path().join(name.to_string()).exists() {
        name.made_at += TimeDelta::seconds(1);
    }
    name
}
