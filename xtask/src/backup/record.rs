//! How the last backup went, for `status` and `doctor`: also one that failed, which leaves no file.

use std::path::PathBuf;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use memory::home::Home;
use memory::settings;
use serde::{Deserialize, Serialize};

use super::folder::Folder;
use super::make::Made;
use crate::files;
use crate::output::headline;

/// The content of `run/backup.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    pub at: DateTime<Utc>,
    pub succeeded: bool,
    /// The file that was made, or why none was.
    pub message: String,
    pub duration_ms: u64,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub folder: PathBuf,
    pub count: usize,
    pub bytes: u64,
    pub newest_at: Option<DateTime<Utc>>,
    pub newest_bytes: u64,
    /// `None` before the first run.
    pub last_run: Option<LastRun>,
}

impl LastRun {
    /// Remembers how a run that began then has ended.
    pub fn keep(home: &Home, began: DateTime<Utc>, outcome: &Result<Made>) -> Result<()> {
        let message = match outcome {
            Ok(made) => made.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Err(error) => headline(error),
        };
        let duration_ms = (Utc::now() - began).num_milliseconds().unsigned_abs();
        let run = Self { at: began, succeeded: outcome.is_ok(), message, duration_ms };
        files::create_private_folder(&home.run())?;
        let text = serde_json::to_string(&run).context("cannot write how the backup went")?;
        files::write_private(&file(home), &format!("{text}\n"))
    }

    pub fn read(home: &Home) -> Result<Option<Self>> {
        let Some(text) = files::read_if_there(&file(home))? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).with_context(|| format!("cannot understand `{}`", file(home).display()))
    }
}

impl Summary {
    pub fn of(home: &Home, settings: &settings::Backup) -> Result<Self> {
        let folder = Folder::of(home, settings)?;
        let backups = folder.list()?;
        // One without its description cannot be restored.
        let newest = backups.iter().find(|backup| backup.manifest.is_some());
        Ok(Self {
            folder: folder.path().to_owned(),
            count: backups.len(),
            bytes: backups.iter().map(|backup| backup.bytes).sum(),
            newest_at: newest.map(|backup| backup.name.made_at),
            newest_bytes: newest.map_or(0, |backup| backup.bytes),
            last_run: LastRun::read(home)?,
        })
    }

    /// Whether the last run failed, and no backup has come since.
    pub fn failure(&self) -> Option<&LastRun> {
        self.last_run.as_ref().filter(|run| !run.succeeded && self.newest_at.is_none_or(|newest| newest < run.at))
    }
}

fn file(home: &Home) -> PathBuf {
    home.run().join("backup.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_until_there_is_a_newer_backup() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let run = LastRun { at: at("2026-03-02T10:00:00Z"), succeeded: false, message: "m".into(), duration_ms: 1 };
        let with = |newest_at| Summary {
            folder: "/f".into(),
            count: 1,
            bytes: 1,
            newest_at,
            newest_bytes: 1,
            last_run: Some(run.clone()),
        };
        assert!(with(None).failure().is_some());
        assert!(with(Some(at("2026-03-01T10:00:00Z"))).failure().is_some());
        assert!(with(Some(at("2026-03-02T10:00:01Z"))).failure().is_none());
    }

    #[test]
    fn remembers_a_failure_as_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(LastRun::read(&home).unwrap(), None);
        let failed = Err(anyhow::anyhow!("cause").context("the disk is full"));
        LastRun::keep(&home, Utc::now(), &failed).unwrap();
        let run = LastRun::read(&home).unwrap().unwrap();
        assert!(!run.succeeded && run.message == "the disk is full", "{run:?}");
    }
}
