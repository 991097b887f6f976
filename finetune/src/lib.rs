//! From the journal to a tuned model: the dataset, the training, the file that engines load, and the proof that it is better.

pub mod adapter;
pub mod base;
pub mod dataset;
pub mod engine;
pub mod eval;
pub mod files;
pub mod gguf;
pub mod hint;
pub mod install;
pub mod model;
pub mod report;
pub mod scale_out;
#[cfg(feature = "smoke")]
pub mod smoke;
pub mod stages;
pub mod train;
