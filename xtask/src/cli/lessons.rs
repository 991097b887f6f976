//! `lessons`: what is to be read before a risky call.

use clap::{Args, Subcommand};
use memory::lessons::{Field, Severity, Status};

#[derive(Debug, Subcommand)]
pub enum LessonsCommand {
    /// Show the lessons, the newest first
    List(ListLessonsArgs),
    /// Show one lesson, whole
    Show(ShowLessonArgs),
    /// Keep a lesson; yours may stop calls
    Add(AddLessonArgs),
    /// Change a lesson
    Edit(EditLessonArgs),
    /// Let a mined or an agent's lesson stop calls
    Accept(AcceptLessonArgs),
    /// Let a lesson fire no more; it stays as the record
    Retire(RetireLessonArgs),
    /// Show how often lessons fired, and what came of it
    Stats(StatsArgs),
    /// Show which lesson a command would fire, and why
    Test(TestLessonArgs),
    /// Look through a project's journal for lessons to propose
    Mine(MineArgs),
}

#[derive(Debug, Args)]
pub struct ListLessonsArgs {
    /// Only those of this project, and those of all: its name, remote or folder
    #[arg(long)]
    pub project: Option<String>,

    /// Only these: proposed, active, retired or enforced
    #[arg(long)]
    pub status: Option<Status>,

    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ShowLessonArgs {
    /// The lesson's number
    pub id: i64,

    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What fires a lesson.
#[derive(Debug, Args)]
pub struct TriggerArgs {
    /// The tool: Bash, Edit, Write, NotebookEdit, an MCP tool (may end in *), or any
    #[arg(long)]
    pub tool: Option<String>,

    /// A regular expression; in commands from a program's name on, with long flags
    #[arg(long)]
    pub pattern: Option<String>,

    /// In what it is looked for: command, path, content or input
    #[arg(long)]
    pub field: Option<Field>,

    /// A text that a call may be near to in meaning
    #[arg(long)]
    pub meaning: Option<String>,

    /// How near, 0.3 to 1
    #[arg(long)]
    pub threshold: Option<f64>,
}

#[derive(Debug, Args)]
pub struct AddLessonArgs {
    /// What to do or not to do, and what to do instead
    pub rule: String,

    /// One line; the rule's first if left out
    #[arg(long)]
    pub title: Option<String>,

    /// What happened when it was not kept
    #[arg(long)]
    pub why: Option<String>,

    /// critical stops each such call once, warning the first of a session, info only tells
    #[arg(long, default_value_t = Severity::Warning)]
    pub severity: Severity,

    /// The project it holds in; all if left out
    #[arg(long)]
    pub project: Option<String>,

    #[command(flatten)]
    pub trigger: TriggerArgs,

    /// Ask you each time instead of telling the agent
    #[arg(long)]
    pub ask: bool,
}

#[derive(Debug, Args)]
pub struct EditLessonArgs {
    /// The lesson's number
    pub id: i64,

    /// What it says from now on
    #[arg(long)]
    pub rule: Option<String>,

    /// Its title from now on
    #[arg(long)]
    pub title: Option<String>,

    /// Its reason from now on
    #[arg(long)]
    pub why: Option<String>,

    /// critical, warning or info
    #[arg(long)]
    pub severity: Option<Severity>,

    #[command(flatten)]
    pub trigger: TriggerArgs,

    /// Ask you each time instead of telling the agent, or no more
    #[arg(long)]
    pub ask: Option<bool>,

    /// What sees to it now, a hook or a test: the lesson stays as the record and fires no more
    #[arg(long, value_name = "WHAT")]
    pub enforced_by: Option<String>,
}

#[derive(Debug, Args)]
pub struct AcceptLessonArgs {
    /// The lesson's number
    pub id: i64,

    /// Let it only inform
    #[arg(long)]
    pub inform_only: bool,
}

#[derive(Debug, Args)]
pub struct RetireLessonArgs {
    /// The lesson's number
    pub id: i64,
}

#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TestLessonArgs {
    /// A shell command; with --path, what would be written
    pub command: String,

    /// The tool that is called
    #[arg(long, default_value = "Bash")]
    pub tool: String,

    /// The file that it would change
    #[arg(long)]
    pub path: Option<String>,

    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct MineArgs {
    /// The project's name, remote or folder
    #[arg(default_value = ".")]
    pub project: String,
}
