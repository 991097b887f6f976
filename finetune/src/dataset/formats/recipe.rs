//! How a model is tuned, in the words that all trainers share.

/// The rank and strength of the adapter, and how it is learnt. All seven linear layers of a block get one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    pub r: u64,
    pub alpha: u64,
    pub dropout: f64,
    /// The highest; it falls as a cosine.
    pub learning_rate: f64,
    pub epochs: u64,
    /// The rows of an update, over all devices.
    pub batch: u64,
    /// The share of the updates in which the learning rate rises.
    pub warmup: f64,
    pub seed: u64,
}

impl Default for Recipe {
    /// What Unsloth's guide to LoRA and the examples of the trainers have in common.
    fn default() -> Self {
        Self { r: 16, alpha: 32, dropout: 0.0, learning_rate: 1e-4, epochs: 3, batch: 8, warmup: 0.05, seed: 7 }
    }
}
