//! `export` and `import`: everything as lines of JSON, and back.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A file (`all.ndjson`), or a folder for one file a table
    pub path: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// What `export` made: a file or a folder
    pub path: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
