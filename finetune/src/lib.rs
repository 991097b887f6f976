//! From the journal to a tuned model: the dataset first, and in the end whether the tuned model is better than its base.

pub mod dataset;
pub mod eval;
