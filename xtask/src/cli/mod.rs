//! Every command and every flag; those of `backfill` and of the benches in files of their own. What they do stands in
//! `commands`, one file a command.

mod agents;
mod backfill;
mod backup;
mod bench;
mod leaving;
mod lessons;
mod moving;
mod projects;
mod schedule;
mod tokens;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use agents::{Agent, AgentArgs};
pub use backfill::{BackfillAgent, BackfillArgs};
pub use backup::{BackupArgs, BackupCommand, KeptArgs, KeyArgs, MakeBackupArgs, PruneArgs, RestoreArgs, VerifyArgs};
pub use bench::{
    BackfillWork, BackfillWorkerArgs, BenchBackfillArgs, BenchChaosArgs, BenchCommand, BenchDatasetArgs, BenchGateArgs,
    BenchGgufArgs, BenchHookArgs, BenchIngestArgs, BenchLocomoArgs, BenchRecallArgs, BenchRedactArgs, BenchTrainArgs,
};
pub use leaving::{ExportArgs, ImportArgs};
pub use lessons::{
    AcceptLessonArgs, AddLessonArgs, EditLessonArgs, LessonsCommand, ListLessonsArgs, MineArgs, RetireLessonArgs,
    ShowLessonArgs, StatsArgs, TestLessonArgs, TriggerArgs,
};
pub use moving::{MoveArgs, UninstallArgs};
pub use projects::{AliasArgs, ExcludeArgs, MergeArgs, ProjectCommand, ShareArgs, SplitArgs, UndoArgs};
pub use schedule::{InstallScheduleArgs, ScheduleCommand};
pub use tokens::{CreateTokenArgs, RevokeTokenArgs, TokenCommand, TokenLogArgs};

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
    /// Remove what is older or larger than the limits in settings.toml allow
    Gc(GcArgs),
    /// Do something about jobs that do not get done by themselves
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Make the search index again from the journal, in the background of everything else
    Reindex,
    /// Give every document without one a vector of the installed model, in the background
    ReEmbed(ReEmbedArgs),
    /// Bring the database's schema up to date
    Migrate,
    /// Register hooks and MCP server with agents
    Register(AgentArgs),
    /// Undo exactly what `register` did
    Unregister(AgentArgs),
    /// Read what agents recorded by themselves: the time before the hooks, and what hooks do not say
    Backfill(BackfillArgs),
    /// Make a backup, or look after those that there are
    Backup(BackupArgs),
    /// Put a backup in the database's place, which is kept
    Restore(RestoreArgs),
    /// Take what is remembered to another runtime: Docker, embedded, or a Postgres of yours
    Move(MoveArgs),
    /// Remove agent-memory and prove that nothing of it is left; backups stay
    Uninstall(UninstallArgs),
    /// Who makes the daily backup
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Write everything that is remembered as lines of JSON
    Export(ExportArgs),
    /// Read an export into the empty database of this installation
    Import(ImportArgs),
    /// Build the container images
    Images,
    /// Which repository is which project, and what is not recorded
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Who records on this server beside its operator
    People(JsonArgs),
    /// Who may do what, beside this machine's own programs
    #[command(subcommand)]
    Token(TokenCommand),
    /// What agents must read before a risky call
    #[command(subcommand)]
    Lessons(LessonsCommand),
    /// Run all tests, with a database for them
    Test(TestArgs),
    /// Run what continuous integration runs: format, lints, docs, licences, queries, tests
    Ci(CiArgs),
    /// Refresh the checked queries in .sqlx
    Prepare(PrepareArgs),
    /// Measure
    #[command(subcommand)]
    Bench(BenchCommand),
    /// From the journal to a model; alone, in a terminal, it asks for everything
    Train(TrainArgs),
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
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

    /// Do not have a backup made each day
    #[arg(long)]
    pub no_schedule: bool,

    /// Use the embedding model in this folder (model.onnx and its tokenizer files)
    #[arg(long, value_name = "DIR")]
    pub embedding_model_dir: Option<PathBuf>,

    /// Install the programs in this folder instead of building them
    #[arg(long, value_name = "DIR")]
    pub programs: Option<PathBuf>,

    /// Go back to what ran before an upgrade that did not get healthy
    #[arg(long, exclusive = true)]
    pub undo: bool,

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
pub struct CiArgs {
    /// Leave mistralrs out: compiling it for the first time takes ten minutes
    #[arg(long)]
    pub no_engines: bool,
}

#[derive(Debug, Args)]
pub struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,

    /// Also give the space back to the disk: writes the tables anew, and events wait in the spool meanwhile
    #[arg(long, conflicts_with = "dry_run")]
    pub compact: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// Have jobs that were given up tried again
    Retry(QueueSelection),
    /// Forget jobs that were given up
    Drop(QueueSelection),
}

#[derive(Debug, Args)]
pub struct ReEmbedArgs {
    /// Also those that have one
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct QueueSelection {
    /// Only jobs of this kind, as `doctor` names it
    #[arg(long)]
    pub kind: Option<String>,

    /// Also jobs that still wait
    #[arg(long)]
    pub all: bool,
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

#[derive(Debug, Default, Args)]
pub struct TestArgs {
    /// Also compile mistralrs, which takes ten minutes the first time, and have it answer with the models that are trained here
    #[arg(long)]
    pub engines: bool,

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

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct TrainArgs {
    /// Handed on to `agent-memory-finetune`; `--help` lists what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
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
    fn agents_can_be_named_in_either_way_and_come_in_one_order() {
        let chosen = |arguments: &[&str]| {
            let arguments = ["agent-memory", "register"].iter().chain(arguments);
            match Cli::try_parse_from(arguments).unwrap().command {
                Command::Register(arguments) => arguments.chosen(),
                command => panic!("{command:?}"),
            }
        };
        assert_eq!(chosen(&[]), []);
        assert_eq!(chosen(&["claude"]), [Agent::Claude]);
        assert_eq!(chosen(&["--agents", "vscode,codex,claude"]), [Agent::Claude, Agent::Codex, Agent::Vscode]);
        assert_eq!(chosen(&["gemini", "--agents", "gemini,claude"]), [Agent::Claude, Agent::Gemini]);
        for agent in Agent::value_variants() {
            assert_eq!(chosen(&[agent.name()]), [*agent]);
        }
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
