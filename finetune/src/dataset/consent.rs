//! The user's yes to training on what a provider's model wrote, where its terms restrict that. Asked once, recorded beside the
//! settings, and told in every dataset's manifest.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::row::hex;

/// What the user is asked, as the documentation has it.
pub const TEXT: &str = include_str!("../../../docs/finetune/consent.md");

/// The file's name, among the settings.
pub const FILE_NAME: &str = "source-terms.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// Of the text that was agreed to, in hexadecimal.
    pub text_sha256: String,
    pub providers: BTreeSet<String>,
    pub accepted_at: DateTime<Utc>,
    pub how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Typed in a terminal.
    Terminal,
    /// `--accept-source-terms`.
    Flag,
}

#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    #[error("`{path}` cannot be read or written")]
    Io { path: String, source: std::io::Error },
    #[error("`{path}` is not what was recorded of your consent")]
    Invalid { path: String, source: serde_json::Error },
}

impl Consent {
    pub fn new(providers: BTreeSet<String>, how: How, accepted_at: DateTime<Utc>) -> Self {
        Self { text_sha256: text_sha256(), providers, accepted_at, how }
    }

    /// Whether the same text was agreed to for all these providers.
    pub fn covers(&self, providers: &BTreeSet<String>) -> bool {
        self.text_sha256 == text_sha256() && providers.is_subset(&self.providers)
    }

    pub fn read(path: &Path) -> Result<Option<Self>, ConsentError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ConsentError::Io { path: path.display().to_string(), source }),
        };
        let invalid = |source| ConsentError::Invalid { path: path.display().to_string(), source };
        serde_json::from_slice(&bytes).map(Some).map_err(invalid)
    }

    pub fn write(&self, path: &Path) -> Result<(), ConsentError> {
        let failed = |source| ConsentError::Io { path: path.display().to_string(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let text = serde_json::to_string_pretty(self).expect("names and times are JSON");
        std::fs::write(path, text + "\n").map_err(failed)
    }
}

/// Shows the text and reads one line: only `yes` is one.
pub fn ask(providers: &BTreeSet<String>, input: &mut impl BufRead, output: &mut impl Write) -> std::io::Result<bool> {
    let providers = providers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    write!(output, "{TEXT}\nProviders in this dataset: {providers}.\nDo you agree? Type yes: ")?;
    output.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(line.trim().eq_ignore_ascii_case("yes"))
}

fn text_sha256() -> String {
    hex(&Sha256::digest(TEXT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn is_remembered_for_the_providers_it_was_given_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config").join(FILE_NAME);
        assert_eq!(Consent::read(&path).unwrap(), None);
        let consent = Consent::new(providers(&["Anthropic"]), How::Terminal, DateTime::UNIX_EPOCH);
        consent.write(&path).unwrap();
        let read = Consent::read(&path).unwrap().unwrap();
        assert_eq!(read, consent);
        assert!(read.covers(&providers(&["Anthropic"])));
        assert!(!read.covers(&providers(&["Anthropic", "Google"])));
        let other = Consent { text_sha256: "of another text".into(), ..read };
        assert!(!other.covers(&providers(&["Anthropic"])), "what changed is asked again");
    }

    #[test]
    fn takes_nothing_but_yes_for_yes() {
        for (typed, expected) in [("yes\n", true), ("YES", true), ("y\n", false), ("\n", false), ("", false)] {
            let mut shown = Vec::new();
            let answer = ask(&providers(&["Anthropic"]), &mut typed.as_bytes(), &mut shown).unwrap();
            assert_eq!(answer, expected, "{typed:?}");
            assert!(String::from_utf8(shown).unwrap().contains("Anthropic"));
        }
    }
}
