//! Text to vectors. The model is a folder of files and the ONNX runtime a shared library; both are looked for when the first
//! text comes, never before, and again later if they were not there.

#[cfg(feature = "embed")]
mod embedder;
#[cfg(feature = "embed")]
mod model_folder;
#[cfg(feature = "embed")]
mod prompts;
#[cfg(feature = "embed")]
mod worker;

use serde::{Deserialize, Serialize};

#[cfg(feature = "embed")]
pub use embedder::{EmbedError, EmbedState, Embedder};
#[cfg(feature = "embed")]
pub use worker::EmbedDocuments;

/// Where a model in the form of sentence-transformers keeps what it wants before queries and documents.
pub const PROMPTS_FILE: &str = "config_sentence_transformers.json";

/// A query's vector and the model that made it: it may only be compared with vectors of the same model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryVector {
    pub model: String,
    pub vector: Vec<f32>,
}
