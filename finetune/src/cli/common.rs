//! What `dataset` and a run take alike.

use std::path::PathBuf;

use clap::Args;

use super::Choice;

#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Common {
    /// Settings in a file (docs/finetune/runbook.md, docs/finetune/dataset.md); what is given here goes before them
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the settings that would be used, as TOML, and do nothing
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Only say what there is, and what it would take
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Agree to docs/finetune/consent.md without being asked, if a dataset is made
    #[arg(long)]
    pub(crate) accept_source_terms: bool,

    #[command(flatten)]
    pub(crate) choice: Choice,
}
