//! From the journal to a tuned model: the dataset first.

pub mod dataset;
