//! What the server is told at start: flags, each with its environment variable, over what the home says.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use memory::home::Home;
use memory::project::{ProjectPolicy, WorktreePolicy};
use memory::settings::{Logs, Settings};

use crate::network::{Network, NetworkError};
use crate::unasked::{Switch, Switches};

/// The server of agent-memory: takes events from hooks, keeps them in Postgres, gives them back over MCP.
#[derive(Debug, Parser)]
#[command(name = "agent-memory-server", version)]
pub struct Arguments {
    /// Address to listen on; without it the home's `address` file, else 127.0.0.1:3377
    #[arg(long, env = "AGENT_MEMORY_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// File with the Postgres URL; without it the home's `database-url`
    #[arg(long, env = "AGENT_MEMORY_DATABASE_URL_FILE")]
    pub database_url_file: Option<PathBuf>,
    /// File with the URL of a pooler in transaction mode; without it the home's `pooled-database-url`, if that is there
    #[arg(long, env = "AGENT_MEMORY_POOLED_DATABASE_URL_FILE")]
    pub pooled_database_url_file: Option<PathBuf>,
    /// The address is reached only through a port that is published on loopback, as a container's is: it may be any
    #[arg(long, env = "AGENT_MEMORY_BEHIND_LOOPBACK")]
    pub behind_loopback: bool,
    /// A second address, for other machines, with TLS; without it what settings.toml says
    #[arg(long, env = "AGENT_MEMORY_BIND")]
    pub bind: Option<SocketAddr>,
    /// File with that address's certificate and its chain, in PEM
    #[arg(long, env = "AGENT_MEMORY_TLS_CERTIFICATE")]
    pub tls_certificate: Option<PathBuf>,
    /// File with the certificate's key, in PEM
    #[arg(long, env = "AGENT_MEMORY_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// A name by which other machines reach that address; may be given several times
    #[arg(long = "host", env = "AGENT_MEMORY_HOSTS", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// File with the Bearer token; without it the home's `token`
    #[arg(long, env = "AGENT_MEMORY_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// File with the token of hooks, which can only hand over events; without it the home's `hook-token`, if there is one
    #[arg(long, env = "AGENT_MEMORY_HOOK_TOKEN_FILE")]
    pub hook_token_file: Option<PathBuf>,
    /// Folder in which hooks leave events while the server is away; without it the home's `spool`
    #[arg(long, env = "AGENT_MEMORY_SPOOL")]
    pub spool: Option<PathBuf>,
    /// Folder with the embedding model and the ONNX runtime; without it the home's `models`
    #[arg(long, env = "AGENT_MEMORY_MODELS")]
    pub models: Option<PathBuf>,
    /// Whether a repository's worktrees are one project with it: `shared` or `separate`
    #[arg(long, env = "AGENT_MEMORY_WORKTREES", default_value_t)]
    pub worktrees: WorktreePolicy,
    /// File with the user's own redaction rules, in gitleaks' format; without it the built-in rules alone count
    #[arg(long, env = "AGENT_MEMORY_REDACT_RULES")]
    pub redact_rules: Option<PathBuf>,
    /// Folder with what a person may set (settings.toml); without it the home's `config`
    #[arg(long, env = "AGENT_MEMORY_CONFIG")]
    pub config: Option<PathBuf>,
    /// Whether a session is told at its start where the last ones stopped; without it what settings.toml says
    #[arg(long, env = "AGENT_MEMORY_BRIEF")]
    pub brief: Option<Switch>,
    /// Whether an agent is told what may help with a prompt; without it what settings.toml says
    #[arg(long, env = "AGENT_MEMORY_PROMPT_HITS")]
    pub prompt_hits: Option<Switch>,
    /// File to log to, which is put aside when it has grown long (`[logs]` in settings.toml), or `-` for stdout; without it stderr
    #[arg(long, env = "AGENT_MEMORY_LOG_FILE")]
    pub log_file: Option<PathBuf>,
    /// Apply the migrations and exit
    #[arg(long)]
    pub migrate: bool,
    /// Ask the running server for its health; exit 0 if it answers
    #[arg(long)]
    pub check_health: bool,
}

/// The same, resolved: every value is there.
#[derive(Clone)]
pub struct Config {
    pub database_url: String,
    /// By a pooler in transaction mode, where there is one.
    pub pooled_database_url: Option<String>,
    pub token: String,
    /// The hooks' own, where the home has one.
    pub hook_token: Option<String>,
    /// Where other machines are let in, if anywhere.
    pub network: Option<Network>,
    pub spool: PathBuf,
    pub models: PathBuf,
    pub projects: ProjectPolicy,
    /// Where `settings.toml` and the list of what must not be recorded lie.
    pub config: PathBuf,
    pub settings: Settings,
    pub switches: Switches,
    /// The installation whose daily backup this server may start; none where there is no home.
    pub home: Option<Home>,
}

impl Arguments {
    /// The address to bind, or to ask.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        let address = match self.listen {
            Some(address) => address,
            None => Home::locate()?.address()?,
        };
        if !address.ip().is_loopback() && !self.behind_loopback {
            return Err(NetworkError::OpenListen(address).into());
        }
        Ok(address)
    }

    /// How to log, which must be known before anything can go wrong: what cannot be read is said by [`Self::resolve`].
    pub fn logs(&self) -> Logs {
        let folder = self.config.clone().or_else(|| Home::locate().ok().map(|home| home.config()));
        folder.and_then(|folder| Settings::read(&folder).ok()).map(|settings| settings.logs).unwrap_or_default()
    }

    /// Reads what the flags name and the home holds.
    pub fn resolve(self) -> anyhow::Result<Config> {
        let home = Home::locate();
        let or_home = |given: Option<PathBuf>, in_home: fn(&Home) -> PathBuf| match (given, &home) {
            (Some(path), _) => Ok(path),
            (None, Ok(home)) => Ok(in_home(home)),
            (None, Err(error)) => Err(anyhow::anyhow!("{error}")),
        };
        let database_url_file = or_home(self.database_url_file, Home::database_url_file)?;
        let token_file = or_home(self.token_file, Home::token_file)?;
        let hook_token = match (&self.hook_token_file, &home) {
            (Some(path), _) => Some(read_secret(path).context("reading the hooks' token")?),
            // An installation from before it has none: hooks have the other one then.
            (None, Ok(home)) => home.hook_token().ok(),
            (None, Err(_)) => None,
        };
        let config = or_home(self.config, Home::config)?;
        // At the start a file that cannot be understood is an error, for the person who started it looks.
        let settings = Settings::read(&config).map_err(|error| {
            let hint = error.hint();
            anyhow::Error::new(error).context(format!("cannot use the settings; {hint}"))
        })?;
        let asked = Asked { bind: self.bind, certificate: self.tls_certificate, key: self.tls_key, hosts: self.hosts };
        let pooled_file = self.pooled_database_url_file.or_else(|| {
            let in_home = home.as_ref().ok()?.pooled_database_url_file();
            in_home.exists().then_some(in_home)
        });
        let pooled_database_url = pooled_file.map(|path| read_secret(&path)).transpose();
        Ok(Config {
            network: asked.over(&settings.server)?,
            hook_token,
            pooled_database_url: pooled_database_url.context("reading the pooled database URL")?,
            database_url: read_secret(&database_url_file).context("reading the database URL")?,
            token: read_secret(&token_file).context("reading the token")?,
            spool: or_home(self.spool, Home::spool)?,
            models: or_home(self.models, Home::models)?,
            projects: ProjectPolicy::of_process(self.worktrees),
            config,
            settings,
            switches: Switches { brief: self.brief, prompt_hits: self.prompt_hits },
            home: home.ok(),
        })
    }
}

/// What the flags say of the door to other machines.
struct Asked {
    bind: Option<SocketAddr>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    hosts: Vec<String>,
}

impl Asked {
    /// With what the settings say where a flag is missing.
    fn over(self, settings: &memory::settings::Server) -> Result<Option<Network>, NetworkError> {
        let address = match self.bind {
            Some(address) => address,
            None if settings.bind.is_empty() => return Ok(None),
            None => settings.bind.parse().map_err(|_| NetworkError::Address(settings.bind.clone()))?,
        };
        let certificate = self.certificate.unwrap_or_else(|| settings.tls_certificate.clone());
        let key = self.key.unwrap_or_else(|| settings.tls_key.clone());
        if certificate.as_os_str().is_empty() || key.as_os_str().is_empty() {
            return Err(NetworkError::NoTls(address));
        }
        let hosts = if self.hosts.is_empty() { settings.hosts.clone() } else { self.hosts };
        Ok(Some(Network { address, certificate, key, hosts }))
    }
}

fn read_secret(path: &std::path::Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let text = text.trim();
    anyhow::ensure!(!text.is_empty(), "`{}` is empty", path.display());
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use memory::settings::Server;

    use super::*;

    fn asked(bind: Option<&str>) -> Asked {
        Asked { bind: bind.map(|bind| bind.parse().unwrap()), certificate: None, key: None, hosts: Vec::new() }
    }

    #[test]
    fn opens_nothing_to_other_machines_without_tls() {
        assert_eq!(asked(None).over(&Server::default()).unwrap(), None);
        let refused = asked(Some("0.0.0.0:8443")).over(&Server::default()).unwrap_err();
        assert!(matches!(refused, NetworkError::NoTls(_)), "{refused}");
        let half = Server { tls_certificate: "c.pem".into(), ..Server::default() };
        assert!(matches!(asked(Some("0.0.0.0:8443")).over(&half), Err(NetworkError::NoTls(_))));
        let wrong = Server { bind: "everywhere".to_owned(), ..Server::default() };
        assert!(matches!(asked(None).over(&wrong), Err(NetworkError::Address(_))));
    }

    #[test]
    fn a_flag_counts_before_the_settings() {
        let settings = Server {
            bind: "10.0.0.1:8443".to_owned(),
            tls_certificate: "c.pem".into(),
            tls_key: "k.pem".into(),
            hosts: vec!["memory.example".to_owned()],
        };
        let network = asked(None).over(&settings).unwrap().unwrap();
        assert_eq!(network.names(), ["memory.example", "10.0.0.1"]);
        let network = asked(Some("0.0.0.0:9000")).over(&settings).unwrap().unwrap();
        assert_eq!(network.address.port(), 9000);
        assert_eq!(network.names(), ["memory.example"]);
    }

    #[test]
    fn listens_without_encryption_on_loopback_only() {
        for (arguments, fits) in [
            (["--listen=127.0.0.1:1", "--migrate"], true),
            (["--listen=[::1]:1", "--migrate"], true),
            (["--listen=0.0.0.0:1", "--migrate"], false),
            (["--listen=192.0.2.1:1", "--migrate"], false),
            (["--listen=0.0.0.0:1", "--behind-loopback"], true),
        ] {
            let arguments = Arguments::parse_from(["server"].into_iter().chain(arguments));
            assert_eq!(arguments.address().is_ok(), fits, "{:?}", arguments.listen);
        }
    }
}
