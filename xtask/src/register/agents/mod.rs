//! What each agent reads: which files, which events, in which form. One file an agent.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
mod vscode;

use super::Programs;
use super::part::Part;
use super::report::Unavailable;
use super::surroundings::Surroundings;
use crate::cli::Agent;

/// The hook ends by itself within 0.3 s, so this is for a machine that stands still.
const TIMEOUT_S: u64 = 5;

/// What registering with an agent means.
pub(super) struct Profile {
    /// The last one is the file with the MCP servers.
    pub(super) parts: Vec<Part>,
    pub(super) unavailable: Vec<Unavailable>,
    /// What the user has to know or to do beyond it.
    pub(super) remarks: Vec<&'static str>,
}

pub(super) fn profile(agent: Agent, around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let profile = match agent {
        Agent::Claude => claude::profile,
        Agent::Codex => codex::profile,
        Agent::Gemini => gemini::profile,
        Agent::Cursor => cursor::profile,
        Agent::Copilot => copilot::profile,
        Agent::Vscode => vscode::profile,
        Agent::Opencode => opencode::profile,
    };
    profile(around, programs)
}

/// Whether the agent has left a folder of its own.
pub(super) fn is_used(agent: Agent, around: &Surroundings) -> anyhow::Result<bool> {
    let file = match agent {
        Agent::Claude if claude::servers(around)?.path().is_file() => return Ok(true),
        Agent::Claude => claude::settings(around)?,
        Agent::Codex => codex::config(around)?,
        Agent::Gemini => gemini::settings(around)?,
        Agent::Cursor => cursor::servers(around)?,
        Agent::Copilot => copilot::servers(around)?,
        Agent::Vscode => vscode::servers(around)?,
        Agent::Opencode => opencode::config(around)?,
    };
    let Some(folder) = file.path().parent().filter(|folder| folder.is_dir()) else { return Ok(false) };
    if agent == Agent::Copilot {
        // The folder may be there only because hooks for VS Code lie in it.
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        return Ok(entries.filter(|entry| entry.file_name() != "hooks").count() > 0);
    }
    Ok(true)
}
