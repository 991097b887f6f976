//! The server as a background process of the embedded and the external runtime: started detached, watched until it is
//! healthy, stopped with a deadline.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use memory::home::Home;
use tokio::process::{Child, Command};

use super::process::Process;
use super::{ServiceState, ServiceStatus};
use crate::files;
use crate::health::{self, Health};
use crate::output::{HintExt, hinted};

/// The first start migrates the database, on a slow disk too.
const START_DEADLINE: Duration = Duration::from_mins(1);

/// The server ends its requests and its job first.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

const POLL: Duration = Duration::from_millis(50);

/// What of the caller's environment the server may see. An agent's hook may be the caller, with the agent's keys.
const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SystemRoot",
    "RUST_LOG",
    "RUST_BACKTRACE",
];

/// A server that is healthy.
#[derive(Debug)]
pub enum Started {
    Now(Health),
    /// It ran already.
    Before(Health),
}

/// The server program of an installation.
#[derive(Debug, Clone)]
pub struct Server {
    home: Home,
    program: PathBuf,
}

/// glibc keeps what the model once needed for a batch of texts, several times over; so it gives large blocks back as soon as they are
/// free. With 300 long documents embedded the server held 1.1 GB without, and less than 300 MB with these.
const FRUGAL_ALLOCATOR: [(&str, &str); 2] = [("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "131072")];

impl Server {
    pub fn of_home(home: &Home) -> Self {
        Self { home: home.clone(), program: home.program("agent-memory-server") }
    }

    /// All processes that run from the installed program: at most one, if nobody interferes.
    pub fn processes(&self) -> Vec<Process> {
        Process::all_of(&self.program)
    }

    /// Fails if someone else listens where the server shall; call it before anything is started.
    pub fn check_address(&self, address: SocketAddr) -> Result<()> {
        if TcpListener::bind(address).is_ok() || !self.processes().is_empty() {
            return Ok(());
        }
        let other = address.port().wrapping_add(10);
        Err(hinted(
            anyhow!("another program listens on {address}"),
            format!("stop it, or choose another port: `cargo xtask up --port {other}`"),
        ))
    }

    /// Starts the server unless it runs, and waits until it is healthy.
    pub async fn start(&self, address: SocketAddr) -> Result<Started> {
        if !self.processes().is_empty() {
            if let Ok(health) = health::fetch(address).await
                && health.database_is_up()
            {
                return Ok(Started::Before(health));
            }
            // It runs and does not do its work, perhaps at a former address: a new one will.
            self.stop().await?;
        }
        self.check_address(address)?;
        let mut child = self.spawn(address)?;
        let health = wait_until_healthy(&mut child, address).await;
        if health.is_err() {
            self.stop().await?;
        }
        health
            .map(Started::Now)
            .with_context(|| format!("the server did not start; the end of its log:\n{}", self.log_tail()))
            .hint(format!("the whole log is `{}`", self.log().display()))
    }

    pub async fn stop(&self) -> Result<()> {
        for process in self.processes() {
            process.stop(STOP_PATIENCE).await.context("cannot stop the server")?;
        }
        files::remove(&self.pid_file()).map(drop)
    }

    pub async fn state(&self, address: SocketAddr) -> ServiceState {
        let name = "server";
        let Some(process) = self.processes().into_iter().next() else {
            return ServiceState { name, status: ServiceStatus::Stopped, detail: String::new() };
        };
        let (status, trouble) = match health::fetch(address).await {
            Ok(health) if health.database_is_up() => (ServiceStatus::Running, String::new()),
            Ok(health) => (ServiceStatus::Unhealthy, health.database.message.unwrap_or_default()),
            Err(error) => (ServiceStatus::Unhealthy, format!("{error:#}")),
        };
        let trouble = if trouble.is_empty() { trouble } else { format!(": {trouble}") };
        ServiceState { name, status, detail: format!("process {}, http://{address}{trouble}", process.id) }
    }

    pub fn log(&self) -> PathBuf {
        self.home.logs().join("server.log")
    }

    fn log_tail(&self) -> String {
        files::tail(&self.log(), 8)
    }

    fn pid_file(&self) -> PathBuf {
        self.home.run().join("server.pid")
    }

    fn spawn(&self, address: SocketAddr) -> Result<Child> {
        // The server puts it aside itself. What is said before it can log, or without being able to, lands here too.
        let log = files::open_for_appending(&self.log())?;
        let mut command = Command::new(&self.program);
        command
            .arg("--listen")
            .arg(address.to_string())
            .arg("--database-url-file")
            .arg(self.home.database_url_file())
            .arg("--token-file")
            .arg(self.home.token_file())
            .arg("--spool")
            .arg(self.home.spool())
            .arg("--models")
            .arg(self.home.models())
            .arg("--config")
            .arg(memory::settings::folder(&self.home))
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited)))
            .env("AGENT_MEMORY_HOME", self.home.root())
            .env("AGENT_MEMORY_DISABLE", "1")
            // Not by a flag: an older server, to which `up` may have to go back, would not understand it.
            .env("AGENT_MEMORY_LOG_FILE", self.log())
            .envs(FRUGAL_ALLOCATOR)
            .current_dir(self.home.root())
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the server's log")?)
            .stderr(log);
        // A group of its own: what ends the caller's terminal or job does not end the server.
        #[cfg(unix)]
        command.process_group(0);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start `{}`", self.program.display()))
            .hint("run `cargo xtask up` to install it")?;
        if let Some(id) = child.id() {
            files::write_private(&self.pid_file(), &format!("{id}\n"))?;
        }
        Ok(child)
    }
}

fn is_inherited(name: &str) -> bool {
    // Our own settings reach the server, but no secret: it reads those from files.
    let own = name.starts_with("AGENT_MEMORY_") && name != "AGENT_MEMORY_DATABASE_URL";
    own || INHERITED.contains(&name)
}

async fn wait_until_healthy(child: &mut Child, address: SocketAddr) -> Result<Health> {
    let deadline = Instant::now() + START_DEADLINE;
    loop {
        if let Some(status) = child.try_wait().context("cannot look after the server")? {
            bail!("the server ended at once ({status})");
        }
        let trouble = match health::fetch(address).await {
            Ok(health) if health.database_is_up() => return Ok(health),
            Ok(health) => health.database.message.unwrap_or_else(|| "its database is down".to_owned()),
            Err(error) => format!("{error:#}"),
        };
        if Instant::now() > deadline {
            bail!("the server is not healthy after {} s: {trouble}", START_DEADLINE.as_secs());
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_who_is_in_the_way_before_anything_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let error = Server::of_home(&Home::at(folder.path())).check_address(address).unwrap_err();
        let told = crate::output::report(&error);
        assert!(told.contains(&address.to_string()) && told.contains("--port"), "{told}");
    }

    #[test]
    fn the_server_sees_no_key_of_the_agent_that_started_it() {
        assert!(is_inherited("PATH") && is_inherited("AGENT_MEMORY_LOG"));
        assert!(!is_inherited("ANTHROPIC_API_KEY") && !is_inherited("AGENT_MEMORY_DATABASE_URL"));
    }
}
