//! The dataset as it is trained on: whole, audited, and made for this base.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::run::Start;
use crate::dataset::render::Base;
use crate::dataset::row::Row;
use crate::dataset::{MANIFEST_FILE, Manifest, Split};
use crate::files;
use crate::hint::hinted;

pub(super) struct Checked {
    pub(super) manifest: Manifest,
    pub(super) manifest_sha256: String,
    pub(super) sealed_sha256: String,
    /// The name of its folder, as `v3`.
    pub(super) version: String,
}

impl Checked {
    pub(super) fn figures(&self, folder: &Path) -> Value {
        json!({
            "folder": folder,
            "family": self.manifest.family,
            "audit_passed": self.manifest.audit_passed,
            "consent": self.manifest.consent,
            "providers": self.manifest.providers,
            "splits": self.manifest.splits,
            "sealed_sha256": self.sealed_sha256,
        })
    }
}

/// Reads and hashes every file of the dataset that training and evaluation read.
pub(super) fn check(start: &Start<'_>, base: &Base) -> Result<Checked> {
    let folder = start.dataset;
    let shown = folder.display();
    let manifest = Manifest::read(folder)?;
    if !manifest.audit_passed && !start.dataset_is_named {
        bail!(hinted(
            format!("the dataset in `{shown}` failed its audit"),
            format!(
                "`{}` says why; make a better one with `cargo xtask train dataset`, or name this one with --dataset if you know \
                 what you do",
                folder.join("audit.md").display()
            ),
        ));
    }
    if manifest.family != base.family {
        bail!(hinted(
            format!(
                "the dataset in `{shown}` was made for {}, and the base is a {}",
                manifest.family.as_str(),
                base.family.as_str()
            ),
            "make one for this base: `cargo xtask train dataset --base FOLDER`",
        ));
    }
    for (what, made_with, have) in [
        ("tokenizer", &manifest.tokenizer_sha256, &base.tokenizer_sha256),
        ("chat template", &manifest.template_sha256, &base.template_sha256),
    ] {
        if made_with != have {
            bail!(hinted(
                format!(
                    "the dataset in `{shown}` was made with another {what} than the base has ({made_with}, and {have})"
                ),
                "make one for this base: `cargo xtask train dataset --base FOLDER`",
            ));
        }
    }
    let read = Split::ALL.into_iter().flat_map(|split| [crate::dataset::rendered(split), neutral(split)]);
    for name in read {
        let path = folder.join(&name);
        let expected = manifest.files.get(&name).with_context(|| format!("the manifest of `{shown}` lacks {name}"))?;
        let found = files::sha256(&path).with_context(|| format!("reading `{}`", path.display()))?;
        if found != expected.sha256 {
            bail!(hinted(
                format!("`{}` is not as it was when the dataset was made", path.display()),
                "make the dataset again with `cargo xtask train dataset`; what is edited by hand is not audited",
            ));
        }
    }
    let manifest_file = folder.join(MANIFEST_FILE);
    let manifest_sha256 =
        files::sha256(&manifest_file).with_context(|| format!("reading `{}`", manifest_file.display()))?;
    let version = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Checked { sealed_sha256: manifest.sealed_sha256.clone(), manifest, manifest_sha256, version })
}

fn neutral(split: Split) -> String {
    format!("{}.jsonl", split.as_str())
}

/// The rows of the sealed test set.
pub(super) fn test_rows(folder: &Path) -> Result<Vec<Row>> {
    let path = folder.join(neutral(Split::Test));
    let file = File::open(&path).with_context(|| format!("reading `{}`", path.display()))?;
    let row = |(number, line): (usize, std::io::Result<String>)| {
        let context = || format!("reading line {} of `{}`", number + 1, path.display());
        serde_json::from_str(&line.with_context(context)?).with_context(context)
    };
    BufReader::new(file).lines().enumerate().map(row).collect()
}
