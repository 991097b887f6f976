//! `move` and `uninstall`: to another runtime, and away.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct MoveArgs {
    /// `docker`, `embedded`, the URL of a Postgres of yours, or `external` for the URL in AGENT_MEMORY_DATABASE_URL
    #[arg(long, value_name = "PLACE", required_unless_present = "forget")]
    pub to: Option<String>,

    // A password on a command line can be read by every user of the machine; the variable cannot.
    #[arg(long, hide = true, env = "AGENT_MEMORY_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// Remove the databases that earlier moves have kept
    #[arg(long, conflicts_with = "to")]
    pub forget: bool,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct UninstallArgs {
    /// Leave what is remembered where a later `up` finds it
    #[arg(long, conflicts_with = "export")]
    pub keep_data: bool,

    /// Write everything that is remembered into this file or folder first, as `export` does
    #[arg(long, value_name = "PATH")]
    pub export: Option<PathBuf>,

    /// Also remove the backups
    #[arg(long, conflicts_with = "keep_data")]
    pub backups: bool,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
