//! What is registered now, for `status` and `doctor`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::claude::ClaudeFiles;
use super::document::Document;
use super::{hooks, servers};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct State {
    pub(crate) settings: PathBuf,
    pub(crate) servers: PathBuf,
    /// One entry for each event that `register` would register.
    pub(crate) hooks: Vec<EntryState>,
    pub(crate) mcp: EntryState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EntryState {
    /// The event's or the server's name.
    pub(crate) name: String,
    /// What Claude Code would start; `None` if nothing of ours is registered.
    pub(crate) program: Option<PathBuf>,
    /// Whether that program is there.
    pub(crate) program_exists: bool,
}

impl State {
    pub(super) fn of(files: &ClaudeFiles, settings: &Document, servers: &Document) -> Self {
        let registered = hooks::registered(settings);
        let program_of = |event: &str| {
            let found = registered.iter().find(|(name, _)| name == event);
            found.map(|(_, program)| PathBuf::from(program))
        };
        Self {
            settings: files.settings.clone(),
            servers: files.servers.clone(),
            hooks: hooks::EVENTS.iter().map(|event| EntryState::of(event.name, program_of(event.name))).collect(),
            mcp: EntryState::of(servers::SERVER_NAME, servers::registered(servers).map(PathBuf::from)),
        }
    }

    /// Whether anything of ours is registered.
    pub(crate) fn is_registered(&self) -> bool {
        self.entries().any(|entry| entry.program.is_some())
    }

    /// Whether everything is registered with these programs, and they are there.
    pub(crate) fn is_complete(&self, hook_program: &Path, mcp_program: &Path) -> bool {
        self.hooks.iter().all(|entry| entry.starts(hook_program)) && self.mcp.starts(mcp_program)
    }

    /// The hooks, then the MCP server.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &EntryState> {
        self.hooks.iter().chain([&self.mcp])
    }
}

impl EntryState {
    fn of(name: &str, program: Option<PathBuf>) -> Self {
        let program_exists = program.as_deref().is_some_and(Path::is_file);
        Self { name: name.to_owned(), program, program_exists }
    }

    fn starts(&self, program: &Path) -> bool {
        self.program_exists && self.program.as_deref() == Some(program)
    }
}
