//! The MCP program over stdio: what it holds when it has just been started, and after many searches.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use memory::home::Home;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Bytes before and after one search for each text; `None` where the system does not tell.
pub(super) async fn measure(home: &Home, texts: &[String]) -> Result<(Option<u64>, Option<u64>)> {
    let mut program = Program::start(home)?;
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "bench", "version": "1" },
    });
    program.request("initialize", &hello).await?;
    program.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
    let idle = program.resident_bytes();
    for text in texts {
        let answer = program
            .request("tools/call", &json!({ "name": "search", "arguments": { "query": text, "limit": 10 } }))
            .await?;
        ensure!(answer["result"]["isError"] != json!(true), "the search failed: {answer}");
    }
    Ok((idle, program.resident_bytes()))
}

struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    requests: u64,
}

impl Program {
    fn start(home: &Home) -> Result<Self> {
        let path = home.program("agent-memory-mcp");
        let mut child = Command::new(&path)
            .env("AGENT_MEMORY_HOME", home.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start `{}`", path.display()))?;
        let stdin = child.stdin.take().context("the program has no stdin")?;
        let stdout = child.stdout.take().context("the program has no stdout")?;
        Ok(Self { child, stdin, stdout: BufReader::new(stdout).lines(), requests: 0 })
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.requests += 1;
        let id = self.requests;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        loop {
            let line = self.stdout.next_line().await.context("cannot read from the MCP program")?;
            let line = line.context("the MCP program ended")?;
            let answer: Value = serde_json::from_str(&line).context("the MCP program wrote no JSON")?;
            if answer["id"] == json!(id) {
                return Ok(answer);
            }
        }
    }

    async fn write(&mut self, message: &Value) -> Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.context("cannot write to the MCP program")
    }

    fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }
}
