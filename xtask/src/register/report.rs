//! What a registration did, for people and for scripts.

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::Serialize;

use crate::cli::Agent;

/// What was done for an agent, file by file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// Named by whoever prints the report as JSON, failed attempts included.
    #[serde(skip)]
    pub(crate) agent: Agent,
    pub(crate) files: Vec<FileReport>,
    pub(crate) unavailable: Vec<Unavailable>,
    /// What the user has to know or to do beyond it.
    pub(crate) remarks: Vec<&'static str>,
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
    Added,
    AlreadyThere,
    Corrected,
    Removed,
}

/// What others have and this agent has not, or has in a way that is of no use to us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Unavailable {
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
}

impl Unavailable {
    pub(super) fn new(name: &'static str, reason: &'static str) -> Self {
        Self { name, reason }
    }
}

impl Report {
    /// Whether any file was changed.
    pub(crate) fn is_changed(&self) -> bool {
        self.files.iter().flat_map(|file| &file.items).any(|item| item.outcome != Outcome::AlreadyThere)
    }
}

impl Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.agent.title())?;
        for file in &self.files {
            write!(formatter, "\n  {file}")?;
        }
        for Unavailable { name, reason } in &self.unavailable {
            write!(formatter, "\n  not available: {name} ({reason})")?;
        }
        for remark in &self.remarks {
            write!(formatter, "\n  note: {remark}")?;
        }
        Ok(())
    }
}

impl Display for FileReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: ", self.path.display())?;
        if self.items.is_empty() {
            write!(formatter, "nothing of ours was there")?;
        }
        let mut outcomes: Vec<Outcome> = Vec::new();
        for item in &self.items {
            if !outcomes.contains(&item.outcome) {
                outcomes.push(item.outcome);
            }
        }
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let names = self.items.iter().filter(|item| item.outcome == outcome).map(|item| item.name.as_str());
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{outcome} {}", names.collect::<Vec<_>>().join(", "))?;
        }
        match &self.backup {
            Some(backup) => write!(formatter, "; backup in `{}`", backup.display()),
            None => Ok(()),
        }
    }
}

impl Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Added => "added",
            Self::AlreadyThere => "already there:",
            Self::Corrected => "corrected",
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
            item("Stop", Outcome::Added),
            item("SessionEnd", Outcome::AlreadyThere),
        ];
        let hooks = FileReport { path: "/c/hooks.json".into(), items, backup: Some("/c/b".into()) };
        let servers = FileReport { path: "/c/config.toml".into(), items: Vec::new(), backup: None };
        let report = Report {
            agent: Agent::Codex,
            files: vec![hooks, servers],
            unavailable: vec![Unavailable::new("CwdChanged", "there is none")],
            remarks: vec!["trust them"],
        };
        assert_eq!(
            report.to_string(),
            "Codex:\n  \
             `/c/hooks.json`: already there: SessionStart, SessionEnd; added Stop; backup in `/c/b`\n  \
             `/c/config.toml`: nothing of ours was there\n  \
             not available: CwdChanged (there is none)\n  \
             note: trust them"
        );
        assert!(report.is_changed());
    }
}
