//! The real Gemini CLI.

use anyhow::Result;
use tokio::sync::OnceCell;

use super::npm::{Client, Package};
use super::{Report, Session};

/// Named, so that the client does not first ask which model to ask.
pub const MODEL: &str = "gemini-2.5-pro";

static PACKAGE: Package = Package {
    name: "Gemini CLI",
    package: "@google/gemini-cli",
    version: "0.61.0",
    program: "gemini",
    node: 20,
    found: OnceCell::const_new(),
};

/// An installed Gemini CLI.
#[derive(Debug)]
pub struct Gemini(&'static Client);

impl Gemini {
    /// Nothing where there is none and none is required; the summary has the reason.
    pub async fn find() -> Result<Option<Self>> {
        Ok(PACKAGE.find().await?.map(Self))
    }

    /// Runs one `gemini -p` to its end.
    pub async fn run(&self, session: Session<'_>) -> Result<Report> {
        let mut command = self.0.command(session.user);
        command
            .args(["--prompt", session.prompt, "--output-format", "stream-json"])
            .args(["--model", MODEL, "--approval-mode", "yolo"])
            .env("TERM", "xterm-256color")
            .env("GEMINI_API_KEY", "x")
            .env("GOOGLE_GEMINI_BASE_URL", session.model.url())
            .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
            // Else it starts itself a second time, for more memory.
            .env("GEMINI_CLI_NO_RELAUNCH", "true");
        if let Some(id) = session.resumes {
            command.args(["--resume", id]);
        }
        super::run(PACKAGE.name, &mut command).await
    }
}

/// What only Gemini CLI tells.
impl Report {
    /// All that the assistant said.
    pub fn said(&self) -> String {
        let messages = self.events.iter().filter(|event| event["type"] == "message" && event["role"] == "assistant");
        messages.filter_map(|event| event["content"].as_str()).collect()
    }
}
