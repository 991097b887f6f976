//! From the journal to a tuned model: the dataset, the training, the file that engines load, and the proof that it is better.

pub mod adapter;
pub mod base;
pub mod dataset;
pub mod files;
pub mod gguf;
pub mod model;
#[cfg(feature = "smoke")]
pub mod smoke;
pub mod train;
