//! The real Claude Code, in a home of its own, talking to the scripted model.
//!
//! Found on the PATH, else installed from npm, pinned, into a cache outside the checkout. Where neither works the tests
//! that need it say so in the summary, or fail where clients are required.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::model::Model;
use crate::{settings, summary};

const VERSION: &str = "2.1.332";
const DEADLINE: Duration = Duration::from_mins(2);

static FOUND: OnceCell<Result<Claude, String>> = OnceCell::const_new();

/// An installed Claude Code.
#[derive(Debug)]
pub struct Claude {
    program: PathBuf,
}

/// One `claude -p`.
#[derive(Debug)]
pub struct Session<'a> {
    /// Its whole home; the configuration lies in `.claude`.
    pub home: &'a Path,
    pub project: &'a Path,
    pub model: &'a Model,
    pub prompt: &'a str,
    pub allowed_tools: &'a [&'a str],
}

/// What a session left behind: everything that it told the outside, event by event.
#[derive(Debug)]
pub struct Report {
    pub events: Vec<Value>,
    pub stderr: String,
    pub wall: Duration,
}

/// One run of a hook, as Claude Code saw it.
#[derive(Debug, PartialEq)]
pub struct HookRun {
    pub event: String,
    pub outcome: String,
    pub output: String,
}

impl Claude {
    /// The installed client, or nothing where there is none and none is required; the summary has the reason.
    pub async fn find() -> Result<Option<&'static Self>> {
        let found = FOUND.get_or_init(|| async {
            let found = look().await.map_err(|error| format!("{error:#}"));
            match &found {
                Ok((_, version)) => summary::line(&format!("Claude Code: {version}")),
                Err(why) => summary::line(&format!("Claude Code: NOT TESTED, {why}")),
            }
            found.map(|(claude, _)| claude)
        });
        match found.await {
            Ok(claude) => Ok(Some(claude)),
            Err(why) if settings::clients_are_required() => {
                bail!("Claude Code is required ({}) and could not be had: {why}", settings::REQUIRE_CLIENTS)
            }
            Err(_) => Ok(None),
        }
    }

    /// Runs one session to its end.
    pub async fn run(&self, session: Session<'_>) -> Result<Report> {
        let mut command = Command::new(&self.program);
        command
            .args(["-p", session.prompt, "--output-format", "stream-json", "--verbose", "--include-hook-events"])
            .env_clear()
            .env("PATH", settings::get("PATH").unwrap_or_default())
            .env("HOME", session.home)
            .env("TERM", "xterm")
            .env("CLAUDE_CONFIG_DIR", session.home.join(".claude"))
            .env("ANTHROPIC_BASE_URL", session.model.url())
            .env("ANTHROPIC_API_KEY", "sk-ant-api03-localtest")
            .envs(["DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"].map(|name| (name, "1")))
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .current_dir(session.project)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if !session.allowed_tools.is_empty() {
            command.arg("--allowedTools").args(session.allowed_tools);
        }
        let start = Instant::now();
        let output = tokio::time::timeout(DEADLINE, command.output())
            .await
            .context("Claude Code does not end")?
            .context("starting Claude Code")?;
        let wall = start.elapsed();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "Claude Code ended with {}:\n{stdout}\n{stderr}", output.status);
        let events = stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        Ok(Report { events: events.with_context(|| format!("reading Claude Code's output:\n{stdout}"))?, stderr, wall })
    }
}

impl Report {
    /// Claude Code's own id of the session.
    pub fn session_id(&self) -> &str {
        self.events.iter().find_map(|event| event["session_id"].as_str()).unwrap_or_default()
    }

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

async fn look() -> Result<(Claude, String)> {
    let on_path = Claude { program: PathBuf::from("claude") };
    if let Ok(version) = on_path.version().await {
        return Ok((on_path, format!("{version}, from the PATH")));
    }
    let folder = settings::cache_folder().context("neither XDG_CACHE_HOME nor HOME is set")?;
    let folder = folder.join(format!("clients/claude-code-{VERSION}"));
    let cached = Claude { program: folder.join("node_modules/.bin/claude") };
    if let Ok(version) = cached.version().await {
        return Ok((cached, format!("{version}, from the cache")));
    }
    install(&folder).await?;
    let version = cached.version().await.context("the Claude Code just installed does not start")?;
    Ok((cached, format!("{version}, just installed")))
}

async fn install(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(folder)
        .arg(format!("@anthropic-ai/claude-code@{VERSION}"))
        .stdin(Stdio::null())
        .output()
        .await
        .context("starting npm to install Claude Code (is Node installed?)")?;
    ensure!(output.status.success(), "npm could not install it: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

impl Claude {
    async fn version(&self) -> Result<String> {
        let output = Command::new(&self.program).arg("--version").stdin(Stdio::null()).output().await?;
        ensure!(output.status.success(), "`{} --version` ended with {}", self.program.display(), output.status);
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}
