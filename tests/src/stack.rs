//! An installation in a temporary home, and the real server in it: started, stopped, killed and started again.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result, bail};
use memory::home::Home;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::conversation::Event;
use crate::database::Database;
use crate::journal::Journal;
use crate::{hook, programs, wait};

/// A home, its database, and its server while that runs.
pub struct Stack {
    database: Database,
    home: Home,
    address: SocketAddr,
    token: String,
    client: reqwest::Client,
    server: Option<Child>,
    environment: Vec<(&'static str, String)>,
    /// Last: the folder goes after the server that writes into it.
    folder: TempDir,
}

impl Stack {
    /// A whole installation with a fresh database and a server that is ready.
    pub async fn running() -> Result<Self> {
        let mut stack = Self::stopped().await?;
        stack.start_server().await?;
        Ok(stack)
    }

    /// The same without a server.
    pub async fn stopped() -> Result<Self> {
        Self::on(Database::fresh().await?)
    }

    /// An installation on that database, without a server.
    pub fn on(database: Database) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("agent-memory-home-").tempdir().context("making a home")?;
        let home = Home::at(folder.path().join("home"));
        let address = free_address()?;
        let token = Uuid::new_v4().simple().to_string();
        make_private_folder(home.root())?;
        make_private_folder(&home.spool())?;
        make_private_folder(&home.logs())?;
        write_secret(&home.token_file(), &token)?;
        write_secret(&home.hook_token_file(), &Uuid::new_v4().simple().to_string())?;
        write_secret(&home.address_file(), &address.to_string())?;
        write_secret(&home.database_url_file(), database.url())?;
        let client = reqwest::Client::builder().no_proxy().timeout(wait::PATIENCE).build()?;
        Ok(Self { database, home, address, token, client, server: None, environment: Vec::new(), folder })
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Has servers that are started from now on go by this pooler.
    pub fn go_by_pooler(&self, url: &str) -> Result<()> {
        write_secret(&self.home.pooled_database_url_file(), url)
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    pub fn journal(&self) -> Journal<'_> {
        Journal::of(self.database.pool())
    }

    /// A folder beside the home that the test may use as it likes.
    pub fn scratch(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a program into the home's `bin`, from where it finds the home by itself.
    pub fn install(&self, program: &Path) -> Result<PathBuf> {
        make_private_folder(&self.home.bin())?;
        let destination = self.home.bin().join(program.file_name().context("a program without a name")?);
        programs::place(program, &destination)?;
        Ok(destination)
    }

    /// Sets a variable for servers that are started from now on.
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.environment.push((name, value.to_owned()));
    }

    /// Starts the server on this installation's port and waits until it takes events.
    pub async fn start_server(&mut self) -> Result<()> {
        self.start_server_until("up").await
    }

    /// The same where its database cannot be reached: waits until the server says so.
    pub async fn start_server_without_database(&mut self) -> Result<()> {
        self.start_server_until("down").await
    }

    async fn start_server_until(&mut self, database: &str) -> Result<()> {
        let mut server = self.spawn_server().await?;
        let ready = wait::until("the server's start", async || {
            if let Some(status) = server.try_wait().context("looking after the server")? {
                bail!("the server ended with {status}");
            }
            let health = self.health().await.unwrap_or_default();
            Ok((health["database"]["state"] == database).then_some(()))
        });
        ready.await.with_context(|| format!("its output was:\n{}", self.server_output()))?;
        self.server = Some(server);
        Ok(())
    }

    /// Starts the server and returns at once; whether it comes up is the caller's business.
    pub async fn spawn_server(&self) -> Result<Child> {
        let output = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.server_output_file())
            .context("opening the file for the server's output")?;
        Command::new(programs::server().await?)
            .env_clear()
            .env("AGENT_MEMORY_HOME", self.home.root())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("sharing the file for the server's output")?)
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .context("starting the server")
    }

    /// Asks the server to end, as a service manager does, and waits until it has.
    pub async fn stop_server(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let pid = server.id().context("the server has ended by itself")?;
        let asked = Command::new("kill").arg("-TERM").arg(pid.to_string()).status().await;
        asked.context("asking the server to end")?;
        let status = tokio::time::timeout(wait::PATIENCE, server.wait()).await.context("the server does not end")??;
        if !status.success() {
            bail!("the server ended with {status}; its output was:\n{}", self.server_output());
        }
        Ok(())
    }

    /// Ends the server in the middle of whatever it does.
    pub async fn kill_server(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        server.kill().await.context("killing the server")
    }

    /// All that the server wrote to stdout, stderr and its log since the installation was made.
    pub fn server_output(&self) -> String {
        let read = |path: PathBuf| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let output = read(self.server_output_file()).unwrap_or_default();
        let log = read(self.home.logs().join("server.log")).unwrap_or_default();
        output + &log
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request with the installation's token.
    pub fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(self.url(path)).bearer_auth(&self.token)
    }

    /// A request as nobody in particular.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    pub async fn health(&self) -> Result<Value> {
        let answer = self.client.get(self.url("/api/health")).send().await.context("asking for the server's health")?;
        answer.json().await.context("reading the server's health")
    }

    /// What the server counted since its start, and what the journal holds.
    pub async fn stats(&self) -> Result<Value> {
        let request = self.client.get(self.url("/api/admin/stats")).bearer_auth(&self.token);
        request.send().await.context("asking for the server's counts")?.json().await.context("reading the counts")
    }

    /// What the server tells Prometheus.
    pub async fn metrics(&self) -> Result<String> {
        let request = self.client.get(self.url("/metrics")).bearer_auth(&self.token);
        let answer = request.send().await.context("asking for the metrics")?.error_for_status()?;
        answer.text().await.context("reading the metrics")
    }

    /// Posts an event the way an agent with HTTP hooks does.
    pub async fn post_bare(&self, event: &Event) -> Result<Response> {
        let request = self.post("/api/hooks/claude-code").header("content-type", "application/json");
        request.body(event.json()).send().await.context("posting an event")
    }

    /// Hands an event of Claude Code to the real hook program.
    pub async fn hook(&self, event: &Event) -> Result<hook::Outcome> {
        self.hook_of(hook::CLAUDE_CODE, event).await
    }

    /// The same for an event of that agent.
    pub async fn hook_of(&self, agent: &str, event: &Event) -> Result<hook::Outcome> {
        hook::send(self.home.root(), agent, event).await
    }

    /// The files that wait in the spool, in the order of their names.
    pub fn spooled(&self) -> Result<Vec<PathBuf>> {
        json_files(&self.home.spool())
    }

    /// The names of the events that wait in the spool, in the order in which the server will take them.
    pub fn spooled_events(&self) -> Result<Vec<String>> {
        let name = |path: PathBuf| -> Result<String> {
            let envelope: Value = serde_json::from_slice(&std::fs::read(path)?)?;
            Ok(envelope["event"].as_str().unwrap_or_default().to_owned())
        };
        self.spooled()?.into_iter().map(name).collect()
    }

    pub fn rejected(&self) -> Result<Vec<PathBuf>> {
        let folder = self.home.spool().join("rejected");
        if folder.is_dir() { json_files(&folder) } else { Ok(Vec::new()) }
    }

    /// Waits until the server has emptied the spool.
    pub async fn drained(&self) -> Result<()> {
        let drained = wait::until("emptying the spool", async || Ok(self.spooled()?.is_empty().then_some(()))).await;
        drained.with_context(|| format!("the server's output was:\n{}", self.server_output()))
    }

    fn server_output_file(&self) -> PathBuf {
        self.folder.path().join("server-output")
    }
}

/// A port that nothing listens on. Below the range that systems hand out by themselves, so that no connection of another
/// test takes it while the server is away.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let ip = Ipv4Addr::LOCALHOST.into();
    Ok(SocketAddr::new(ip, free_port_of(ip)?))
}

/// The same for another address of this machine's.
pub(crate) fn free_port_of(ip: IpAddr) -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 18_000;
    const COUNT: u16 = 12_000;
    let start = u16::try_from(std::process::id() * 61 % u32::from(COUNT)).context("choosing a port")?;
    for _ in 0..COUNT {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        if TcpListener::bind((ip, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between {FIRST} and {}", FIRST + COUNT)
}

/// What is still being written is hidden.
fn json_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn make_private_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("making `{}`", path.display()))?;
    restrict(path, 0o700)
}

fn write_secret(path: &Path, line: &str) -> Result<()> {
    std::fs::write(path, format!("{line}\n")).with_context(|| format!("writing `{}`", path.display()))?;
    restrict(path, 0o600)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).context("restricting a file of the home")
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> Result<()> {
    Ok(())
}
