//! The real agents, each in a home of its own, talking to the scripted model.
//!
//! They come from npm, pinned, into a cache outside the checkout. Where that does not work the tests that need one say so
//! in the summary, or fail where clients are required.

pub mod claude;
pub mod codex;
pub mod conformance;
pub mod gemini;
pub(crate) mod npm;
mod user;

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

pub use self::npm::Client;
pub use self::user::User;
use crate::model::Model;

const DEADLINE: Duration = Duration::from_mins(2);

/// One prompt, from the start of the client to its end.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    pub user: &'a User,
    pub model: &'a Model,
    pub prompt: &'a str,
    /// The id of the session that this goes on with.
    pub resumes: Option<&'a str>,
}

/// What a session left behind.
#[derive(Debug)]
pub struct Report {
    /// Everything that the client told the outside, event by event, in its own words.
    pub events: Vec<Value>,
    pub stderr: String,
    pub wall: Duration,
}

impl Report {
    /// The client's own id of the session.
    pub fn session_id(&self) -> &str {
        let ids = ["session_id", "thread_id"];
        self.events.iter().find_map(|event| ids.iter().find_map(|id| event[*id].as_str())).unwrap_or_default()
    }
}

/// Runs a client that writes one JSON object a line, to its end.
async fn run(name: &str, command: &mut Command) -> Result<Report> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(DEADLINE, output)
        .await
        .with_context(|| format!("{name} does not end"))?
        .with_context(|| format!("starting {name}"))?;
    let wall = start.elapsed();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{name} ended with {}:\n{stdout}\n{stderr}", output.status);
    let events = stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    Ok(Report { events: events.with_context(|| format!("reading {name}'s output:\n{stdout}"))?, stderr, wall })
}
