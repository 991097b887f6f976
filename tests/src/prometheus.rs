//! The real Prometheus, as Debian has it, asking a server of ours; and `promtool`, which comes with it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use crate::stack::{Stack, free_address};
use crate::{settings, summary, wait};

/// A Prometheus that asks one server each second.
pub struct Prometheus {
    address: SocketAddr,
    client: reqwest::Client,
    _process: Child,
}

/// Whether Prometheus is installed; where it is required and is not, an error.
pub async fn is_installed() -> Result<bool> {
    let mut versions = Vec::new();
    for program in ["prometheus", "promtool"] {
        let output = Command::new(program).arg("--version").output().await;
        versions.push(output.map(|output| String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)));
    }
    match versions.into_iter().collect::<std::io::Result<Vec<_>>>() {
        Ok(versions) => {
            summary::line(&format!("Prometheus: {}", versions[0].as_deref().unwrap_or("of an unknown version")));
            Ok(true)
        }
        Err(error) if settings::clients_are_required() => {
            bail!("Prometheus is required ({}) and cannot be started: {error}", settings::REQUIRE_CLIENTS)
        }
        Err(_) => {
            summary::line("Prometheus: NOT TESTED, it is not installed (Debian: `apt-get install prometheus`)");
            Ok(false)
        }
    }
}

/// Runs `promtool` with these arguments and that on its stdin. It must find nothing to complain about.
pub async fn promtool(arguments: &[&str], stdin: &str) -> Result<()> {
    let mut process = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("starting promtool")?;
    let mut input = process.stdin.take().context("promtool has no stdin")?;
    // One that was given a file does not read.
    drop(input.write_all(stdin.as_bytes()).await);
    drop(input);
    let output = tokio::time::timeout(wait::PATIENCE, process.wait_with_output()).await.context("promtool")??;
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "promtool {arguments:?}:\n{told}");
    Ok(())
}

impl Prometheus {
    /// Starts one with the configuration of the containers, but for where the server and its token are, and how often it asks.
    pub async fn of(stack: &Stack) -> Result<Self> {
        let compose = settings::checkout().join("compose/prometheus");
        let token = stack.home().hook_token_file();
        let given = std::fs::read_to_string(compose.join("prometheus.yml")).context("reading its configuration")?;
        let mut configuration = given.replace(": 15s", ": 1s");
        for (ours, theirs) in [
            ("127.0.0.1:3377", stack.address().to_string()),
            ("/run/secrets/hook-token", token.display().to_string()),
            ("alerts.yml", compose.join("alerts.yml").display().to_string()),
        ] {
            ensure!(configuration.contains(ours), "prometheus.yml does not name `{ours}`");
            configuration = configuration.replace(ours, &theirs);
        }
        let file = stack.scratch().join("prometheus.yml");
        std::fs::write(&file, configuration).context("writing its configuration")?;
        promtool(&["check", "config", &file.display().to_string()], "").await?;
        Self::start(&file, &stack.scratch().join("prometheus")).await
    }

    async fn start(configuration: &Path, data: &Path) -> Result<Self> {
        let address = free_address()?;
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting Prometheus")?;
        let client = reqwest::Client::builder().no_proxy().timeout(wait::PATIENCE).build()?;
        let prometheus = Self { address, client, _process: process };
        wait::until("Prometheus' start", async || Ok(prometheus.ask("1").await.ok())).await?;
        Ok(prometheus)
    }

    /// What an expression comes to now: its series, each with its labels and its value.
    pub async fn ask(&self, expression: &str) -> Result<Vec<Value>> {
        let url = format!("http://{}/api/v1/query", self.address);
        let url = reqwest::Url::parse_with_params(&url, [("query", expression)])?;
        let answer: Value = self.client.get(url).send().await.context("asking Prometheus")?.json().await?;
        ensure!(answer["status"] == "success", "`{expression}`: {answer}");
        // A number by itself is no list of series.
        Ok(match &answer["data"]["result"] {
            Value::Array(series) if answer["data"]["resultType"] == "vector" => series.clone(),
            other => vec![other.clone()],
        })
    }

    /// The one number that an expression comes to.
    pub async fn number(&self, expression: &str) -> Result<Option<f64>> {
        let series = self.ask(expression).await?;
        Ok(series.first().and_then(|series| series["value"][1].as_str()?.parse().ok()))
    }

    /// Waits until it has asked the server so many times more.
    pub async fn asked_again(&self, times: u32) -> Result<()> {
        let so_many = "count_over_time(up[1h])";
        let before = self.number(so_many).await?.unwrap_or_default();
        wait::until("Prometheus' next question", async || {
            let now = self.number(so_many).await?.unwrap_or_default();
            Ok((now >= before + f64::from(times)).then_some(()))
        })
        .await
    }
}
