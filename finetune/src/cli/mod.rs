//! The command line of `agent-memory-finetune`, which `cargo xtask train` hands its arguments on to.

mod common;
mod dataset;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use finetune::gguf::Quantisation;
use finetune::model::{Recompute, Storage};

pub(crate) use common::Common;
pub(crate) use dataset::{Choice, DatasetArgs, Look};
pub(crate) use run::RunArgs;

/// Turns the journal into training data and a tuned model.
///
/// Without a command: from a base and a dataset to an installed model. In a terminal and without arguments it asks for everything.
#[derive(Debug, Parser)]
#[command(name = "agent-memory-finetune", bin_name = "cargo xtask train", version)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a dataset from the journal, or look at one
    Dataset(Box<DatasetArgs>),
    /// Check a GGUF, wherever it came from
    Verify(VerifyArgs),
    /// Show what a GGUF is
    Info(InfoArgs),
    /// Let mistralrs answer prompts with a GGUF
    Smoke(SmokeArgs),
    /// Let two GGUFs answer a file of prompts, without telling which is which
    Ab(AbArgs),
    /// List the models that were installed from here
    Installed(InstalledArgs),
    /// Remove a model that was installed from here
    Remove(RemoveArgs),
    /// Tokenise the text of a dataset, for comparing with
    #[command(hide = true)]
    Tokenise(TokeniseArgs),
    /// Write a base of random numbers in the shape of Qwen3-0.6B
    #[command(hide = true)]
    RandomBase(RandomBaseArgs),
    /// Time some steps of training
    #[command(hide = true)]
    MeasureTraining(MeasureArgs),
    /// Write a folder's model as a GGUF
    #[command(hide = true)]
    MeasureWriting(WriteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    pub(crate) file: PathBuf,
    /// The folder of the model that it was made of: compares tokens, template and what both say
    #[arg(long, value_name = "FOLDER")]
    pub(crate) against: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SmokeArgs {
    pub(crate) file: PathBuf,
    /// A file whose text is sent as it is, control tokens and all; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AbArgs {
    pub(crate) one: PathBuf,
    pub(crate) other: PathBuf,
    /// One JSON object a line: {"prompt": ...}, or {"messages": [...], "tools": [...]}
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: PathBuf,
    /// The folder of the base of both: tokenizer and chat template
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: PathBuf,
    /// The table; which side was which is written beside it, as `.key.json`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[arg(long, default_value_t = 256)]
    pub(crate) tokens: usize,
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct InstalledArgs {
    /// LM Studio's folder of models; `~/.lmstudio/models` if not given
    #[arg(long, value_name = "FOLDER")]
    pub(crate) lm_studio_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    pub(crate) name: String,
    /// LM Studio's folder of models; `~/.lmstudio/models` if not given
    #[arg(long, value_name = "FOLDER")]
    pub(crate) lm_studio_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TokeniseArgs {
    #[arg(long)]
    pub(crate) base: PathBuf,
    pub(crate) dataset: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RandomBaseArgs {
    #[arg(long)]
    pub(crate) out: PathBuf,
    #[arg(long, default_value_t = 28)]
    pub(crate) layers: usize,
    #[arg(long)]
    pub(crate) tokenizer: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[arg(long)]
    pub(crate) base: PathBuf,
    #[arg(long, default_value_t = 512)]
    pub(crate) tokens: usize,
    #[arg(long, default_value_t = 3)]
    pub(crate) steps: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) storage: Storage,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) recompute: Recompute,
}

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    #[arg(long)]
    pub(crate) base: PathBuf,
    #[arg(long)]
    pub(crate) out: PathBuf,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) quantisation: Quantisation,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn is_a_run_or_a_command() {
        assert!(Arguments::parse_from(["train"]).run.is_empty());
        let run = Arguments::parse_from(["train", "--preset", "tiny", "--project", "widgets"]);
        assert!(run.command.is_none() && !run.run.is_empty());
        assert!(matches!(Arguments::parse_from(["train", "info", "x.gguf"]).command, Some(Command::Info(_))));
    }
}
