//! From the journal to a tuned model: the dataset, the training, the file that engines load, and the proof that it is better.

pub mod base;
pub mod dataset;
pub mod files;
pub mod gguf;
