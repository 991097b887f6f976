//! Every command and every flag, in one file. What they do stands in `commands`, one file a command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::output::Verbosity;

#[derive(Debug, Parser)]
#[command(name = "agent-memory", bin_name = "cargo xtask", version, about, disable_help_subcommand = true)]
#[command(after_help = "The installation lies in AGENT_MEMORY_HOME, else in the user's data folder.")]
pub struct Cli {
    /// Say nothing but warnings and failures
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Also say what each step is made of
    #[arg(short, long, global = true)]
    verbose: bool,

    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Default,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build, install and start everything, and register it with the agents; safe to repeat
    Up(UpArgs),
    /// Start what is installed: no build, no download
    #[command(hide = true)]
    Start,
    /// Stop everything; the data stays unless --purge is given
    Down(DownArgs),
    /// Show what runs and what is remembered
    Status(JsonArgs),
    /// Check every part and name the command that mends what is broken
    Doctor(JsonArgs),
    /// Show the logs of the services
    Logs(LogsArgs),
    /// Bring the database's schema up to date
    Migrate,
    /// Register hooks and MCP server with an agent
    Register(AgentArgs),
    /// Undo exactly what `register` did
    Unregister(AgentArgs),
    /// Build the container images
    Images,
    /// Which repository is which project, and what is not recorded
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Run all tests, with a database for them
    Test(TestArgs),
    /// Run what continuous integration runs: format, lints, docs, licences, queries, tests
    Ci,
    /// Refresh the checked queries in .sqlx
    Prepare(PrepareArgs),
    /// Measure
    #[command(subcommand)]
    Bench(BenchCommand),
    /// From the journal to a model
    #[command(subcommand)]
    Train(TrainCommand),
}

#[derive(Debug, Args)]
pub struct UpArgs {
    /// Where database and server run
    #[arg(long, value_enum, default_value_t, conflicts_with = "database_url")]
    pub runtime: RuntimeChoice,

    /// Use this Postgres (15 or newer, with pgvector) instead of one of our own
    // A password on a command line can be read by every user of the machine; the variable cannot.
    #[arg(long, value_name = "URL", env = "AGENT_MEMORY_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// The server's port on 127.0.0.1; kept for the next time [default: 3377]
    #[arg(long)]
    pub port: Option<u16>,

    /// Do not register anything with the agents
    #[arg(long)]
    pub no_register: bool,

    /// Use the embedding model in this folder (model.onnx and its tokenizer files)
    #[arg(long, value_name = "DIR")]
    pub embedding_model_dir: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RuntimeChoice {
    /// Docker when an engine answers, else embedded; what is installed already stays
    #[default]
    Auto,
    /// Containers
    Docker,
    /// A private Postgres and the server as background processes
    Embedded,
}

#[derive(Debug, Args)]
pub struct DownArgs {
    /// Also delete the data, after asking
    #[arg(long)]
    pub purge: bool,

    /// Do not ask
    #[arg(long, requires = "purge")]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Keep on printing what comes
    #[arg(short, long)]
    pub follow: bool,

    /// How many of the last lines
    #[arg(short = 'n', long, default_value_t = 100)]
    pub lines: usize,

    /// `server` or `postgres`; both if not given
    pub service: Option<Service>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Service {
    Server,
    Postgres,
}

#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Which agent
    #[arg(value_enum, default_value_t)]
    pub agent: Agent,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    #[default]
    Claude,
}

#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// Show the projects, the merges that can be undone, and what is not recorded
    List(JsonArgs),
    /// Make one project of two
    Merge(MergeArgs),
    /// Undo a merge
    Unmerge(UndoArgs),
    /// Give what came from one folder or remote a project of its own
    Split(SplitArgs),
    /// Let what comes from a folder or remote belong to a project
    Alias(AliasArgs),
    /// Record nothing from a folder or `remote:host/path`
    Exclude(ExcludeArgs),
    /// Record again what `exclude` had excluded
    Include(ExcludeArgs),
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The project that goes: its name, remote or folder
    #[arg(required_unless_present = "undo")]
    pub from: Option<String>,

    /// The project that takes it in
    #[arg(required_unless_present = "undo")]
    pub into: Option<String>,

    /// Undo the merge of that number instead
    #[arg(long, value_name = "MERGE", conflicts_with_all = ["from", "into"])]
    pub undo: Option<i64>,
}

#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The merge's number, as `project list` shows it
    pub merge: i64,
}

#[derive(Debug, Args)]
pub struct SplitArgs {
    /// The project's name, remote or folder
    pub project: String,

    /// The top folder of a checkout or worktree
    #[arg(long, value_name = "PATH", required_unless_present = "remote", conflicts_with = "remote")]
    pub folder: Option<PathBuf>,

    /// A remote by which the project is known too
    #[arg(long, value_name = "URL")]
    pub remote: Option<String>,
}

#[derive(Debug, Args)]
pub struct AliasArgs {
    /// The project's name, remote or folder
    pub project: String,

    /// A folder, a remote, or a key as `project list` shows it
    pub key_or_path: String,
}

#[derive(Debug, Args)]
pub struct ExcludeArgs {
    /// A folder, a pattern such as `~/private/**`, or `remote:host/path`
    pub place: String,
}

#[derive(Debug, Args)]
pub struct TestArgs {
    /// Handed on to `cargo test`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub struct PrepareArgs {
    /// Change nothing; fail if .sqlx is stale
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// The hook's wall time against an empty process and `node -e 0`
    Hook(BenchHookArgs),
}

#[derive(Debug, Args)]
pub struct BenchHookArgs {
    /// How often each program is run
    #[arg(long, default_value_t = 300)]
    pub rounds: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum TrainCommand {
    /// Make a dataset from the journal
    Dataset(DatasetArgs),
}

#[derive(Debug, Args)]
pub struct DatasetArgs {
    /// Only count what could become training rows
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_split_is_by_a_folder_or_by_a_remote() {
        let is_understood = |part: &[&str]| {
            Cli::try_parse_from([&["agent-memory", "project", "split", "widgets"], part].concat()).is_ok()
        };
        assert!(is_understood(&["--folder", "/a"]) && is_understood(&["--remote", "h:p"]));
        assert!(!is_understood(&[]) && !is_understood(&["--folder", "/a", "--remote", "h:p"]));
    }

    #[test]
    fn a_database_url_excludes_a_choice_of_runtime() {
        let arguments = ["agent-memory", "up", "--runtime", "docker", "--database-url", "postgres://h/d"];
        assert!(Cli::try_parse_from(arguments).is_err());
    }
}
