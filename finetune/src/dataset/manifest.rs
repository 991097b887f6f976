//! `manifest.json`: everything that decided about a dataset, and the hash of everything in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::audit::Audit;
use super::build::Build;
use super::consent::Consent;
use super::render::Family;
use super::select::Dropped;
use super::settings::Settings;
use super::split::Split;

pub const FILE_NAME: &str = "manifest.json";

/// Of this form of the manifest and of the files that it names.
const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub manifest: u32,
    /// The version of the program.
    pub program: String,
    pub family: Family,
    pub template_sha256: String,
    pub tokenizer_sha256: String,
    pub settings: Settings,
    /// The hash of every other file that decided, by what it is: offered tools, licence classes, rules of redaction.
    pub inputs: BTreeMap<String, String>,
    /// Whose restricted outputs are in it, and the user's yes to that.
    pub providers: BTreeSet<String>,
    pub consent: Option<Consent>,
    pub counts: Counts,
    pub splits: BTreeMap<Split, u64>,
    pub audit_passed: bool,
    /// SHA-256 of the test set, which is for the final comparison and is in no file for training.
    pub sealed_sha256: String,
    /// By path in the folder.
    pub files: BTreeMap<String, FileFacts>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Sessions that fitted the filters, and their turns.
    pub sessions: u64,
    pub turns: u64,
    /// Rows before near-duplicates, weights and shares.
    pub gathered: u64,
    pub drops: BTreeMap<Dropped, u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    pub sha256: String,
    pub bytes: u64,
    pub lines: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: String, source: std::io::Error },
    #[error("`{path}` is no manifest of a dataset")]
    Invalid { path: String, source: serde_json::Error },
}

impl Manifest {
    pub(super) fn new(job: &Build<'_>, counts: Counts, audit: &Audit) -> Self {
        let base = job.base;
        Self {
            manifest: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            family: base.family,
            template_sha256: base.template_sha256.clone(),
            tokenizer_sha256: base.tokenizer_sha256.clone(),
            settings: job.settings.clone(),
            inputs: job.inputs.clone(),
            providers: job.providers.clone(),
            consent: job.consent.clone(),
            counts,
            splits: audit.splits.clone(),
            audit_passed: audit.passed,
            sealed_sha256: String::new(),
            files: BTreeMap::new(),
        }
    }

    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join(FILE_NAME);
        let shown = path.display().to_string();
        let bytes = std::fs::read(&path).map_err(|source| ManifestError::Unreadable { path: shown.clone(), source })?;
        serde_json::from_slice(&bytes).map_err(|source| ManifestError::Invalid { path: shown, source })
    }
}
