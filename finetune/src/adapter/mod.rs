//! Adapters as PEFT keeps them, and putting one into its base for good.

mod merge;
mod peft;
#[cfg(test)]
mod tests;

pub use merge::{Merged, merge};
pub(crate) use peft::save;
pub use peft::{AdapterFolder, Origin, write};

use std::path::PathBuf;

use crate::base::ModelError;

#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{path}` cannot be written")]
    Unwritable { path: PathBuf, source: std::io::Error },
    #[error("`{path}` is no JSON as PEFT writes it")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("`{path}` has {key} = {value}, which cannot be merged here: {why}")]
    Unsupported { path: PathBuf, key: &'static str, value: String, why: &'static str },
    #[error("the adapter's tensor {0} belongs to no linear map of the base")]
    NoPlace(String),
    #[error("the adapter lacks {0}: each adapted map has an A and a B")]
    NoPair(String),
    #[error("the adapter in `{0}` holds no tensor")]
    Empty(PathBuf),
    #[error("the adapter's {name} is of shape {found:?}; its base asks for {expected:?}: it was made for another base")]
    Shape { name: String, found: Vec<usize>, expected: Vec<usize> },
    #[error("the adapter in `{folder}` was trained on another base: on {trained_on}, and this one is {this}")]
    OtherBase { folder: PathBuf, trained_on: String, this: String },
    #[error("the adapter's {0} holds numbers that are not finite")]
    NotFinite(String),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("computing with {name}")]
    Tensor { name: String, source: candle_core::Error },
}

impl AdapterError {
    fn tensor(name: &str) -> impl FnOnce(candle_core::Error) -> Self {
        let name = name.to_owned();
        move |source| Self::Tensor { name, source }
    }
}
