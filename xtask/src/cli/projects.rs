//! `project`: whose memory is whose, as a person corrects it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::JsonArgs;

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
    /// Show a project to everybody who records on this server
    Share(ShareArgs),
    /// Show it to its owner alone again
    Unshare(ShareArgs),
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
pub struct ShareArgs {
    /// The project's name, remote or folder, or its key as `project list` shows it
    pub project: String,
}

#[derive(Debug, Args)]
pub struct ExcludeArgs {
    /// A folder, a pattern such as `~/private/**`, or `remote:host/path`
    pub place: String,
}
