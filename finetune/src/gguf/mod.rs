//! GGUF, the file that llama.cpp, LM Studio and mistralrs load: written of a model's folder as llama.cpp's own converter writes it, read
//! whoever wrote it, held against the folder it was made of, and turned back into one.
//!
//! What a model says is compared elsewhere; here is what a file can tell.

mod import;
mod info;
mod load;
mod metadata;
mod names;
mod quantise;
mod read;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod reference;
mod size_label;
#[cfg(test)]
mod tiny;
mod types;
mod value;
mod verify;
mod vocabulary;
mod write;

pub use import::{Imported, import};
pub use info::{Info, TypeShare, info};
pub use load::load;
pub use names::{to_gguf, to_hugging_face};
pub use quantise::Quantisation;
pub use read::{Gguf, Header, TensorInfo};
pub use types::TensorType;
pub use value::Value;
pub use verify::{Check, Verified, verify};
pub use write::{Written, sha256_file, write};

use std::io;
use std::path::{Path, PathBuf};

use crate::base::ModelError;
use crate::dataset::render::BaseError;

#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Base(#[from] BaseError),
    #[error("`{path}` cannot be read")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{path}` cannot be written")]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("writing what was converted")]
    Io(#[from] io::Error),
    #[error("`{path}` is no GGUF: {reason}")]
    Malformed { path: PathBuf, reason: String },
    #[error("`{path}` is cut short: {found} bytes where the header tells of {expected}")]
    CutShort { path: PathBuf, found: u64, expected: u64 },
    #[error("`{path}` says nothing of {key}, or not as it should")]
    MissingKey { path: PathBuf, key: String },
    #[error("`{path}` has no tensor {name}")]
    MissingTensor { path: PathBuf, name: String },
    #[error("the tensor {name} in `{path}` is stored as {kind}, which cannot be read here")]
    UnreadableType { path: PathBuf, name: String, kind: &'static str },
    #[error("decoding the tensor {name}")]
    Decode { name: String, source: candle_core::Error },
    #[error("quantising the tensor {name}")]
    Quantise { name: String, source: candle_core::Error },
    #[error(
        "the tensor {name} holds {value}, which {kind} cannot: the model is damaged, or this type too narrow for it"
    )]
    Unrepresentable { name: String, value: f32, kind: &'static str },
    #[error("no GGUF has a name for the tensor {0}")]
    Unnamed(String),
    #[error("the tokenizer in `{folder}` cannot be written into a GGUF: {reason}")]
    Tokenizer { folder: PathBuf, reason: String },
    #[error("`{path}` says {key} = {value}; positions are not stretched here")]
    Stretched { path: PathBuf, key: String, value: String },
    #[error("`{path}` holds a {found}; qwen2 (also Qwen2.5) and qwen3 can be a base")]
    Architecture { path: PathBuf, found: String },
    #[error(
        "the tokenizer in `{folder}` is not the one of `{path}`: token {id} is {found:?} there and {expected:?} here"
    )]
    OtherTokenizer { folder: PathBuf, path: PathBuf, id: usize, found: String, expected: String },
}

impl GgufError {
    /// Names the file that could not be written.
    fn while_writing(self, path: &Path) -> Self {
        match self {
            Self::Io(source) => Self::Unwritable { path: path.to_owned(), source },
            other => other,
        }
    }
}
