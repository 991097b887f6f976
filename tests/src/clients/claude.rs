//! The real Claude Code.

use anyhow::Result;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::npm::{Client, Package};
use super::{Report, Session};

static PACKAGE: Package = Package {
    name: "Claude Code",
    package: "@anthropic-ai/claude-code",
    version: "2.1.332",
    program: "claude",
    node: 0,
    found: OnceCell::const_new(),
};

/// An installed Claude Code.
#[derive(Debug)]
pub struct Claude(&'static Client);

/// One run of a hook, as Claude Code saw it.
#[derive(Debug, PartialEq)]
pub struct HookRun {
    pub event: String,
    pub outcome: String,
    pub output: String,
}

impl Claude {
    /// Nothing where there is none and none is required; the summary has the reason.
    pub async fn find() -> Result<Option<Self>> {
        Ok(PACKAGE.find().await?.map(Self))
    }

    /// Runs one `claude -p` to its end.
    pub async fn run(&self, session: Session<'_>) -> Result<Report> {
        let mut command = self.0.command(session.user);
        command
            .args(["-p", session.prompt, "--output-format", "stream-json", "--verbose", "--include-hook-events"])
            .env("TERM", "xterm")
            .env("ANTHROPIC_BASE_URL", session.model.url())
            .env("ANTHROPIC_API_KEY", "sk-ant-api03-localtest")
            .envs(["DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"].map(|name| (name, "1")))
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        if let Some(id) = session.resumes {
            command.args(["--resume", id]);
        }
        command.args(["--allowedTools", "mcp__agent-memory"]);
        super::run(PACKAGE.name, &mut command).await
    }
}

/// What only Claude Code tells.
impl Report {
    /// The assistant's last words.
    pub fn result(&self) -> &str {
        self.events.iter().rev().find_map(|event| event["result"].as_str()).unwrap_or_default()
    }

    /// Whether Claude Code itself calls the session failed.
    pub fn is_error(&self) -> bool {
        self.events.iter().any(|event| event["is_error"] == Value::Bool(true) && event["type"] == "result")
    }

    /// How each run of a hook ended.
    pub fn hooks(&self) -> Vec<HookRun> {
        let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
        self.events
            .iter()
            .filter(|event| event["subtype"] == "hook_response")
            .map(|event| HookRun {
                event: text(event, "hook_event"),
                outcome: text(event, "outcome"),
                output: text(event, "output"),
            })
            .collect()
    }

    /// How each registered MCP server fared: `name: state`.
    pub fn mcp_servers(&self) -> Vec<String> {
        let opening = self.events.iter().find(|event| event["subtype"] == "init");
        let servers = opening.and_then(|event| event["mcp_servers"].as_array()).into_iter().flatten();
        let text = |server: &Value, name: &str| server[name].as_str().unwrap_or_default().to_owned();
        servers.map(|server| format!("{}: {}", text(server, "name"), text(server, "status"))).collect()
    }
}
