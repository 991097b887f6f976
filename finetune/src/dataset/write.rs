//! The files of a dataset: neutral rows, rendered rows, the trainers' forms, what was left out, the audit and the manifest. Every
//! byte is hashed while it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::audit::Audit;
use super::build::BuildError;
use super::formats::{CONFIGURATIONS, FORMATS, Filling, Recipe};
use super::gather::DropNote;
use super::manifest::{FILE_NAME, FileFacts, Manifest};
use super::render::Sample;
use super::row::{Row, hex};
use super::split::Split;

/// What was left out, and why.
pub(super) const DROPPED_FILE: &str = "dropped.jsonl";

#[derive(Debug)]
pub(super) struct Writer {
    folder: PathBuf,
    files: BTreeMap<String, HashingFile>,
    /// What must be in no file, as it is and as JSON writes it.
    canaries: Vec<[String; 2]>,
    with_canaries: BTreeSet<String>,
}

impl Writer {
    /// Opens every file, so that a split without rows is an empty file and not a missing one.
    pub(super) fn create(folder: &Path, canaries: &[String]) -> Result<Self, BuildError> {
        let as_json = |text: &String| json!(text).to_string().trim_matches('"').to_owned();
        let canaries = canaries.iter().map(|text| [text.clone(), as_json(text)]).collect();
        let folder = folder.to_owned();
        let mut writer = Self { folder, files: BTreeMap::new(), canaries, with_canaries: BTreeSet::new() };
        for split in Split::ALL {
            writer.open(&neutral(split))?;
            writer.open(&rendered(split))?;
        }
        for format in FORMATS {
            writer.open(&format.path.replace("{split}", "train"))?;
            writer.open(&format.path.replace("{split}", format.validation))?;
        }
        Ok(writer)
    }

    pub(super) fn row(&mut self, row: &Row, split: Split, samples: &[Sample]) -> Result<(), BuildError> {
        self.line(&neutral(split), row)?;
        for sample in samples {
            let trained: Vec<_> = sample.trained.iter().map(|bytes| [bytes.start, bytes.end]).collect();
            let trained_tokens = sample.carries_loss.iter().filter(|carries| **carries).count();
            let line = json!({
                "row": row.id, "text": sample.text, "trained": trained, "tokens": sample.ids.len(),
                "trained_tokens": trained_tokens,
            });
            self.line(&rendered(split), &line)?;
        }
        if split == Split::Test {
            return Ok(());
        }
        for format in FORMATS {
            let name = if split == Split::Train { "train" } else { format.validation };
            let path = format.path.replace("{split}", name);
            for line in (format.lines)(row, samples) {
                self.line(&path, &line)?;
            }
        }
        Ok(())
    }

    pub(super) fn drops(&mut self, notes: &[DropNote]) -> Result<(), BuildError> {
        self.open(DROPPED_FILE)?;
        notes.iter().try_for_each(|note| self.line(DROPPED_FILE, note))
    }

    /// The files so far that hold what was planted.
    pub(super) fn files_with_canaries(&self) -> Vec<String> {
        self.with_canaries.iter().cloned().collect()
    }

    /// Writes what is about the rows, and the manifest last.
    pub(super) fn finish(
        mut self,
        mut manifest: Manifest,
        audit: &Audit,
        base_name: Option<&str>,
    ) -> Result<Manifest, BuildError> {
        for configuration in CONFIGURATIONS {
            let text = configuration.filled(&Filling {
                family: manifest.family,
                base: base_name,
                max_tokens: manifest.settings.max_tokens,
                recipe: &Recipe::default(),
                lines: self.files[configuration.data].lines,
                devices: 1,
                counts_all_devices: false,
            });
            self.text(configuration.path, &text)?;
        }
        self.text("audit.json", &(pretty(audit) + "\n"))?;
        self.text("audit.md", &audit.markdown())?;
        self.text("README.md", &super::card::card(&manifest, audit))?;
        for (path, file) in std::mem::take(&mut self.files) {
            let facts = file.finish().map_err(BuildError::writing(&self.folder.join(&path)))?;
            manifest.files.insert(path, facts);
        }
        manifest.sealed_sha256.clone_from(&manifest.files[&neutral(Split::Test)].sha256);
        let path = self.folder.join(FILE_NAME);
        fs::write(&path, pretty(&manifest) + "\n").map_err(BuildError::writing(&path))?;
        Ok(manifest)
    }

    fn open(&mut self, path: &str) -> Result<(), BuildError> {
        let whole = self.folder.join(path);
        let file = HashingFile::create(&whole).map_err(BuildError::writing(&whole))?;
        self.files.insert(path.to_owned(), file);
        Ok(())
    }

    fn line(&mut self, path: &str, value: &impl Serialize) -> Result<(), BuildError> {
        let line = serde_json::to_string(value).map_err(io::Error::from);
        let line = line.map_err(BuildError::writing(&self.folder.join(path)))?;
        self.append(path, &(line + "\n"))
    }

    fn text(&mut self, path: &str, text: &str) -> Result<(), BuildError> {
        self.open(path)?;
        self.append(path, text)
    }

    fn append(&mut self, path: &str, text: &str) -> Result<(), BuildError> {
        if self.canaries.iter().flatten().any(|canary| text.contains(canary.as_str())) {
            self.with_canaries.insert(path.to_owned());
        }
        let file = self.files.get_mut(path).expect("every file is opened before anything is written into it");
        file.text(text).map_err(BuildError::writing(&self.folder.join(path)))
    }
}

pub(super) fn neutral(split: Split) -> String {
    format!("{}.jsonl", split.as_str())
}

pub fn rendered(split: Split) -> String {
    format!("rendered/{}.jsonl", split.as_str())
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("names and numbers are JSON")
}

#[derive(Debug)]
struct HashingFile {
    out: BufWriter<File>,
    hasher: Sha256,
    bytes: u64,
    lines: u64,
}

impl HashingFile {
    fn create(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(Self { out: BufWriter::new(File::create(path)?), hasher: Sha256::new(), bytes: 0, lines: 0 })
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.hasher.update(text);
        self.bytes += text.len() as u64;
        self.lines += text.matches('\n').count() as u64;
        Ok(())
    }

    fn finish(self) -> io::Result<FileFacts> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(FileFacts { sha256: hex(&self.hasher.finalize()), bytes: self.bytes, lines: self.lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_which_files_hold_what_was_planted() {
        let folder = tempfile::tempdir().unwrap();
        let planted = ["the \"bird\"\nsings".to_owned(), "elsewhere".to_owned()];
        let mut writer = Writer::create(folder.path(), &planted).unwrap();
        writer.line("train.jsonl", &json!({ "text": "here the \"bird\"\nsings again" })).unwrap();
        writer.text("notes.md", "the \"bird\"\nsings").unwrap();
        writer.line("test.jsonl", &json!({ "text": "the bird is silent" })).unwrap();
        assert_eq!(writer.files_with_canaries(), ["notes.md", "train.jsonl"]);
    }

    #[test]
    fn hashes_what_it_writes() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = HashingFile::create(&folder.path().join("below/file")).unwrap();
        file.text("a\nb\n").unwrap();
        let facts = file.finish().unwrap();
        assert_eq!((facts.bytes, facts.lines), (4, 2));
        assert_eq!(facts.sha256, hex(&Sha256::digest("a\nb\n")));
    }
}
