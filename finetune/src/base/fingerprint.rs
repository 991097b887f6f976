//! What a base is, told by the hashes of its files: an adapter fits the base that it was trained on, and no other.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{ModelError, TOKENIZER_FILES, Weights};
use crate::dataset::row::hex;
use crate::files;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// SHA-256 over the names and hashes of `config.json` and the weights, in hexadecimal: another one means other numbers.
    pub sha256: String,
    /// The hash of every file that counts, the tokenizer's too.
    pub files: BTreeMap<String, String>,
}

impl Fingerprint {
    /// Reads every byte of the folder's weights.
    pub fn of(folder: &Path) -> Result<Self, ModelError> {
        let weights = Weights::open(folder)?;
        let named = weights.files().iter().filter_map(|path| path.file_name()?.to_str());
        let numbers: Vec<_> = named.chain(["config.json"]).collect();
        let mut hashes = BTreeMap::new();
        for name in numbers.iter().copied().chain(TOKENIZER_FILES) {
            let path = folder.join(name);
            if path.exists() {
                let hash = files::sha256(&path).map_err(|source| ModelError::Unreadable { path, source })?;
                hashes.insert(name.to_owned(), hash);
            }
        }
        let mut digest = Sha256::new();
        for (name, hash) in hashes.iter().filter(|(name, _)| numbers.contains(&name.as_str())) {
            digest.update(format!("{name} {hash}\n"));
        }
        Ok(Self { sha256: hex(&digest.finalize()), files: hashes })
    }
}
