//! Registration with the agents: our hooks and our MCP server in each one's own settings.
//!
//! The files are the user's. What is not ours stays byte for byte, a second run changes nothing, and `unregister` undoes
//! exactly what `register` did. `agents` knows which files an agent reads and what an entry looks like there; `hooks`,
//! `servers`, `toml` and `script` know the entries in a text, `document` the text, `part` and `file` the disk.

mod agents;
mod command;
mod content;
mod document;
mod file;
mod hooks;
mod part;
mod report;
mod script;
mod servers;
mod state;
mod surroundings;
mod toml;

use std::path::{Path, PathBuf};

use anyhow::Context;

use self::agents::Profile;
use self::part::{Part, Presence};
use crate::cli::Agent;

pub(crate) use self::report::Report;
pub(crate) use self::state::State;
pub(crate) use self::surroundings::Surroundings;

/// What is registered with an agent, and where.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    pub(crate) agent: Agent,
    /// `agent-memory-hook`, absolute.
    pub(crate) hook_program: PathBuf,
    /// `agent-memory-mcp`, absolute.
    pub(crate) mcp_program: PathBuf,
    pub(crate) around: Surroundings,
}

/// The two programs as they stand in settings, which are text.
struct Programs {
    hook: String,
    mcp: String,
}

impl Registration {
    /// Adds what is missing and corrects what points elsewhere. Touches no file if one of them cannot be understood.
    pub(crate) fn register(&self) -> anyhow::Result<Report> {
        let Profile { parts, unavailable, remarks } = self.profile()?;
        for part in &parts {
            match part.presence {
                Presence::Wanted => part.check_addition()?,
                Presence::Unwanted => part.check_removal()?,
            }
        }
        let mut files = Vec::new();
        for part in &parts {
            match part.presence {
                Presence::Wanted => files.push(part.add()?),
                Presence::Unwanted => {
                    files.extend(Some(part.remove()?).filter(|report| !report.items.is_empty()));
                }
            }
        }
        Ok(Report { agent: self.agent, files, unavailable, remarks })
    }

    /// Removes what is ours, whichever installation it belongs to.
    pub(crate) fn unregister(&self) -> anyhow::Result<Report> {
        let parts = self.profile()?.parts;
        parts.iter().try_for_each(Part::check_removal)?;
        let files = parts.iter().map(Part::remove).collect::<anyhow::Result<_>>()?;
        Ok(Report { agent: self.agent, files, unavailable: Vec::new(), remarks: Vec::new() })
    }

    /// What is registered now.
    pub(crate) fn state(&self) -> anyhow::Result<State> {
        let (mut hooks, mut servers) = (Vec::new(), Vec::new());
        for part in self.profile()?.parts.iter().filter(|part| part.presence == Presence::Wanted) {
            let states = part.state()?;
            hooks.extend(states.hooks);
            servers.extend(states.servers);
        }
        let mcp = servers.into_iter().next().context("every agent has a place for MCP servers")?;
        Ok(State { hooks, mcp })
    }

    /// The folder that exists already and in which the agent's settings lie, or would.
    pub(crate) fn folder(&self) -> anyhow::Result<Option<PathBuf>> {
        // The MCP server's file: where Claude Code's hooks lie may be a link into somebody's shared settings.
        let parts = self.profile()?.parts;
        Ok(parts.last().and_then(|part| part.location.nearest_folder()).map(Path::to_owned))
    }

    /// Whether this user has ever started the agent.
    pub(crate) fn is_used(&self) -> anyhow::Result<bool> {
        agents::is_used(self.agent, &self.around)
    }

    fn profile(&self) -> anyhow::Result<Profile> {
        let programs = Programs { hook: text_of(&self.hook_program)?, mcp: text_of(&self.mcp_program)? };
        agents::profile(self.agent, &self.around, &programs)
    }
}

/// A path that stands in settings must be text.
fn text_of(program: &Path) -> anyhow::Result<String> {
    let text = program.to_str().with_context(|| format!("the path `{}` is not Unicode", program.display()))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
