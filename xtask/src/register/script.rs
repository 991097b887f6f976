//! A script that is ours from its first line to its last, and that names the program it runs.

use anyhow::bail;

use super::content::Edit;
use super::report::{Item, Outcome};
use super::state::EntryState;

/// The first line of every such script, whatever its version.
const MARK: &str = "// agent-memory: written by `cargo xtask register`";

const PLACE: &str = "\"@HOOK@\"";

pub(super) struct Script {
    /// What it is called in reports.
    pub(super) name: &'static str,
    /// The text, with a place for the program.
    pub(super) template: &'static str,
    pub(super) program: String,
}

impl Script {
    pub(super) fn add(&self, text: &str) -> anyhow::Result<Edit> {
        let wanted = self.text();
        let outcome = match text {
            "" => Outcome::Added,
            text if text == wanted => Outcome::AlreadyThere,
            text if text.starts_with(MARK) => Outcome::Corrected,
            _ => bail!("a script that is not ours has this name"),
        };
        Ok(Edit { text: wanted, items: vec![self.item(outcome)] })
    }

    pub(super) fn remove(&self, text: &str) -> Edit {
        if !text.starts_with(MARK) {
            return Edit { text: text.to_owned(), items: Vec::new() };
        }
        Edit { text: String::new(), items: vec![self.item(Outcome::Removed)] }
    }

    pub(super) fn found_in(&self, text: &str) -> Option<Self> {
        let program = text.starts_with(MARK).then(|| self.program_in(text))?.unwrap_or_default();
        Some(Self { program, ..*self })
    }

    pub(super) fn state(&self, text: &str) -> EntryState {
        let found = self.found_in(text);
        EntryState::of(self.name, found.as_ref().map(|found| (found.program.as_str(), found.text() == text)))
    }

    fn text(&self) -> String {
        // A JSON string is a JavaScript string.
        self.template.replace(PLACE, &serde_json::Value::from(self.program.as_str()).to_string())
    }

    /// What stands where the template has its place for the program.
    fn program_in(&self, text: &str) -> Option<String> {
        let (before, _) = self.template.split_once(PLACE)?;
        let start = before.lines().last()?;
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        serde_json::from_str(line.trim_end_matches(';')).ok()
    }

    fn item(&self, outcome: Outcome) -> Item {
        Item { name: self.name.to_owned(), outcome }
    }
}
