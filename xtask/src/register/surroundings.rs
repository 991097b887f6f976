//! Where the user's folders are: what the environment says, and what it is without it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::HintExt;

/// What decides where the agents keep their files, gathered by [`Surroundings::of_process`] and passed in by tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    pub(crate) claude_config_dir: Option<OsString>,
    pub(crate) codex_home: Option<OsString>,
    pub(crate) copilot_home: Option<OsString>,
    /// Where Gemini CLI looks for `.gemini`, if not in the home folder.
    pub(crate) gemini_cli_home: Option<OsString>,
    pub(crate) xdg_config_home: Option<OsString>,
    /// `%APPDATA%`, on Windows.
    pub(crate) app_data: Option<OsString>,
    pub(crate) home: Option<OsString>,
}

impl Surroundings {
    /// Reads the environment of this process.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads where the agents' files are")]
    pub(crate) fn of_process() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            claude_config_dir: var("CLAUDE_CONFIG_DIR"),
            codex_home: var("CODEX_HOME"),
            copilot_home: var("COPILOT_HOME"),
            gemini_cli_home: var("GEMINI_CLI_HOME"),
            xdg_config_home: var("XDG_CONFIG_HOME"),
            app_data: var("APPDATA"),
            home: var("HOME").or_else(|| var("USERPROFILE")),
        }
    }

    pub(super) fn home(&self) -> anyhow::Result<PathBuf> {
        let home = self.home.as_ref().map(PathBuf::from);
        home.context("cannot find the agents' settings: the home folder is unknown").hint("set HOME")
    }

    /// The folder in which an agent keeps its own files, transcripts among them; `None` for one whose transcripts are not read.
    pub(crate) fn agent_folder(&self, agent: memory::event::Agent) -> anyhow::Result<Option<PathBuf>> {
        let (chosen, home) = match agent {
            memory::event::Agent::ClaudeCode => (&self.claude_config_dir, None),
            memory::event::Agent::Codex => (&self.codex_home, None),
            memory::event::Agent::GeminiCli => (&None, self.gemini_cli_home.as_ref()),
            _ => return Ok(None),
        };
        if let Some(folder) = chosen {
            return Ok(Some(PathBuf::from(folder)));
        }
        let home = home.map_or_else(|| self.home(), |home| Ok(PathBuf::from(home)))?;
        Ok(memory::transcripts::usual_folder(agent, &home))
    }

    /// A file in the folder that the user has chosen, or else at that place in the home folder.
    pub(super) fn find(&self, chosen: Option<&OsString>, file: &str, usual: &str) -> anyhow::Result<Location> {
        match chosen {
            Some(folder) => Ok(Location::new(folder, file)),
            None => Ok(Location::new(self.home()?, usual)),
        }
    }
}

/// A file, and the folder above it that is there whatever we do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    root: PathBuf,
    path: PathBuf,
}

impl Location {
    pub(super) fn new(root: impl Into<PathBuf>, relative: &str) -> Self {
        let root = root.into();
        Self { path: root.join(relative), root }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The nearest folder above the file that exists.
    pub(crate) fn nearest_folder(&self) -> Option<&Path> {
        self.path.ancestors().skip(1).find(|folder| folder.is_dir())
    }

    /// Deletes the folders that were made for the file: those below the root that nothing else is in.
    pub(super) fn remove_empty_folders(&self) {
        let folders = self.path.ancestors().skip(1).take_while(|folder| *folder != self.root);
        for folder in folders {
            // Fails, as it should, where there is something else in it.
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}
