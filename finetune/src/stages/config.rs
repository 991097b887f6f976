//! `train.toml`: everything that decides about a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::eval::Thresholds;
use crate::gguf::Quantisation;
use crate::train::{SettingsError, TrainSettings};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    pub base: BaseChoice,
    pub dataset: DatasetChoice,
    /// An adapter that was trained elsewhere, in PEFT's form: nothing is trained here then.
    pub adapter: Option<PathBuf>,
    pub train: TrainSettings,
    pub gguf: GgufChoice,
    pub eval: EvalChoice,
    /// What the tuned model must reach to be installed.
    pub gate: Thresholds,
    pub install: InstallChoice,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BaseChoice {
    /// A folder, or the id of a model on the Hugging Face hub.
    pub model: String,
    /// A GGUF to make the base of, where there are no other weights; `model` is then the folder of its tokenizer.
    pub gguf: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatasetChoice {
    /// The latest of the base's family if none is named; one is made of the journal if there is none.
    pub folder: Option<PathBuf>,
    /// Make a new one of the journal.
    pub fresh: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GgufChoice {
    pub quantisation: Quantisation,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalChoice {
    /// The most rows of the test set that are judged; drawn from the seed.
    pub rows: usize,
    /// The longest answer.
    pub answer_tokens: usize,
}

impl Default for EvalChoice {
    fn default() -> Self {
        Self { rows: 200, answer_tokens: 512 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstallChoice {
    /// LM Studio's folder of models; `~/.lmstudio/models` if not given.
    pub lm_studio: Option<PathBuf>,
    pub publisher: String,
    /// Named after the run if not given.
    pub name: Option<String>,
}

impl Default for InstallChoice {
    fn default() -> Self {
        Self { lm_studio: None, publisher: "agent-memory".to_owned(), name: None }
    }
}

impl Default for RunConfig {
    fn default() -> Self {
        Preset::Small.config()
    }
}

/// How much is trained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// So little that a laptop without a GPU is done within the hour: does it work, and in which direction does it go?
    Tiny,
    /// An evening on a CPU.
    #[default]
    Small,
    /// All of the data; for a GPU.
    Full,
}

impl Preset {
    pub fn config(self) -> RunConfig {
        let settings = TrainSettings::default();
        let (train, rows) = match self {
            Self::Tiny => {
                let train = TrainSettings {
                    max_steps: Some(40),
                    sequence_tokens: 1024,
                    sequences_per_step: 1,
                    learning_rate: 4e-4,
                    evaluate_every: 10,
                    checkpoint_every: 5,
                    validation_samples: 16,
                    ..settings
                };
                (train, 40)
            }
            Self::Small => (TrainSettings { max_steps: Some(300), validation_samples: 64, ..settings }, 100),
            Self::Full => (settings, 500),
        };
        RunConfig {
            base: BaseChoice::default(),
            dataset: DatasetChoice::default(),
            adapter: None,
            train,
            gguf: GgufChoice::default(),
            eval: EvalChoice { rows, ..EvalChoice::default() },
            gate: Thresholds::default(),
            install: InstallChoice::default(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{path}` is no configuration of a run")]
    Invalid { path: PathBuf, source: toml::de::Error },
    #[error("a configuration cannot be put together")]
    Merge(#[from] toml::ser::Error),
    #[error(transparent)]
    Setting(#[from] SettingsError),
}

impl RunConfig {
    /// What a file says, over a preset.
    pub fn read(path: &Path, preset: Preset) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let invalid = |source| ConfigError::Invalid { path: path.to_owned(), source };
        let said: toml::Table = text.parse().map_err(invalid)?;
        let mut all = toml::Table::try_from(preset.config())?;
        lay_over(&mut all, said);
        toml::Value::Table(all).try_into().map_err(invalid)
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        Ok(self.train.check()?)
    }
}

/// Tables are laid over each other, everything else is replaced.
fn lay_over(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => lay_over(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RunConfig, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.toml");
        std::fs::write(&path, text).unwrap();
        RunConfig::read(&path, Preset::Tiny)
    }

    #[test]
    fn lays_a_file_over_a_preset() {
        let config = read("[base]\nmodel = 'Qwen/Qwen3-0.6B'\n[train]\nrank = 8\n").unwrap();
        assert_eq!((config.base.model.as_str(), config.train.rank), ("Qwen/Qwen3-0.6B", 8));
        assert_eq!(config.train.max_steps, Preset::Tiny.config().train.max_steps);
    }

    #[test]
    fn names_a_setting_that_there_is_not() {
        let error = read("[train]\nranks = 8\n").unwrap_err();
        assert!(format!("{:?}", anyhow::Error::from(error)).contains("ranks"));
    }

    #[test]
    fn reads_what_it_prints() {
        for preset in [Preset::Tiny, Preset::Small, Preset::Full] {
            let text = toml::to_string(&preset.config()).unwrap();
            assert_eq!(read(&text).unwrap(), preset.config(), "{text}");
        }
    }
}
