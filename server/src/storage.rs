//! Whether there is room: looks once a minute at the size of the database and at the disk under the spool. Above the ceiling, or
//! when that disk is nearly full, only metadata of new events is kept, until there is room again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memory::disk::Space;
use memory::event::Event;
use memory::settings::Settings;
use memory::store::{Db, database_bytes};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_mins(1);
/// Below this share of the ceiling everything is kept again: not at the ceiling itself, or the two states would alternate.
const ROOM_AGAIN_PERCENT: u64 = 95;

/// Cheap to clone; clones share what is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storage {
    state: Arc<Mutex<StorageState>>,
}

/// As health tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StorageState {
    pub(crate) state: Keeping,
    /// Why not everything is kept, and what to do about it.
    pub(crate) message: Option<String>,
    pub(crate) database_bytes: Option<u64>,
    pub(crate) ceiling_bytes: Option<u64>,
    pub(crate) disk_free_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keeping {
    #[default]
    Ok,
    MetadataOnly,
}

/// What a look has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Measured {
    database_bytes: Option<u64>,
    ceiling_bytes: u64,
    disk: Option<Space>,
}

impl Storage {
    pub(crate) fn state(&self) -> StorageState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the content out of an event if there is no room for it.
    pub(crate) fn fit(&self, event: &mut Event) {
        let keeping = self.state.lock().unwrap_or_else(PoisonError::into_inner).state;
        if keeping == Keeping::MetadataOnly {
            event.reduce_to_metadata();
        }
    }

    /// Looks now and once a minute.
    pub(crate) async fn watch_until(&self, db: &Db, folders: &Folders, shutdown: &CancellationToken) {
        loop {
            self.look(db, folders).await;
            if shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
                return;
            }
        }
    }

    pub(crate) async fn look(&self, db: &Db, folders: &Folders) {
        // While the database is away nothing is stored in it anyway.
        let database_bytes = database_bytes(db).await.ok().map(i64::unsigned_abs);
        let (settings, spool) = (folders.settings(), folders.spool.clone());
        let disk = tokio::task::spawn_blocking(move || Space::around(&spool).ok()).await.ok().flatten();
        let measured = Measured { database_bytes, ceiling_bytes: settings.disk.ceiling_bytes.0, disk };
        let mut known = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let next = judge(known.state, measured);
        if next.state != known.state {
            match next.state {
                Keeping::MetadataOnly => tracing::warn!(reason = next.message, "only metadata of new events is kept"),
                Keeping::Ok => tracing::info!("there is room again: everything is kept"),
            }
        }
        *known = next;
    }
}

/// Where to look.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub(crate) spool: PathBuf,
    pub(crate) config: PathBuf,
    /// The last settings that could be read: a file that is being edited must not change what is kept.
    known: Arc<Mutex<(Settings, Option<String>)>>,
}

impl Folders {
    pub(crate) fn new(spool: PathBuf, config: PathBuf, settings: Settings) -> Self {
        Self { spool, config, known: Arc::new(Mutex::new((settings, None))) }
    }

    /// The settings as they are now, or as they last could be read.
    pub(crate) fn settings(&self) -> Settings {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match Settings::read(&self.config) {
            Ok(settings) => *known = (settings, None),
            Err(error) => {
                let told = error.to_string();
                if known.1.as_ref() != Some(&told) {
                    tracing::error!(error = told, hint = error.hint(), "the settings are not used; the former count");
                    known.1 = Some(told);
                }
            }
        }
        known.0.clone()
    }
}

fn judge(before: Keeping, measured: Measured) -> StorageState {
    let Measured { database_bytes, ceiling_bytes, disk } = measured;
    let limit = match before {
        Keeping::Ok => ceiling_bytes,
        Keeping::MetadataOnly => ceiling_bytes / 100 * ROOM_AGAIN_PERCENT,
    };
    let over = database_bytes.filter(|bytes| ceiling_bytes > 0 && *bytes > limit).map(|bytes| {
        format!(
            "the database has {} of {} MB (disk.ceiling_bytes): raise it in settings.toml, or lower the limits under \
             [retention] there and run `cargo xtask gc --compact`",
            bytes / 1_000_000,
            ceiling_bytes / 1_000_000
        )
    });
    let is_full = disk.is_some_and(|disk| match before {
        Keeping::Ok => disk.is_nearly_full(),
        Keeping::MetadataOnly => !disk.has_room_again(),
    });
    let full = disk
        .filter(|_| is_full)
        .map(|disk| format!("the disk under the spool has {} MB left: make room on it", disk.free_bytes / 1_000_000));
    // What is not known while the database is away stays as it was.
    let message = over.or(full);
    StorageState {
        state: if message.is_some() { Keeping::MetadataOnly } else { Keeping::Ok },
        message,
        database_bytes,
        ceiling_bytes: Some(ceiling_bytes),
        disk_free_bytes: disk.map(|disk| disk.free_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeping(before: Keeping, database_bytes: u64, disk_free_bytes: u64) -> Keeping {
        let disk = Some(Space { free_bytes: disk_free_bytes, total_bytes: 10_000 });
        judge(before, Measured { database_bytes: Some(database_bytes), ceiling_bytes: 1_000, disk }).state
    }

    #[test]
    fn keeps_metadata_only_from_the_ceiling_on_until_there_is_room_again() {
        assert_eq!(keeping(Keeping::Ok, 1_000, 5_000), Keeping::Ok);
        assert_eq!(keeping(Keeping::Ok, 1_001, 5_000), Keeping::MetadataOnly);
        assert_eq!(keeping(Keeping::MetadataOnly, 960, 5_000), Keeping::MetadataOnly);
        assert_eq!(keeping(Keeping::MetadataOnly, 940, 5_000), Keeping::Ok);
    }

    #[test]
    fn keeps_metadata_only_while_the_disk_is_nearly_full() {
        assert_eq!(keeping(Keeping::Ok, 10, 499), Keeping::MetadataOnly);
        assert_eq!(keeping(Keeping::MetadataOnly, 10, 700), Keeping::MetadataOnly);
        assert_eq!(keeping(Keeping::MetadataOnly, 10, 1_000), Keeping::Ok);
    }

    #[test]
    fn a_ceiling_of_zero_is_none() {
        let measured = Measured { database_bytes: Some(1 << 40), ceiling_bytes: 0, disk: None };
        assert_eq!(judge(Keeping::Ok, measured).state, Keeping::Ok);
    }
}
