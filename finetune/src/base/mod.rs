//! The folder of a base model as it is published: `config.json`, weights in safetensors, tokenizer and template. What is read of it,
//! and whether it is whole.

mod config;
mod cut;
pub mod fetch;
mod files;
mod fingerprint;
pub mod random;
pub(crate) mod tensor_file;
mod weights;

pub use config::{Architecture, Linear, ModelConfig};
pub use cut::cut;
pub use files::TOKENIZER_FILES;
pub use fingerprint::Fingerprint;
pub use weights::Weights;

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{path}` is no JSON as it was expected")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("`{path}` says {key} = {value}, which is not supported: {why}")]
    Unsupported { path: PathBuf, key: &'static str, value: String, why: &'static str },
    #[error("`{0}` holds no weights: there is no safetensors file in it")]
    NoWeights(PathBuf),
    #[error("`{path}` is cut short or damaged: {found} bytes where its header tells of {expected}")]
    Truncated { path: PathBuf, found: u64, expected: u64 },
    #[error("`{path}` is no safetensors file: {reason}")]
    NotSafetensors { path: PathBuf, reason: String },
    #[error("the weights in `{folder}` lack the tensor {name}")]
    MissingTensor { folder: PathBuf, name: String },
    #[error("the tensor {name} in `{folder}` is of shape {found:?}; config.json asks for {expected:?}")]
    Shape { folder: PathBuf, name: String, found: Vec<usize>, expected: Vec<usize> },
    #[error("the weights in `{folder}` hold the tensor {name}, which no {architecture} has")]
    UnknownTensor { folder: PathBuf, name: String, architecture: &'static str },
    #[error("the tensor {name} in `{folder}` is of type {dtype}; F32, F16 and BF16 can be read")]
    Type { folder: PathBuf, name: String, dtype: String },
    #[error("the tokenizer in `{folder}` cannot be cut to {vocabulary} tokens: {reason}")]
    Cut { folder: PathBuf, vocabulary: usize, reason: &'static str },
    #[error("`{path}` cannot be written")]
    Unwritable { path: PathBuf, source: std::io::Error },
    #[error("reading the tensor {name}")]
    Tensor { name: String, source: candle_core::Error },
}
