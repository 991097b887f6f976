//! The folder with the backups: what lies in it, newest first, and what a killed program left.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use memory::home::Home;
use memory::settings;
use serde::Serialize;

use super::manifest::Manifest;
use super::name::{Name, Origin};
use super::{Rotation, seal};
use crate::files;
use crate::output::HintExt;

/// Names of files that are being written.
const UNFINISHED: &str = ".tmp-backup-";

/// Where backups lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

/// A backup that is there, whole or not.
#[derive(Debug, Clone)]
pub struct Backup {
    pub path: PathBuf,
    pub name: Name,
    pub bytes: u64,
    /// `None` where it cannot be read: then the backup cannot be restored either.
    pub manifest: Option<Manifest>,
}

/// What `list` shows of one to a script.
#[derive(Debug, Serialize)]
pub struct Listed<'a> {
    file: String,
    path: &'a Path,
    made_at: chrono::DateTime<chrono::Utc>,
    origin: Origin,
    label: Option<&'a super::Label>,
    locking: super::name::Locking,
    bytes: u64,
    manifest: Option<&'a Manifest>,
}

impl Folder {
    /// The one that the settings name, else the home's own.
    pub fn of(home: &Home, settings: &settings::Backup) -> Result<Self> {
        let path = &settings.folder;
        if path.as_os_str().is_empty() {
            return Ok(Self { path: home.backups() });
        }
        ensure!(
            path.is_absolute(),
            "`backup.folder` in settings.toml must be an absolute path, not `{}`",
            path.display()
        );
        Ok(Self { path: path.clone() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that the folder is there, for its owner only where we make it.
    pub fn create(&self) -> Result<()> {
        files::create_private_folder(&self.path)
            .hint("let `backup.folder` in settings.toml name a folder that can be written to")
    }

    /// The backups in it, newest first.
    pub fn list(&self) -> Result<Vec<Backup>> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let reading = || format!("cannot read the folder `{}`", self.path.display());
        let mut backups = Vec::new();
        for entry in std::fs::read_dir(&self.path).with_context(reading)? {
            let path = entry.with_context(reading)?.path();
            if let Some(backup) = Backup::at(&path) {
                backups.push(backup);
            }
        }
        backups.sort_by(|one, other| (other.name.made_at, &other.path).cmp(&(one.name.made_at, &one.path)));
        Ok(backups)
    }

    /// The file that a person means: a path, a name in the folder, or `latest`.
    pub fn find(&self, wanted: &str) -> Result<PathBuf> {
        if wanted == "latest" {
            let newest = self.list()?.into_iter().next();
            let newest = newest.with_context(|| format!("there is no backup in `{}`", self.path.display()));
            return Ok(newest.hint("make one: `cargo xtask backup`")?.path);
        }
        let candidates = [PathBuf::from(wanted), self.path.join(wanted)];
        candidates
            .into_iter()
            .find(|path| path.is_file())
            .with_context(|| format!("there is no backup `{wanted}`, here or in `{}`", self.path.display()))
            .hint("`cargo xtask backup list` shows the names")
    }

    /// Whether a day has passed since the last scheduled one that can be restored; an hour less, or each would come later than the last.
    pub fn is_due(&self, now: DateTime<Utc>) -> Result<bool> {
        const REST: TimeDelta = TimeDelta::hours(23);
        let scheduled = |backup: &Backup| backup.name.origin == Origin::Scheduled && backup.manifest.is_some();
        let last = self.list()?.into_iter().find(scheduled);
        // A clock that was wrong once must not end all backups.
        Ok(last.is_none_or(|last| last.name.made_at > now || now - last.name.made_at >= REST))
    }

    /// Those that the rotation has no place for.
    pub fn outdated(&self, rotation: Rotation) -> Result<Vec<Backup>> {
        let mut backups = self.list()?;
        backups.retain(|backup| backup.name.origin == Origin::Scheduled);
        let times: Vec<_> = backups.iter().map(|backup| backup.name.made_at).collect();
        let outdated = rotation.outdated(&times);
        backups.retain(|backup| outdated.contains(&backup.name.made_at));
        Ok(backups)
    }

    /// Removes what a program that was killed left half written. The caller holds the lock of those who write.
    pub fn sweep(&self) -> Result<()> {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return Ok(()) };
        for entry in entries.filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// A name for what is being written: hidden, and no backup's.
    pub(super) fn unfinished(&self, name: &Name) -> PathBuf {
        self.path.join(format!("{UNFINISHED}{}-{name}", std::process::id()))
    }
}

impl Backup {
    /// The backup in a file, if its name says that it is one.
    pub fn at(path: &Path) -> Option<Self> {
        let name = Name::parse(&path.file_name()?.to_string_lossy())?;
        let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        Some(Self { path: path.to_owned(), name, bytes, manifest: seal::manifest_of(path).ok() })
    }

    pub fn file(&self) -> String {
        self.name.to_string()
    }

    /// Removes it with what lies beside it; the backup itself first, so that no other is taken for it.
    pub fn remove(&self) -> Result<()> {
        files::remove(&self.path)?;
        for beside in seal::beside(&self.path) {
            files::remove(&beside)?;
        }
        Ok(())
    }

    pub fn listed(&self) -> Listed<'_> {
        Listed {
            file: self.file(),
            path: &self.path,
            made_at: self.name.made_at,
            origin: self.name.origin,
            label: self.name.label.as_ref(),
            locking: self.name.locking,
            bytes: self.bytes,
            manifest: self.manifest.as_ref(),
        }
    }
}

/// The failure where a file's name is none of ours.
pub(super) fn no_backup(path: &Path) -> anyhow::Error {
    anyhow!("`{}` is not named like a backup (agent-memory-<time>-<origin>.dump)", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[&str]) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(place.path().join(file), "x").unwrap();
        }
        let folder = Folder { path: place.path().to_owned() };
        (place, folder)
    }

    #[test]
    fn lists_backups_newest_first_and_nothing_else() {
        let (_place, folder) = folder_with(&[
            "agent-memory-20260301T000000Z-manual.dump",
            "agent-memory-20260302T000000Z-scheduled.dump.age",
            "agent-memory-20260302T000000Z-scheduled.dump.age.sha256",
            ".tmp-backup-7-agent-memory-20260303T000000Z-manual.dump",
            "notes.txt",
        ]);
        let files: Vec<_> = folder.list().unwrap().iter().map(Backup::file).collect();
        let expected =
            ["agent-memory-20260302T000000Z-scheduled.dump.age", "agent-memory-20260301T000000Z-manual.dump"];
        assert_eq!(files, expected);
        assert!(folder.find("latest").unwrap().ends_with(expected[0]));
        assert!(folder.find(expected[1]).is_ok() && folder.find("another").is_err());
        folder.sweep().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "only what was half written is gone");
    }

    #[test]
    fn a_manual_backup_is_never_outdated() {
        let (_place, folder) = folder_with(&[
            "agent-memory-20200101T000000Z-manual.dump",
            "agent-memory-20200101T000000Z-scheduled.dump",
            "agent-memory-20260302T000000Z-scheduled.dump",
        ]);
        let outdated = folder.outdated(Rotation { daily: 1, weekly: 1, monthly: 1 }).unwrap();
        let files: Vec<_> = outdated.iter().map(Backup::file).collect();
        assert_eq!(files, ["agent-memory-20200101T000000Z-scheduled.dump"]);
        outdated[0].remove().unwrap();
        assert_eq!(folder.list().unwrap().len(), 2);
    }

    #[test]
    fn a_folder_of_the_settings_must_say_where_it_is() {
        let home = Home::at("/h");
        let of = |folder: &str| Folder::of(&home, &settings::Backup { folder: folder.into(), ..Default::default() });
        assert_eq!(of("").unwrap().path(), Path::new("/h/backups"));
        assert_eq!(of("/mnt/b").unwrap().path(), Path::new("/mnt/b"));
        assert!(of("b").is_err());
    }
}
