//! Which files make a model: a folder with `model.onnx` and the tokenizer's four files, beside the ONNX runtime's library.

use std::path::{Path, PathBuf};

use super::EmbedError;

/// The folder of the ONNX runtime's shared library, beside the models.
const RUNTIME_FOLDER: &str = "onnxruntime";

/// A model that is there to be loaded. Its name is its folder's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelFolder {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) runtime_library: PathBuf,
}

impl ModelFolder {
    /// Finds the one model in a models folder. Several are an error: which of them made the vectors must never be a guess.
    pub(super) fn find(models: &Path) -> Result<Self, EmbedError> {
        let missing = |what| EmbedError::Missing { what, folder: models.to_owned() };
        let entries = std::fs::read_dir(models).map_err(|_| missing("a folder of embedding models"))?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.join("model.onnx").is_file())
            .collect();
        found.sort();
        let folder = match found.len() {
            0 => return Err(missing("an embedding model (a folder with model.onnx and tokenizer.json)")),
            1 => found.remove(0),
            _ => return Err(EmbedError::SeveralModels { folder: models.to_owned(), found: names(&found) }),
        };
        let runtime_library = std::fs::read_dir(models.join(RUNTIME_FOLDER))
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| is_shared_library(path))
            .ok_or_else(|| missing("the ONNX runtime's shared library (onnxruntime/libonnxruntime.so)"))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, folder, runtime_library })
    }

    pub(super) fn read(&self, file: &str) -> Result<Vec<u8>, EmbedError> {
        let path = self.folder.join(file);
        std::fs::read(&path).map_err(|source| EmbedError::Read { path, source: source.into() })
    }
}

fn is_shared_library(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
        (name.starts_with("libonnxruntime") && (name.contains(".so") || name.ends_with(".dylib")))
            || name == "onnxruntime.dll"
    })
}

fn names(folders: &[PathBuf]) -> String {
    let names: Vec<_> = folders.iter().filter_map(|folder| folder.file_name()?.to_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(folders: &[&str], with_runtime: Option<&str>) -> tempfile::TempDir {
        let models = tempfile::tempdir().unwrap();
        for folder in folders {
            std::fs::create_dir(models.path().join(folder)).unwrap();
            std::fs::write(models.path().join(folder).join("model.onnx"), "").unwrap();
        }
        if let Some(library) = with_runtime {
            std::fs::create_dir(models.path().join("onnxruntime")).unwrap();
            std::fs::write(models.path().join("onnxruntime").join(library), "").unwrap();
        }
        models
    }

    #[test]
    fn finds_the_one_model_and_the_library_of_any_platform() {
        for library in ["libonnxruntime.so", "libonnxruntime.1.32.0.dylib", "onnxruntime.dll"] {
            let models = models(&["mini"], Some(library));
            assert_eq!(ModelFolder::find(models.path()).unwrap().name, "mini");
        }
    }

    #[test]
    fn says_what_is_missing() {
        for (folders, library, expected) in
            [(&["mini"][..], None, "ONNX runtime"), (&[][..], Some("libonnxruntime.so"), "an embedding model")]
        {
            let error = ModelFolder::find(models(folders, library).path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn refuses_to_guess_between_two_models() {
        let models = models(&["a", "b"], Some("libonnxruntime.so"));
        assert!(matches!(ModelFolder::find(models.path()), Err(EmbedError::SeveralModels { .. })));
    }
}
