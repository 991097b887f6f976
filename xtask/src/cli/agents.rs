//! `register` and `unregister`: which agents.

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::output::Form;

#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Which agents; if none is named, every one that this user has
    #[arg(value_enum, value_name = "AGENT")]
    named: Vec<Agent>,

    /// The same as a list
    #[arg(long, value_enum, value_delimiter = ',', value_name = "AGENT,...")]
    agents: Vec<Agent>,

    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

impl AgentArgs {
    pub fn form(&self) -> Form {
        Form::of_flag(self.json)
    }

    /// Each named agent once, in one order however they were named: what one agent runs may depend on another's settings.
    pub fn chosen(&self) -> Vec<Agent> {
        let is_chosen = |agent: &Agent| self.named.contains(agent) || self.agents.contains(agent);
        Agent::value_variants().iter().copied().filter(is_chosen).collect()
    }
}

/// The agents that can be registered with. VS Code comes after those whose hooks it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    Cursor,
    Copilot,
    Vscode,
    Opencode,
}

impl Agent {
    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Copilot => "Copilot CLI",
            Self::Vscode => "VS Code",
            Self::Opencode => "OpenCode",
        }
    }

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Vscode => "vscode",
            Self::Opencode => "opencode",
        }
    }
}
