//! `backup` and `restore`: what is remembered, as files, and back.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::JsonArgs;
use crate::backup::{KeySource, Label};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    pub command: Option<BackupCommand>,

    #[command(flatten)]
    pub make: MakeBackupArgs,
}

#[derive(Debug, Args)]
pub struct MakeBackupArgs {
    /// A word in its name, such as `before-the-move`
    #[arg(long, conflicts_with = "scheduled")]
    pub label: Option<Label>,

    /// One of many: it is removed again when the rotation has no place for it
    #[arg(long)]
    pub scheduled: bool,

    /// Make none if a scheduled one was made within the last day
    #[arg(long, requires = "scheduled", hide = true)]
    pub if_due: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Show the backups, newest first, and the databases that restores have kept
    List(JsonArgs),
    /// Check that backups are, byte for byte, what was made
    Verify(VerifyArgs),
    /// Remove the scheduled ones that the rotation has no place for
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// A file, a name as `backup list` shows it, or `latest`; all if none is given
    pub file: Option<String>,

    /// Also restore it into a scratch database, and compare counts and checksums of every table
    #[arg(long)]
    pub deep: bool,

    #[command(flatten)]
    pub key: KeyArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct KeyArgs {
    /// A file with the age identity (`AGE-SECRET-KEY-...`) that opens it
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,

    /// A file whose first line is its passphrase [default: the one that settings.toml names]
    #[arg(long, value_name = "FILE", conflicts_with = "identity")]
    pub passphrase_file: Option<PathBuf>,
}

impl KeyArgs {
    pub fn source(&self) -> KeySource {
        KeySource { identity: self.identity.clone(), passphrase_file: self.passphrase_file.clone() }
    }
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A file, a name as `backup list` shows it, or `latest`
    #[arg(required_unless_present_any = ["undo", "forget"])]
    pub file: Option<String>,

    /// Restore into a new database of that name, and leave the installation as it is
    #[arg(long, value_name = "NAME")]
    pub into: Option<String>,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub kept: KeptArgs,

    #[command(flatten)]
    pub key: KeyArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What becomes of the databases that restores have kept.
#[derive(Debug, Args)]
pub struct KeptArgs {
    /// Go back to the database from before the last restore
    #[arg(long, conflicts_with_all = ["file", "into", "forget"])]
    pub undo: bool,

    /// Drop the databases that are kept from before restores
    #[arg(long, conflicts_with_all = ["file", "into"])]
    pub forget: bool,
}
