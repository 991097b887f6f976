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

/// The recorded transcripts of every client, wherever below the folder they lie.
pub fn transcripts() -> Result<Vec<PathBuf>> {
    let Some(folder) = folder().filter(|folder| folder.is_dir()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for path in sorted(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The transcript that a client kept of a recorded session, and those of its subagents.
pub fn transcripts_of(recording: &Recording) -> Result<Vec<PathBuf>> {
    let suffix = recording.name.split_once("/hooks").map_or("", |(_, suffix)| suffix);
    let wanted = format!("transcript{suffix}.jsonl");
    let has_subagents = suffix.contains("subagent");
    let mut found = transcripts()?;
    found.retain(|path| {
        let of_client = path.components().any(|part| part.as_os_str() == "claude-code-2.1.332");
        let of_subagent = path.parent().is_some_and(|parent| parent.ends_with("subagents"));
        of_client && (file_name(path) == wanted || has_subagents && of_subagent)
    });
    Ok(found)
}
