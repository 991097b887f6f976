//! From a base and a dataset to an installed model, stage by stage. Each leaves a record; one whose record fits is passed over, so that
//! a run that was broken off goes on where it was.

mod compare;
mod config;
mod dataset;
mod eval;
mod folders;
mod lora;
mod preflight;
mod record;
mod run;
mod special;
mod watch;
mod write;

pub use compare::{Agreement, compare};
pub use config::{BaseChoice, ConfigError, DatasetChoice, EvalChoice, GgufChoice, InstallChoice, Preset, RunConfig};
pub use folders::Folders;
pub use preflight::Estimate;
pub use record::{Made, Record};
pub use run::{Finished, Start, run};
pub use watch::{Progress, Question, Watch};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Is the base whole, and can it be trained?
    Base,
    /// Is the dataset whole, was it audited, and was it made for this base?
    Dataset,
    /// Is there room, and how long will it take?
    Preflight,
    /// The training.
    Lora,
    /// The adapter into the base.
    Merge,
    /// Both as files that engines load.
    Gguf,
    /// Is the file what it should be?
    Verify,
    /// Does an engine of somebody else's answer with it?
    Smoke,
    /// Is it better than its base?
    Eval,
    /// What came of it, for people.
    Report,
    /// Into LM Studio.
    Install,
}

impl Stage {
    pub const ALL: [Self; 11] = [
        Self::Base,
        Self::Dataset,
        Self::Preflight,
        Self::Lora,
        Self::Merge,
        Self::Gguf,
        Self::Verify,
        Self::Smoke,
        Self::Eval,
        Self::Report,
        Self::Install,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Dataset => "dataset",
            Self::Preflight => "preflight",
            Self::Lora => "lora",
            Self::Merge => "merge",
            Self::Gguf => "gguf",
            Self::Verify => "verify",
            Self::Smoke => "smoke",
            Self::Eval => "eval",
            Self::Report => "report",
            Self::Install => "install",
        }
    }
}
