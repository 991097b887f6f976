//! From the journal to a tuned model: the dataset, and training it elsewhere.

pub mod dataset;
pub mod scale_out;
