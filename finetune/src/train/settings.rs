//! How it is trained. The defaults are those that Unsloth's and QLoRA's guides agree on for small models.

use serde::{Deserialize, Serialize};

use crate::model::{AdapterShape, Recompute, Storage};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    pub rank: usize,
    pub alpha: f64,
    pub learning_rate: f64,
    /// The share of the steps in which the learning rate rises from nothing; afterwards it falls along a cosine.
    pub warm_up: f64,
    pub weight_decay: f64,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    pub epochs: usize,
    /// Ends the run before its epochs are over; in a file, 0 is no limit.
    #[serde(with = "limit")]
    pub max_steps: Option<usize>,
    /// Samples are laid end to end up to this length; a longer one is left out.
    pub sequence_tokens: usize,
    /// So many sequences make a step.
    pub sequences_per_step: usize,
    /// Steps between two looks at the validation set.
    pub evaluate_every: usize,
    /// So many looks without a better validation loss end the run.
    pub patience: usize,
    /// The most validation samples that are looked at.
    pub validation_samples: usize,
    /// Steps between two checkpoints.
    pub checkpoint_every: usize,
    pub storage: Storage,
    pub recompute: Recompute,
    pub seed: u64,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            rank: 16,
            alpha: 32.0,
            learning_rate: 2e-4,
            warm_up: 0.05,
            weight_decay: 0.0,
            clip: 1.0,
            epochs: 2,
            max_steps: None,
            sequence_tokens: 2048,
            sequences_per_step: 4,
            evaluate_every: 50,
            patience: 3,
            validation_samples: 200,
            checkpoint_every: 25,
            storage: Storage::default(),
            recompute: Recompute::default(),
            seed: 20_251,
        }
    }
}

/// TOML has no word for nothing: what is left out of a file would be what the preset says.
mod limit {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands over the field")]
    pub(super) fn serialize<S: Serializer>(limit: &Option<usize>, serializer: S) -> Result<S::Ok, S::Error> {
        limit.unwrap_or(0).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
        usize::deserialize(deserializer).map(|limit| (limit > 0).then_some(limit))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the setting {key} is {value}: {why}")]
pub struct SettingsError {
    pub key: &'static str,
    pub value: String,
    pub why: &'static str,
}

impl TrainSettings {
    pub fn check(&self) -> Result<(), SettingsError> {
        let positive = [
            ("rank", self.rank),
            ("epochs", self.epochs),
            ("max_steps", self.max_steps.unwrap_or(1)),
            ("sequences_per_step", self.sequences_per_step),
            ("evaluate_every", self.evaluate_every),
            ("patience", self.patience),
            ("checkpoint_every", self.checkpoint_every),
        ];
        let refuse = |key, value: String, why| Err(SettingsError { key, value, why });
        if let Some((key, value)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return refuse(key, value.to_string(), "it must be at least 1");
        }
        if self.sequence_tokens < 2 {
            return refuse("sequence_tokens", self.sequence_tokens.to_string(), "a token is learnt from one before it");
        }
        let above = [("alpha", self.alpha), ("learning_rate", self.learning_rate), ("clip", self.clip)];
        if let Some((key, value)) = above.into_iter().find(|(_, value)| !value.is_finite() || *value <= 0.0) {
            return refuse(key, value.to_string(), "it must be above 0");
        }
        if !(0.0..1.0).contains(&self.warm_up) {
            return refuse("warm_up", self.warm_up.to_string(), "a share below 1 is expected");
        }
        if !(0.0..1.0).contains(&self.weight_decay) {
            return refuse("weight_decay", self.weight_decay.to_string(), "a share below 1 is expected");
        }
        Ok(())
    }

    pub const fn adapter(&self) -> AdapterShape {
        AdapterShape { rank: self.rank, alpha: self.alpha }
    }
}
