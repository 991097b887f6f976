//! What a registration did, for people and for scripts.

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::Serialize;

/// What was done, file by file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    pub(crate) files: Vec<FileReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FileReport {
    pub(crate) path: PathBuf,
    /// The events whose hooks, or the server that, we looked after.
    pub(crate) items: Vec<Item>,
    /// Where the file's content from before lies, if it was kept just now.
    pub(crate) backup: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Item {
    /// An event's name, or the MCP server's.
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Installed,
    AlreadyThere,
    Updated,
    Removed,
}

impl Report {
    /// Whether any file was changed.
    pub(crate) fn is_changed(&self) -> bool {
        self.files.iter().flat_map(|file| &file.items).any(|item| item.outcome != Outcome::AlreadyThere)
    }
}

impl Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, file) in self.files.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_break}`{}`: ", file.path.display())?;
            if file.items.is_empty() {
                write!(formatter, "nothing of ours was there")?;
            }
            let mut outcomes: Vec<Outcome> = Vec::new();
            for item in &file.items {
                if !outcomes.contains(&item.outcome) {
                    outcomes.push(item.outcome);
                }
            }
            for (index, outcome) in outcomes.into_iter().enumerate() {
                let names = file.items.iter().filter(|item| item.outcome == outcome).map(|item| item.name.as_str());
                let separator = if index == 0 { "" } else { "; " };
                write!(formatter, "{separator}{outcome} {}", names.collect::<Vec<_>>().join(", "))?;
            }
            if let Some(backup) = &file.backup {
                write!(formatter, "; backup in `{}`", backup.display())?;
            }
        }
        Ok(())
    }
}

impl Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Installed => "installed",
            Self::AlreadyThere => "already there:",
            Self::Updated => "updated",
            Self::Removed => "removed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, outcome: Outcome) -> Item {
        Item { name: name.to_owned(), outcome }
    }

    #[test]
    fn tells_each_file_in_one_line() {
        let items = vec![
            item("SessionStart", Outcome::AlreadyThere),
            item("Stop", Outcome::Installed),
            item("SessionEnd", Outcome::AlreadyThere),
        ];
        let settings = FileReport { path: "/c/settings.json".into(), items, backup: Some("/c/b".into()) };
        let servers = FileReport { path: "/c/.claude.json".into(), items: Vec::new(), backup: None };
        let report = Report { files: vec![settings, servers] };
        assert_eq!(
            report.to_string(),
            "`/c/settings.json`: already there: SessionStart, SessionEnd; installed Stop; backup in `/c/b`\n\
             `/c/.claude.json`: nothing of ours was there"
        );
        assert!(report.is_changed());
    }
}
