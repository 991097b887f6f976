//! A client of the Model Context Protocol that shows the bare messages: over the stdio of the real program, and over the
//! server's `/mcp`.
//!
//! Written out by hand because the tests are about what stands on the wire, and about the moments before a handshake.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use reqwest::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::stack::Stack;
use crate::{programs, wait};

const PROTOCOL: &str = "2025-06-18";

/// Something that answers requests: a JSON-RPC response, whole, with `result` or `error`.
pub trait Peer {
    fn request(&mut self, method: &str, params: Value) -> impl Future<Output = Result<Value>> + Send;

    /// Calls a tool and returns the whole response.
    fn call(&mut self, tool: &str, arguments: Value) -> impl Future<Output = Result<Value>> + Send {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }
}

/// The real `agent-memory-mcp`, as an agent starts it.
#[derive(Debug)]
pub struct OverStdio {
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

/// A session at the server's `/mcp`.
pub struct OverHttp<'a> {
    stack: &'a Stack,
    session: Option<String>,
    last_id: u64,
}

impl OverStdio {
    /// Starts the program for the installation in `home`; no handshake yet.
    pub async fn start(home: &Path) -> Result<Self> {
        let mut process = Command::new(programs::mcp().await?)
            .env_clear()
            .env("AGENT_MEMORY_HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting the MCP program")?;
        let stdin = process.stdin.take().context("the MCP program has no stdin")?;
        let stdout = process.stdout.take().context("the MCP program has no stdout")?;
        Ok(Self { process, stdin, lines: BufReader::new(stdout).lines(), last_id: 0 })
    }

    /// Shakes hands, and returns what the server says of itself.
    pub async fn initialize(&mut self) -> Result<Value> {
        let answer = self.request("initialize", opening()).await?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(answer["result"].clone())
    }

    /// Closes its stdin and waits for its end.
    pub async fn close(self) -> Result<ExitStatus> {
        let Self { mut process, stdin, .. } = self;
        drop(stdin);
        let ended = tokio::time::timeout(wait::PATIENCE, process.wait()).await;
        ended.context("the MCP program does not end when its stdin does")?.context("waiting for the MCP program")
    }

    async fn send(&mut self, message: &Value) -> Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.context("writing to the MCP program")?;
        self.stdin.flush().await.context("writing to the MCP program")
    }

    async fn response_to(&mut self, id: u64) -> Result<Value> {
        loop {
            let line = self.lines.next_line().await.context("reading from the MCP program")?;
            let line = line.context("the MCP program closed its stdout")?;
            let message: Value = serde_json::from_str(&line)
                .with_context(|| format!("the MCP program wrote something that is no message: {line}"))?;
            if message["id"] == json!(id) {
                return Ok(message);
            }
        }
    }
}

impl Peer for OverStdio {
    async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        let response = tokio::time::timeout(wait::PATIENCE, self.response_to(id)).await;
        response.with_context(|| format!("the MCP program does not answer {method}"))?
    }
}

impl<'a> OverHttp<'a> {
    /// Shakes hands with the server of that installation.
    pub async fn connect(stack: &'a Stack) -> Result<Self> {
        let mut client = Self { stack, session: None, last_id: 0 };
        client.request("initialize", opening()).await?;
        let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = client.post(&message).await?.status();
        ensure!(accepted.is_success(), "the end of the handshake was answered with {accepted}");
        Ok(client)
    }

    async fn post(&self, message: &Value) -> Result<Response> {
        let mut request = self.stack.post("/mcp").header("accept", "application/json, text/event-stream").json(message);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", PROTOCOL);
        }
        request.send().await.context("posting to /mcp")
    }
}

impl Peer for OverHttp<'_> {
    async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = self.post(&message).await?;
        let status = response.status();
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = Some(session.to_str().context("reading the session's id")?.to_owned());
        }
        let body = response.text().await.context("reading an answer of /mcp")?;
        ensure!(status.is_success(), "/mcp answered {method} with {status}: {body}");
        messages(&body)
            .find(|message| message["id"] == json!(id))
            .with_context(|| format!("no response to {method} in: {body}"))
    }
}

/// The messages in a body that is either one JSON document or a stream of server-sent events.
fn messages(body: &str) -> impl Iterator<Item = Value> {
    let whole = serde_json::from_str(body).ok();
    let streamed = body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
    whole.into_iter().chain(streamed)
}

fn opening() -> Value {
    json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "tests", "version": "0"}})
}
