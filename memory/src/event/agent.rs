//! The coding agents that we know, by the names under which their hooks are registered.

use std::fmt;
use std::str::FromStr;

/// A coding agent whose events we can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    ClaudeCode,
    Codex,
    GeminiCli,
    Cursor,
    CopilotCli,
    VsCode,
    OpenCode,
    /// Any other, which tells its events in Claude Code's form (docs/primer.md).
    Custom,
}

impl Agent {
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::Cursor,
        Self::CopilotCli,
        Self::VsCode,
        Self::OpenCode,
        Self::Custom,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Cursor => "cursor",
            Self::CopilotCli => "copilot-cli",
            Self::VsCode => "vscode",
            Self::OpenCode => "opencode",
            Self::Custom => "custom",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no agent that is known here: expected {known}", known = Agent::ALL.map(Agent::as_str).join(", "))]
pub struct UnknownAgent(String);

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|agent| agent.as_str() == text).ok_or_else(|| UnknownAgent(text.to_owned()))
    }
}
