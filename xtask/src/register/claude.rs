//! Where Claude Code keeps the two files.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;

use crate::output::HintExt;

/// The user's files that we change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaudeFiles {
    /// `settings.json`: hooks.
    pub(crate) settings: PathBuf,
    /// `.claude.json`: MCP servers at user scope, and much that is Claude Code's own.
    pub(crate) servers: PathBuf,
}

/// What decides where they are, gathered by [`ClaudeSurroundings::of_process`] and passed in by tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClaudeSurroundings {
    pub(crate) claude_config_dir: Option<OsString>,
    pub(crate) home: Option<OsString>,
}

impl ClaudeSurroundings {
    /// Reads the environment of this process.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads where Claude Code's files are")]
    pub(crate) fn of_process() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self { claude_config_dir: var("CLAUDE_CONFIG_DIR"), home: var("HOME").or_else(|| var("USERPROFILE")) }
    }
}

impl ClaudeFiles {
    /// `CLAUDE_CONFIG_DIR` holds both. Without it, one lies in `~/.claude` and the other beside that folder.
    pub(crate) fn locate(around: &ClaudeSurroundings) -> anyhow::Result<Self> {
        if let Some(folder) = &around.claude_config_dir {
            let folder = PathBuf::from(folder);
            return Ok(Self { settings: folder.join("settings.json"), servers: folder.join(".claude.json") });
        }
        let home = around.home.as_ref().map(PathBuf::from);
        let home = home.context("cannot find Claude Code's settings: the home folder is unknown").hint("set HOME")?;
        Ok(Self { settings: home.join(".claude/settings.json"), servers: home.join(".claude.json") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(around: &ClaudeSurroundings, settings: &str, servers: &str) {
        let expected = ClaudeFiles { settings: settings.into(), servers: servers.into() };
        assert_eq!(ClaudeFiles::locate(around).unwrap(), expected);
    }

    #[test]
    fn looks_in_the_home_folder() {
        let around = ClaudeSurroundings { home: Some("/h".into()), ..Default::default() };
        check(&around, "/h/.claude/settings.json", "/h/.claude.json");
    }

    #[test]
    fn finds_both_in_the_folder_that_the_user_has_chosen() {
        let around = ClaudeSurroundings { claude_config_dir: Some("/c".into()), home: Some("/h".into()) };
        check(&around, "/c/settings.json", "/c/.claude.json");
    }

    #[test]
    fn says_when_there_is_no_home_folder() {
        assert!(ClaudeFiles::locate(&ClaudeSurroundings::default()).is_err());
    }
}
