//! A file of the user's: read, kept as a backup, and replaced in one step.
//!
//! A link is followed, since people link such files to where they keep their settings under version control; mode and
//! owner stay.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::HintExt;

/// What stood in the file when it was read.
pub(super) struct TextFile {
    path: PathBuf,
    /// `None` where there is no file.
    text: Option<String>,
}

/// Whether the file was changed, or someone else had changed it since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saved {
    Done,
    ChangedMeanwhile,
}

impl TextFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        Ok(Self { path: path.to_owned(), text: read_if_there(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Copies the file beside itself, with its mode. Returns where to, or `None` where there is no file.
    pub(super) fn back_up(&self) -> anyhow::Result<Option<PathBuf>> {
        let backup = self.backup_path();
        if self.text.is_none() {
            // A backup from an earlier registration would say that there was a file.
            self.delete_backup()?;
            return Ok(None);
        }
        std::fs::copy(&self.path, &backup)
            .with_context(|| format!("cannot copy `{}` to `{}`", self.path.display(), backup.display()))?;
        Ok(Some(backup))
    }

    pub(super) fn backup_text(&self) -> anyhow::Result<Option<String>> {
        read_if_there(&self.backup_path())
    }

    pub(super) fn delete_backup(&self) -> anyhow::Result<()> {
        delete_if_there(&self.backup_path())
    }

    /// Replaces the file's text.
    pub(super) fn save(&self, text: &str) -> anyhow::Result<Saved> {
        let target = self.target();
        let cannot_write = || format!("cannot write `{}`", target.display());
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).with_context(cannot_write)?;
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = target.with_file_name(format!(".{name}.agent-memory-{}", std::process::id()));
        let saved = write_like(&unfinished, &target, text).with_context(cannot_write).and_then(|()| {
            if self.is_changed()? {
                return Ok(Saved::ChangedMeanwhile);
            }
            std::fs::rename(&unfinished, &target).with_context(cannot_write)?;
            Ok(Saved::Done)
        });
        if !matches!(saved, Ok(Saved::Done)) {
            let _ = std::fs::remove_file(&unfinished);
        }
        saved.hint("check that you may write into that folder and that its disk is not full")
    }

    pub(super) fn delete(&self) -> anyhow::Result<Saved> {
        if self.is_changed()? {
            return Ok(Saved::ChangedMeanwhile);
        }
        delete_if_there(&self.path)?;
        Ok(Saved::Done)
    }

    fn is_changed(&self) -> anyhow::Result<bool> {
        Ok(read_if_there(&self.path)? != self.text)
    }

    fn backup_path(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!("{name}.agent-memory-backup"))
    }

    /// Where the text really lies.
    fn target(&self) -> PathBuf {
        if let Ok(target) = std::fs::canonicalize(&self.path) {
            return target;
        }
        // A link to a file that is not there yet.
        match (std::fs::read_link(&self.path), self.path.parent()) {
            (Ok(target), Some(folder)) => folder.join(target),
            _ => self.path.clone(),
        }
    }
}

fn read_if_there(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

fn delete_if_there(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot delete `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

/// Writes a new file with the mode and the owner of another. Where there is no other, only the user may read it.
fn write_like(path: &Path, model: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    if let Ok(model) = std::fs::metadata(model) {
        take_owner(&file, &model);
        file.set_permissions(model.permissions())?;
    }
    file.sync_all()
}

/// Matters to root only, who may register for somebody else.
#[cfg(unix)]
fn take_owner(file: &File, model: &std::fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    if file.metadata().is_ok_and(|own| (own.uid(), own.gid()) != (model.uid(), model.gid())) {
        let _ = fchown(file, Some(model.uid()), Some(model.gid()));
    }
}

#[cfg(not(unix))]
fn take_owner(_file: &File, _model: &std::fs::Metadata) {}
