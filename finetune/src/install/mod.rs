//! Putting a tuned model where LM Studio finds it, listing what was put there, and taking it away again.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::hint::hinted;

/// Beside each file that was installed from here: what is listed and removed is only what has one.
const ORIGIN_FILE: &str = "agent-memory.json";

/// `<root>/<publisher>/<name>/`: LM Studio sees models at this depth only (lmstudio.ai/docs, "Import Models").
#[derive(Debug, Clone)]
pub struct Place {
    pub root: PathBuf,
    pub publisher: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub run: String,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installed {
    pub name: String,
    pub folder: PathBuf,
    pub origin: Origin,
}

/// LM Studio's folder of models of this user.
pub fn usual_folder() -> Result<PathBuf> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let home = home
        .ok_or_else(|| hinted("there is no home folder", "name LM Studio's folder of models with --lm-studio-dir"))?;
    Ok(home.join(".lmstudio").join("models"))
}

/// Copies a file to its place, whole or not at all, and gives where it lies.
pub fn install(file: &Path, place: &Place, origin: &Origin) -> Result<PathBuf> {
    for (what, name) in [("publisher", &place.publisher), ("name", &place.name)] {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
            bail!(hinted(format!("`{name}` cannot be the {what} of a model"), "a name without slashes is expected"));
        }
    }
    let folder = place.root.join(&place.publisher).join(&place.name);
    std::fs::create_dir_all(&folder).with_context(|| format!("creating `{}`", folder.display()))?;
    let file_name = file.file_name().context("the model's file has a name")?;
    let installed = folder.join(file_name);
    files::copy(file, &installed).with_context(|| format!("copying `{}` to `{}`", file.display(), folder.display()))?;
    let copied = files::sha256(&installed).with_context(|| format!("reading `{}`", installed.display()))?;
    if copied != origin.sha256 {
        std::fs::remove_file(&installed).with_context(|| format!("removing `{}`", installed.display()))?;
        bail!(hinted(
            format!("`{}` changed since it was verified", file.display()),
            "run the same command again: it makes the file anew",
        ));
    }
    let path = folder.join(ORIGIN_FILE);
    files::write(&path, &serde_json::to_vec_pretty(origin)?)
        .with_context(|| format!("writing `{}`", path.display()))?;
    Ok(installed)
}

/// What was installed from here, by name.
pub fn list(root: &Path) -> Result<Vec<Installed>> {
    let mut found = Vec::new();
    for publisher in folders(root)? {
        for folder in folders(&publisher)? {
            let path = folder.join(ORIGIN_FILE);
            if !path.exists() {
                continue;
            }
            let bytes = std::fs::read(&path).with_context(|| format!("reading `{}`", path.display()))?;
            let origin = serde_json::from_slice(&bytes).with_context(|| format!("reading `{}`", path.display()))?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(Installed { name, folder, origin });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Removes what was installed under a name; nothing else is ever touched.
pub fn remove(root: &Path, name: &str) -> Result<Installed> {
    let installed = list(root)?.into_iter().find(|installed| installed.name == name).ok_or_else(|| {
        hinted(
            format!("no model `{name}` was installed from here into `{}`", root.display()),
            "`cargo xtask train installed` lists those that were",
        )
    })?;
    std::fs::remove_dir_all(&installed.folder).with_context(|| format!("removing `{}`", installed.folder.display()))?;
    Ok(installed)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading `{}`", folder.display()))?;
    Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
}

/// How else the file can be used, by what it is used with.
pub fn ways(file: &Path) -> Vec<(&'static str, String)> {
    let path = file.display();
    vec![
        ("llama.cpp", format!("llama-server --model '{path}' --jinja")),
        ("Ollama", format!("printf 'FROM %s\\n' '{path}' > Modelfile && ollama create NAME -f Modelfile")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(root: &Path, name: &str) -> Place {
        Place { root: root.to_owned(), publisher: "agent-memory".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn installs_lists_and_removes_its_own_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tuned-q8_0.gguf");
        std::fs::write(&file, "abc").unwrap();
        let origin = Origin { run: "tuned".to_owned(), sha256: files::sha256(&file).unwrap() };
        let root = folder.path().join("models");
        let other = root.join("somebody").join("theirs");
        std::fs::create_dir_all(&other).unwrap();
        let installed = install(&file, &place(&root, "tuned"), &origin).unwrap();
        assert_eq!(installed, root.join("agent-memory").join("tuned").join("tuned-q8_0.gguf"));
        assert_eq!(list(&root).unwrap().iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["tuned"]);
        assert!(remove(&root, "theirs").is_err() && other.exists());
        remove(&root, "tuned").unwrap();
        assert!(list(&root).unwrap().is_empty() && !installed.exists());
    }

    #[test]
    fn does_not_install_what_changed_since_it_was_verified() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tuned.gguf");
        std::fs::write(&file, "abc").unwrap();
        let origin = Origin { run: "tuned".to_owned(), sha256: files::sha256(&file).unwrap() };
        std::fs::write(&file, "ab").unwrap();
        let root = folder.path().join("models");
        assert!(install(&file, &place(&root, "tuned"), &origin).is_err());
        assert!(list(&root).unwrap().is_empty());
        for name in ["", "../x", ".hidden", "a/b"] {
            assert!(install(&file, &place(&root, name), &origin).is_err(), "{name:?}");
        }
    }
}
