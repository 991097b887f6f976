//! The flags of `backfill`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use memory::project::WorktreePolicy;

#[derive(Debug, Args)]
pub struct BackfillArgs {
    /// Whose transcripts; of all that left some if not given
    #[arg(value_enum)]
    pub agents: Vec<BackfillAgent>,

    /// Nothing from before this day (2026-11-29) or moment
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,

    /// Only this project, by its name, its remote or a folder around it
    #[arg(long, value_name = "NAME_OR_PATH")]
    pub project: Option<String>,

    /// Read and report, and store nothing
    #[arg(long)]
    pub dry_run: bool,

    /// These files instead of the agents' folders
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub file: Vec<PathBuf>,

    /// Another memory's notes: `--from claude-mem FILE` reads its SQLite database
    #[arg(long, num_args = 2, value_names = ["SYSTEM", "FILE"], conflicts_with_all = ["agents", "file"])]
    pub from: Vec<String>,

    /// Show the runs
    #[arg(long, conflicts_with_all = ["agents", "since", "project", "dry_run", "file", "from", "rollback"])]
    pub list: bool,

    /// Take a run back: deletes what it inserted and no hook has told of since
    #[arg(long, value_name = "RUN", conflicts_with_all = ["agents", "since", "project", "dry_run", "file", "from"])]
    pub rollback: Option<i64>,

    /// Whether a repository's worktrees are one project with it: `shared` or `separate`, as the server has it
    #[arg(long, env = "AGENT_MEMORY_WORKTREES", default_value_t)]
    pub worktrees: WorktreePolicy,

    /// File with the user's own redaction rules, as the server has it
    #[arg(long, value_name = "FILE", env = "AGENT_MEMORY_REDACT_RULES")]
    pub redact_rules: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackfillAgent {
    Claude,
    Codex,
    Gemini,
}

impl BackfillAgent {
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];
}
