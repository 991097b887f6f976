//! What is registered now, for `doctor` and for whoever must not register twice.

use std::path::{Path, PathBuf};

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct State {
    /// One entry for each event that `register` would register.
    pub(crate) hooks: Vec<EntryState>,
    pub(crate) mcp: EntryState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EntryState {
    /// The event's or the server's name.
    pub(crate) name: String,
    /// What the agent would start; `None` if nothing of ours is registered.
    pub(crate) program: Option<PathBuf>,
    /// Whether that program is there.
    pub(crate) program_exists: bool,
    /// Whether it is started as `register` would have it.
    pub(crate) is_as_we_write_it: bool,
}

impl State {
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
    /// `found`: the program, and whether it is started as we would write it.
    pub(super) fn of(name: &str, found: Option<(&str, bool)>) -> Self {
        let program = found.map(|(program, _)| PathBuf::from(program));
        let program_exists = program.as_deref().is_some_and(Path::is_file);
        let is_as_we_write_it = found.is_some_and(|(_, is_as_we_write_it)| is_as_we_write_it);
        Self { name: name.to_owned(), program, program_exists, is_as_we_write_it }
    }

    fn starts(&self, program: &Path) -> bool {
        self.program_exists && self.is_as_we_write_it && self.program.as_deref() == Some(program)
    }
}
