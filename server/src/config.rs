//! What the server is told at start: flags, each with its environment variable, over what the home says.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use memory::home::Home;
use memory::project::{ProjectPolicy, WorktreePolicy};
use memory::settings::{Logs, Settings};

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
    /// File with the Bearer token; without it the home's `token`
    #[arg(long, env = "AGENT_MEMORY_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
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
    pub token: String,
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
        match self.listen {
            Some(address) => Ok(address),
            None => Ok(Home::locate()?.address()?),
        }
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
        let config = or_home(self.config, Home::config)?;
        // At the start a file that cannot be understood is an error, for the person who started it looks.
        let settings = Settings::read(&config).map_err(|error| {
            let hint = error.hint();
            anyhow::Error::new(error).context(format!("cannot use the settings; {hint}"))
        })?;
        Ok(Config {
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

fn read_secret(path: &std::path::Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let text = text.trim();
    anyhow::ensure!(!text.is_empty(), "`{}` is empty", path.display());
    Ok(text.to_owned())
}
