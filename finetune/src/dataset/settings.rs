//! What a person may choose about a dataset, as `dataset.toml` and the command line say it. Every value has a default.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::audit::Limits;
use super::sources::Licence;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// The longest row, in tokens of the base model.
    pub max_tokens: usize,
    /// What the schemas of the offered tools may take of it.
    pub tools_tokens: usize,
    /// What is kept of a tool's result, in bytes.
    pub result_bytes: usize,
    /// How many earlier turns of the session a row may open with.
    pub earlier_turns: usize,
    /// What becomes of calls that failed.
    pub failed_calls: FailedCalls,
    /// What becomes of calls that a person, or a rule of theirs, stopped.
    pub stopped_calls: StoppedCalls,
    /// Whether calls of this memory's own tools are trained on.
    pub own_tools: bool,
    pub filter: Filter,
    /// By project: which share of its rows is used. What is not named is used whole.
    pub weights: BTreeMap<String, f64>,
    pub shares: Shares,
    pub split: SplitShares,
    pub limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum FailedCalls {
    /// They stay in the conversation, for what was done next depends on them, and carry no loss.
    Mask,
    /// They are left out.
    Drop,
    /// They are trained on like others.
    Train,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum StoppedCalls {
    /// They are left out.
    Drop,
    /// They stay in the conversation with what was said instead of a result, and carry no loss.
    Mask,
}

/// What is selected; an empty list selects all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    pub projects: Vec<String>,
    pub without_projects: Vec<String>,
    pub agents: Vec<String>,
    pub source_models: Vec<String>,
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
    /// Only turns in which every call worked.
    pub only_successful: bool,
    /// Which classes of source models are used; for `restricted` the user is asked.
    pub licences: Vec<Licence>,
}

/// What the rows are brought to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shares {
    /// Rows that end in the closing text after a result: at least.
    pub answered: f64,
    /// Rows that need no tool: at most.
    pub text: f64,
    /// Trained calls of one tool: at most.
    pub tool: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SplitShares {
    pub validation: f64,
    pub test: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 7,
            max_tokens: 2048,
            tools_tokens: 512,
            result_bytes: 1600,
            earlier_turns: 2,
            failed_calls: FailedCalls::Mask,
            stopped_calls: StoppedCalls::Drop,
            own_tools: false,
            filter: Filter::default(),
            weights: BTreeMap::new(),
            shares: Shares::default(),
            split: SplitShares::default(),
            limits: Limits::default(),
        }
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            projects: Vec::new(),
            without_projects: Vec::new(),
            agents: Vec::new(),
            source_models: Vec::new(),
            since: None,
            until: None,
            only_successful: false,
            licences: vec![Licence::Open, Licence::Restricted],
        }
    }
}

impl Default for Shares {
    fn default() -> Self {
        Self { answered: 0.30, text: 0.15, tool: 0.35 }
    }
}

impl Default for SplitShares {
    fn default() -> Self {
        Self { validation: 0.05, test: 0.05 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: String, source: std::io::Error },
    #[error("`{path}` is not as expected")]
    Invalid { path: String, source: Box<toml::de::Error> },
    #[error("`{name}` is {value}, and must be {range}")]
    OutOfRange { name: String, value: String, range: &'static str },
}

impl Settings {
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Unreadable { path: shown.clone(), source })?;
        toml::from_str(&text).map_err(|source| SettingsError::Invalid { path: shown, source: Box::new(source) })
    }

    /// That the numbers can be meant.
    pub fn check(&self) -> Result<(), SettingsError> {
        let shares = [
            ("shares.answered", self.shares.answered),
            ("shares.text", self.shares.text),
            ("shares.tool", self.shares.tool),
            ("split.validation", self.split.validation),
            ("split.test", self.split.test),
        ];
        let weights = self.weights.iter().map(|(project, weight)| (format!("weights.{project}"), *weight));
        let shares = shares.map(|(name, share)| (name.to_owned(), share));
        for (name, share) in shares.into_iter().chain(weights) {
            if !(0.0..=1.0).contains(&share) {
                return Err(SettingsError::OutOfRange { name, value: share.to_string(), range: "between 0 and 1" });
            }
        }
        if self.split.validation + self.split.test > 0.5 {
            let value = format!("{} + {}", self.split.validation, self.split.test);
            let name = "split.validation + split.test".to_owned();
            return Err(SettingsError::OutOfRange { name, value, range: "at most a half" });
        }
        if self.tools_tokens + MIN_CONVERSATION_TOKENS > self.max_tokens {
            let range = "larger than `tools_tokens` by at least 256";
            let value = self.max_tokens.to_string();
            return Err(SettingsError::OutOfRange { name: "max_tokens".to_owned(), value, range });
        }
        Ok(())
    }
}

/// Less than this holds no prompt and its call.
const MIN_CONVERSATION_TOKENS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_set_and_leaves_the_rest_at_its_default() {
        let settings: Settings =
            toml::from_str("seed = 3\n[filter]\nprojects = [\"widgets\"]\n[shares]\ntool = 0.5\n").unwrap();
        assert_eq!((settings.seed, settings.shares.tool, settings.shares.text), (3, 0.5, 0.15));
        assert_eq!(settings.filter.projects, ["widgets"]);
        assert_eq!(settings.filter.licences, [Licence::Open, Licence::Restricted]);
    }

    #[test]
    fn refuses_a_key_that_nobody_knows() {
        assert!(toml::from_str::<Settings>("sede = 3").is_err());
    }

    #[test]
    fn refuses_shares_that_cannot_be() {
        let mut settings = Settings::default();
        assert!(settings.check().is_ok());
        settings.weights.insert("widgets".into(), 1.5);
        assert!(settings.check().unwrap_err().to_string().contains("weights.widgets"));
        settings.weights.clear();
        settings.split.test = 0.6;
        assert!(settings.check().is_err());
        settings.split.test = 0.05;
        settings.tools_tokens = 2000;
        assert!(settings.check().is_err());
    }
}
