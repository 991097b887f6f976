//! The real Codex.
//!
//! It runs hooks only when a person has looked at them (it keeps a hash of each), or when told not to ask, as here.

use anyhow::Result;
use tokio::sync::OnceCell;

use super::npm::{Client, Package};
use super::{Report, Session};

/// One that the client knows: it offers `apply_patch` only to models of which it knows that they can use it.
pub const MODEL: &str = "gpt-5.5";

/// What it says of every session that is started in this way.
const ALWAYS_SAID: &str = "`--dangerously-bypass-hook-trust` is enabled";

static PACKAGE: Package = Package {
    name: "Codex",
    package: "@openai/codex",
    version: "0.171.0",
    program: "codex",
    node: 16,
    found: OnceCell::const_new(),
};

/// An installed Codex.
#[derive(Debug)]
pub struct Codex(&'static Client);

impl Codex {
    /// Nothing where there is none and none is required; the summary has the reason.
    pub async fn find() -> Result<Option<Self>> {
        Ok(PACKAGE.find().await?.map(Self))
    }

    /// Runs one `codex exec` to its end.
    pub async fn run(&self, session: Session<'_>) -> Result<Report> {
        let url = format!("{}/v1", session.model.url());
        let provider = format!(r#"{{name="scripted",base_url="{url}",wire_api="responses"}}"#);
        let mut command = self.0.command(session.user);
        command.env("TERM", "xterm").env("OPENAI_API_KEY", "x").arg("exec");
        if session.resumes.is_some() {
            command.arg("resume");
        }
        command
            .args(["--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"])
            .args(["--dangerously-bypass-approvals-and-sandbox", "--model", MODEL])
            .args(["--config", "model_provider=scripted"])
            .args(["--config", &format!("model_providers.scripted={provider}")])
            .args(session.resumes)
            .arg(session.prompt);
        super::run(PACKAGE.name, &mut command).await
    }
}

/// What only Codex tells.
impl Report {
    /// The assistant's last words.
    pub fn last_message(&self) -> &str {
        let mut items = self.events.iter().rev().map(|event| &event["item"]);
        items.find(|item| item["type"] == "agent_message").and_then(|item| item["text"].as_str()).unwrap_or_default()
    }

    /// What Codex complains of.
    pub fn complaints(&self) -> Vec<&str> {
        let items = self.events.iter().map(|event| &event["item"]).filter(|item| item["type"] == "error");
        let messages = items.filter_map(|item| item["message"].as_str());
        messages.filter(|message| !message.starts_with(ALWAYS_SAID)).collect()
    }
}
