//! What a stage leaves behind when it is done: what it was made of, what it made, and its figures. A stage whose record fits is not
//! run again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stage;
use crate::files;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub stage: Stage,
    /// The version of the program.
    pub program: String,
    /// The hash, or the value, of everything that decides about the outputs.
    pub inputs: BTreeMap<String, String>,
    pub outputs: BTreeMap<PathBuf, Made>,
    pub figures: Value,
    pub seconds: f64,
    pub finished_at: DateTime<Utc>,
}

/// A file as it was when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub bytes: u64,
    pub sha256: String,
}

/// What a stage's work gives for its record.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) outputs: Vec<PathBuf>,
    pub(super) figures: Value,
}

impl Record {
    pub(super) fn path(folder: &Path, stage: Stage) -> PathBuf {
        folder.join(format!("{}.json", stage.as_str()))
    }

    /// The record of a stage, if there is one that can be read.
    pub fn read(folder: &Path, stage: Stage) -> Option<Self> {
        let bytes = std::fs::read(Self::path(folder, stage)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Whether nothing it was made of has changed, and all that it made is still there. Contents are compared by their length here;
    /// `verify` compares hashes.
    pub(super) fn fits(&self, inputs: &BTreeMap<String, String>) -> bool {
        let is_there = |(path, made): (&PathBuf, &Made)| {
            std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == made.bytes)
        };
        self.program == env!("CARGO_PKG_VERSION") && self.inputs == *inputs && self.outputs.iter().all(is_there)
    }

    pub(super) fn write(
        folder: &Path,
        stage: Stage,
        inputs: BTreeMap<String, String>,
        done: Done,
        seconds: f64,
    ) -> io::Result<Self> {
        let mut outputs = BTreeMap::new();
        for path in done.outputs {
            let made = Made { bytes: std::fs::metadata(&path)?.len(), sha256: files::sha256(&path)? };
            outputs.insert(path, made);
        }
        let record = Self {
            stage,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            inputs,
            outputs,
            figures: done.figures,
            seconds,
            finished_at: Utc::now(),
        };
        std::fs::create_dir_all(folder)?;
        files::write(&Self::path(folder, stage), &serde_json::to_vec_pretty(&record)?)?;
        Ok(record)
    }

    /// The hash of an output, by the end of its path.
    pub fn output(&self, file_name: &str) -> Option<(&Path, &Made)> {
        let found = self.outputs.iter().find(|(path, _)| path.file_name().is_some_and(|name| name == file_name));
        found.map(|(path, made)| (path.as_path(), made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_until_an_input_or_an_output_changes() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made");
        std::fs::write(&made, "abc").unwrap();
        let inputs = BTreeMap::from([("base".to_owned(), "1".to_owned())]);
        let done = Done { outputs: vec![made.clone()], figures: Value::Null };
        Record::write(folder.path(), Stage::Merge, inputs.clone(), done, 1.0).unwrap();
        let record = Record::read(folder.path(), Stage::Merge).unwrap();
        assert!(record.fits(&inputs));
        assert!(!record.fits(&BTreeMap::from([("base".to_owned(), "2".to_owned())])));
        std::fs::write(&made, "ab").unwrap();
        assert!(!record.fits(&inputs), "an output was cut short");
        std::fs::remove_file(&made).unwrap();
        assert!(!record.fits(&inputs), "an output is gone");
        assert!(Record::read(folder.path(), Stage::Gguf).is_none());
    }
}
