//! A person who works with agents: a home, a project, and what is registered there.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::process::Command;

use crate::programs;
use crate::stack::Stack;

/// The home with every agent's settings, and one project in it.
#[derive(Debug)]
pub struct User {
    pub home: PathBuf,
    pub project: PathBuf,
}

impl User {
    /// A user to whom our memory is unknown.
    pub fn without_hooks(stack: &Stack, name: &str) -> Result<Self> {
        let home = stack.scratch().join(name);
        let project = home.join("widgets");
        for folder in [".claude", ".codex", ".gemini", "widgets"] {
            std::fs::create_dir_all(home.join(folder))?;
        }
        // As root, Claude Code refuses to skip its questions altogether.
        let claude = json!({"permissions": {"allow": ["Bash", "Write", "Read"]}});
        std::fs::write(home.join(".claude/settings.json"), claude.to_string())?;
        let gemini = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
        std::fs::write(home.join(".gemini/settings.json"), gemini.to_string())?;
        Ok(Self { home, project })
    }

    /// A user who has registered the installation's hooks and its MCP server with that agent (`claude`, `codex`, `gemini`).
    pub async fn registered(stack: &Stack, agent: &str) -> Result<Self> {
        let user = Self::without_hooks(stack, "user")?;
        stack.install(&programs::hook().await?)?;
        stack.install(&programs::mcp().await?)?;
        user.xtask(stack, &["register", "--agents", agent]).await?;
        Ok(user)
    }

    /// Runs an operator's command for that installation, as this user; what it printed.
    pub async fn xtask(&self, stack: &Stack, arguments: &[&str]) -> Result<String> {
        let output = Command::new(programs::xtask().await?)
            .args(arguments)
            .env_clear()
            .envs(self.environment())
            .env("AGENT_MEMORY_HOME", stack.home().root())
            .output()
            .await
            .context("starting xtask")?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`xtask {}` failed:\n{stdout}{stderr}", arguments.join(" "));
        Ok(stdout)
    }

    /// Where the agents find this user's settings.
    pub(super) fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("HOME", self.home.clone()),
            ("CLAUDE_CONFIG_DIR", self.home.join(".claude")),
            ("CODEX_HOME", self.home.join(".codex")),
        ]
    }
}
