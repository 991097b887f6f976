//! Rules of the house that no compiler checks: how long files are, who depends on whom, what is documented, and that
//! applied migrations stay as they were.

#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod dependencies;
mod documentation;
mod migrations;
mod sources;
mod twins;

use std::path::{Path, PathBuf};

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace")
}

/// The rooms that hold Rust code.
const ROOMS: [&str; 7] = ["finetune", "hooks", "mcp", "memory", "server", "tests", "xtask"];

/// Every file below a folder with one of these endings.
fn files_below(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn rust_files() -> Vec<PathBuf> {
    ROOMS.iter().flat_map(|room| files_below(&root().join(room), &["rs"])).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A path as a person would name it.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
