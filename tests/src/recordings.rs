//! Hook payloads recorded from real clients, where the machine has them. Tests pass without.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::conversation::Event;
use crate::settings;

/// One recorded session: its events in the order in which they fired.
#[derive(Debug)]
pub struct Recording {
    pub name: String,
    pub events: Vec<Event>,
}

/// The recordings of that version of a client, `claude-code-2.1.332` say: each folder `hooks*` of its folder.
pub fn of(client: &str) -> Result<Vec<Recording>> {
    let Some(folder) = folder().map(|folder| folder.join(client)).filter(|folder| folder.is_dir()) else {
        return Ok(Vec::new());
    };
    let mut recordings = Vec::new();
    for path in sorted(&folder)? {
        let name = file_name(&path);
        if path.is_dir() && name.starts_with("hooks") {
            recordings.push(Recording { events: read(&path)?, name: format!("{client}/{name}") });
        }
    }
    Ok(recordings)
}

/// Named by the environment, else beside the checkout.
fn folder() -> Option<PathBuf> {
    settings::get(settings::RECORDINGS)
        .map(PathBuf::from)
        .or_else(|| Some(settings::checkout().parent()?.join("shared/data")))
}

/// Files are named `000-SessionStart.json`.
fn read(folder: &Path) -> Result<Vec<Event>> {
    let files = sorted(folder)?;
    files
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))?;
            let payload: Value =
                serde_json::from_str(&text).with_context(|| format!("parsing `{}`", path.display()))?;
            let name = payload["hook_event_name"].as_str().context("a recorded payload without an event's name")?;
            Ok(Event { name: name.to_owned(), payload })
        })
        .collect()
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
