//! Train elsewhere: a folder with everything that another trainer needs on machines with GPUs, and how its adapter comes back.
//!
//! The folder holds the trainer's form of the dataset, its configuration with the settings that our own trainer would have, and the
//! commands. How the work is shared between GPUs is the trainer's and DeepSpeed's or PyTorch's business: nothing here is home-made.

mod commands;
mod folder;
mod shape;
mod sharing;
mod trainer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use crate::dataset::formats::Recipe;
pub use folder::write;
pub use shape::{Impossible, Shape, Strategy};
pub use trainer::Trainer;

use crate::dataset::ManifestError;

/// What is to be trained, and where.
#[derive(Debug, Clone, Copy)]
pub struct ScaleOut<'a> {
    /// The folder of a dataset.
    pub dataset: &'a Path,
    pub failed_audit: FailedAudit,
    pub trainer: Trainer,
    /// As the trainer finds the base model there: its name on the hub, or a folder of those machines.
    pub base: &'a str,
    pub shape: Shape,
    pub recipe: &'a Recipe,
    /// The folder to write, which must not be there yet.
    pub out: &'a Path,
}

/// Whether a dataset that failed its audit is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailedAudit {
    #[default]
    Refuse,
    Allow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub folder: PathBuf,
    /// By path in the folder, in order.
    pub files: Vec<String>,
    /// The rows of an update: more than the recipe's where there are more GPUs than that.
    pub batch: u64,
    pub install: String,
    pub train: String,
    /// What brings the adapter back.
    pub take_back: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ScaleOutError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(
        "the dataset in `{0}` failed its audit, so what it teaches is not what it should: read its audit.md and make it anew, or \
         allow a failed audit explicitly"
    )]
    AuditFailed(PathBuf),
    #[error(transparent)]
    Impossible(#[from] Impossible),
    #[error(
        "`{path}` is not in the dataset's manifest, for another version of this program made it: make the dataset anew"
    )]
    NotInManifest { path: String },
    #[error("`{path}` has no rows, and {trainer} cannot do without: make a dataset of more sessions")]
    Empty { path: String, trainer: Trainer },
    #[error("`{path}` is not what its dataset's manifest says: it was changed since, so make the dataset anew")]
    Changed { path: PathBuf },
    #[error("the recipe's {setting} is {value}, but must be {wanted}")]
    Recipe { setting: &'static str, value: String, wanted: &'static str },
    #[error("`{0}` is already there: name another folder, or remove it")]
    AlreadyThere(PathBuf),
    #[error("`{path}` cannot be read")]
    Reading { path: PathBuf, source: std::io::Error },
    #[error("`{path}` cannot be written")]
    Writing { path: PathBuf, source: std::io::Error },
}
