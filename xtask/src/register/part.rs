//! One file of an agent's: our entries are planned as a text first, then the file is replaced in one step, or left.

use anyhow::{Context, anyhow};

use super::content::{Content, States};
use super::file::{Saved, TextFile};
use super::report::{FileReport, Item, Outcome};
use super::surroundings::Location;
use crate::output::{HintExt, hinted};

pub(super) struct Part {
    pub(super) location: Location,
    pub(super) content: Content,
    pub(super) presence: Presence,
}

/// Whether our entries should be in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Wanted,
    /// They are elsewhere by now and would run twice.
    Unwanted,
}

/// What becomes of a file.
enum Plan {
    Leave,
    Write(String),
    Delete,
}

/// Another program may write the file at the same moment; Claude Code does so with `.claude.json`.
const MAX_ATTEMPTS: usize = 3;

impl Part {
    pub(super) fn new(location: Location, content: Content) -> Self {
        Self { location, content, presence: Presence::Wanted }
    }

    /// Fails where registering would.
    pub(super) fn check_addition(&self) -> anyhow::Result<()> {
        self.plan_addition(&TextFile::read(self.location.path())?).map(drop)
    }

    /// Fails where unregistering would.
    pub(super) fn check_removal(&self) -> anyhow::Result<()> {
        self.plan_removal(&TextFile::read(self.location.path())?).map(drop)
    }

    pub(super) fn add(&self) -> anyhow::Result<FileReport> {
        for _ in 0..MAX_ATTEMPTS {
            let file = TextFile::read(self.location.path())?;
            let (plan, items) = self.plan_addition(&file)?;
            let Plan::Write(text) = plan else {
                return Ok(self.report(items));
            };
            let backup = if self.is_in(&file)? { None } else { file.back_up()? };
            if file.save(&text)? == Saved::Done {
                return Ok(FileReport { backup, ..self.report(items) });
            }
        }
        Err(self.kept_changing())
    }

    pub(super) fn remove(&self) -> anyhow::Result<FileReport> {
        for _ in 0..MAX_ATTEMPTS {
            let file = TextFile::read(self.location.path())?;
            let (plan, items) = self.plan_removal(&file)?;
            let saved = match plan {
                Plan::Leave => return Ok(self.report(items)),
                Plan::Write(text) => file.save(&text)?,
                Plan::Delete => file.delete()?,
            };
            if saved == Saved::Done {
                file.delete_backup()?;
                if !self.location.path().exists() {
                    self.location.remove_empty_folders();
                }
                return Ok(self.report(items));
            }
        }
        Err(self.kept_changing())
    }

    pub(super) fn state(&self) -> anyhow::Result<States> {
        let file = TextFile::read(self.location.path())?;
        self.understand(&file)?;
        self.content.state(file.text().unwrap_or_default())
    }

    fn plan_addition(&self, file: &TextFile) -> anyhow::Result<(Plan, Vec<Item>)> {
        self.understand(file)?;
        let edit = self.content.add(file.text().unwrap_or_default());
        let edit = edit.with_context(|| format!("cannot register in `{}`", file.path().display()))?;
        let is_changed = edit.items.iter().any(|item| item.outcome != Outcome::AlreadyThere);
        Ok((if is_changed { Plan::Write(edit.text) } else { Plan::Leave }, edit.items))
    }

    fn plan_removal(&self, file: &TextFile) -> anyhow::Result<(Plan, Vec<Item>)> {
        self.understand(file)?;
        let text = file.text().unwrap_or_default();
        let Some(found) = self.content.found_in(text)? else {
            return Ok((Plan::Leave, Vec::new()));
        };
        // A backup that cannot be understood any more is as good as none.
        let original = file.backup_text()?.filter(|original| self.content.check(original).is_ok());
        let edit = self.content.remove(text, original.as_deref())?;
        let plan = match original {
            // Nothing but our entries has been added since: then the file becomes again what it was, to the byte.
            Some(original) if found.add(&original).is_ok_and(|again| again.text == text) => Plan::Write(original),
            None if self.content.is_blank(&edit.text)? => Plan::Delete,
            _ => Plan::Write(edit.text),
        };
        Ok((plan, edit.items))
    }

    fn understand(&self, file: &TextFile) -> anyhow::Result<()> {
        let checked = self.content.check(file.text().unwrap_or_default());
        let (path, language) = (file.path().display(), self.content.language());
        checked
            .with_context(|| format!("`{path}` is not valid {language} and was left as it is"))
            .hint("repair the file, then run the command again")
    }

    fn is_in(&self, file: &TextFile) -> anyhow::Result<bool> {
        Ok(self.content.found_in(file.text().unwrap_or_default())?.is_some())
    }

    fn report(&self, items: Vec<Item>) -> FileReport {
        FileReport { path: self.location.path().to_owned(), items, backup: None }
    }

    fn kept_changing(&self) -> anyhow::Error {
        let error = anyhow!("`{}` is being changed by another program", self.location.path().display());
        hinted(error, "close the agent's running sessions and try again")
    }
}
