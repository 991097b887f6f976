//! The checkout this program works on: found from the working folder upwards, because the installed copy runs without.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::Cmd;

use crate::output::HintExt;

/// What cargo tells the programs that it runs about their own package. Build scripts ask for it (ring's does): to a cargo that such a
/// program starts it looks changed, and half of all dependencies would be compiled anew each time.
pub const SET_BY_CARGO: [&str; 6] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// A cargo that builds as one does which a person starts.
pub(crate) fn as_a_person(cargo: Cmd<'_>) -> Cmd<'_> {
    SET_BY_CARGO.iter().fold(cargo, Cmd::env_remove)
}

/// The root folder of a checkout of this project.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    pub fn locate() -> Result<Self> {
        let folder = std::env::current_dir().context("the working folder is gone")?;
        Self::locate_from(&folder)
            .with_context(|| format!("`{}` lies in no checkout of agent-memory", folder.display()))
            .hint("run `cargo xtask ...` inside the checkout")
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn locate_from(folder: &Path) -> Option<Self> {
        let is_root = |folder: &&Path| {
            ["Cargo.lock", "xtask/Cargo.toml", "migrations"].iter().all(|name| folder.join(name).exists())
        };
        folder.ancestors().find(is_root).map(|root| Self { root: root.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_root_from_a_folder_deep_inside() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = Repository::locate_from(&here.join("src/commands")).unwrap();
        assert_eq!(found.root(), here.parent().unwrap());
    }

    #[test]
    fn finds_nothing_in_a_foreign_folder() {
        assert!(Repository::locate_from(tempfile::tempdir().unwrap().path()).is_none());
    }
}
