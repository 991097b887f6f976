//! Qwen2.5 and Qwen3 as a forward pass whose every step has a gradient, with adapters beside the frozen weights.
//!
//! candle's fast operations (`rms_norm`, `softmax_last_dim`, `rope`, products with quantised weights) give a result without a gradient
//! and without an error. Here they run on inputs that are cut off from the graph, and `attach` hooks the result in again with its
//! derivative written out. A plain forward pass from operations that candle differentiates itself stands in the tests beside it.

mod attach;
mod cpu;
mod frozen;
mod generate;
mod gradients;
mod layer;
mod linear;
mod loss;
mod memo;
mod ops;
mod qwen;
#[cfg(test)]
mod reference;
mod sequence;
#[cfg(test)]
mod tests;

pub(crate) use frozen::Frozen;
pub use frozen::Storage;
pub use generate::{Generated, Generator};
pub use gradients::{Gradients, Recompute};
pub use linear::{Adapter, AdapterShape};
pub use qwen::Model;
pub use sequence::Sequence;
