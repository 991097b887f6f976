//! What a build sees: the files of a build context, as the tar that the engine takes. Files of ours travel inside this
//! program; the source tree is cut down by the repository's .dockerignore, which the engine's own clients obey too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::runtime::docker::mapping::digest;

/// Files by their path in the context, with whether they are programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuildContext {
    files: BTreeMap<String, (Vec<u8>, Kind)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Program,
}

impl BuildContext {
    pub(crate) fn with(mut self, path: &str, content: impl Into<Vec<u8>>, kind: Kind) -> Self {
        self.files.insert(path.to_owned(), (content.into(), kind));
        self
    }

    /// The parts of a checkout that .dockerignore lets through.
    pub(crate) fn of_repository(root: &Path) -> Result<Self> {
        let path = root.join(".dockerignore");
        let rules = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let mut context = Self::default();
        for name in allowed(&rules)? {
            context.add(root, name)?;
        }
        Ok(context)
    }

    /// The same for the same content, whatever the files' times.
    pub(crate) fn digest(&self) -> String {
        digest(self.files.iter().flat_map(|(path, (content, _))| [path.as_bytes(), content.as_slice()]))
    }

    pub(crate) fn into_tar(self) -> Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, (content, kind)) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(match kind {
                Kind::Text => 0o644,
                Kind::Program => 0o755,
            });
            archive.append_data(&mut header, path, content.as_slice()).context("cannot pack the build context")?;
        }
        archive.into_inner().context("cannot pack the build context")
    }

    fn add(&mut self, root: &Path, name: &str) -> Result<()> {
        let path = root.join(name);
        let reading = || format!("cannot read `{}`", path.display());
        // What .dockerignore names need not be there: `.sqlx`, say, in a tree that was never prepared.
        let Ok(metadata) = fs::metadata(&path) else { return Ok(()) };
        if metadata.is_dir() {
            for entry in fs::read_dir(&path).with_context(reading)? {
                let entry = entry.with_context(reading)?;
                self.add(root, &format!("{name}/{}", entry.file_name().to_string_lossy()))?;
            }
        } else {
            self.files.insert(name.to_owned(), (fs::read(&path).with_context(reading)?, Kind::Text));
        }
        Ok(())
    }
}

/// The names after `!`. The file must begin by shutting everything out: only then are these names all there is.
fn allowed(rules: &str) -> Result<Vec<&str>> {
    let mut lines = rules.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    anyhow::ensure!(lines.next() == Some("*"), ".dockerignore must begin with `*`");
    lines
        .map(|line| {
            line.strip_prefix('!').map(|name| name.trim_matches('/')).with_context(|| {
                format!(".dockerignore: `{line}`: after `*` only lines like `!name` are understood here")
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_dockerignore_lets_through_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".dockerignore", "server/src/main.rs", "target/debug/big", "secret"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "*\n# why\n!server\n!absent\n").unwrap();
        }
        let context = BuildContext::of_repository(folder.path()).unwrap();
        assert_eq!(context.files.keys().collect::<Vec<_>>(), ["server/src/main.rs"]);
    }

    #[test]
    fn refuses_rules_that_it_would_read_otherwise_than_docker() {
        assert!(allowed("target\n").is_err());
        assert!(allowed("*\n!server\nserver/tests\n").is_err());
    }

    #[test]
    fn our_own_rules_let_the_workspace_through() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let context = BuildContext::of_repository(root).unwrap();
        for name in ["Cargo.toml", "Cargo.lock", "server/src/main.rs", "xtask/Cargo.toml", "compose/compose.yaml"] {
            assert!(context.files.contains_key(name), "{name} is missing");
        }
        assert!(!context.files.keys().any(|name| name.starts_with("target") || name.starts_with(".git/")));
    }

    #[test]
    fn packs_a_tar_with_content_and_mode() {
        let context = BuildContext::default().with("a", "text", Kind::Text).with("b", "program", Kind::Program);
        let digest = context.digest();
        assert_ne!(context.clone().with("a", "other", Kind::Text).digest(), digest);
        let tar = context.into_tar().unwrap();
        let mut archive = tar::Archive::new(tar.as_slice());
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap())
            })
            .collect();
        assert_eq!(entries, [("a".to_owned(), 0o644), ("b".to_owned(), 0o755)]);
    }
}
