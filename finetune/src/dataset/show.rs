//! A dataset as a person looks at it: its statistics, some rows, and where one row came from.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::audit::Audit;
use super::build::version_number;
use super::gather::DropNote;
use super::manifest::{Manifest, ManifestError};
use super::row::{Message, Row, draw};
use super::split::Split;
use super::write::{DROPPED_FILE, neutral};

#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    #[error("there is no dataset in `{0}`")]
    NoDataset(PathBuf),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("`{path}` cannot be read")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("line {line} of `{path}` is not as expected")]
    Invalid { path: PathBuf, line: usize, source: serde_json::Error },
    #[error("no row, session or prompt `{id}` is in `{folder}`, neither kept nor left out")]
    UnknownRow { id: String, folder: PathBuf },
}

/// The dataset of the highest number in a folder of versions.
pub fn latest(folder: &Path) -> Result<PathBuf, ShowError> {
    let entries = std::fs::read_dir(folder).map_err(|_| ShowError::NoDataset(folder.to_owned()))?;
    let versions = entries.filter_map(Result::ok).map(|entry| entry.path());
    let latest = versions.filter_map(|path| Some((version_number(&path)?, path))).max();
    latest.map(|(_, path)| path).ok_or_else(|| ShowError::NoDataset(folder.to_owned()))
}

/// The histograms of a dataset, and what was left out.
pub fn statistics(folder: &Path) -> Result<String, ShowError> {
    let manifest = Manifest::read(folder)?;
    let path = folder.join("audit.json");
    let bytes = std::fs::read(&path).map_err(|source| ShowError::Unreadable { path: path.clone(), source })?;
    let audit: Audit = serde_json::from_slice(&bytes).map_err(|source| ShowError::Invalid { path, line: 1, source })?;
    Ok(super::card::card(&manifest, &audit))
}

/// Some rows of the training set as a conversation reads, what is trained on marked. Which, the seed decides.
pub fn sample(folder: &Path, count: usize) -> Result<String, ShowError> {
    let seed = Manifest::read(folder)?.settings.seed;
    let mut rows = Vec::new();
    for_each(&folder.join(neutral(Split::Train)), |row: Row| rows.push(row))?;
    rows.sort_by_key(|row| draw(seed, &["sample", &row.id]));
    Ok(rows.iter().take(count).map(conversation).collect::<Vec<_>>().join("\n"))
}

/// Where a row came from and what happened to it; the id is a row's, a session's or a prompt's.
pub fn explain(folder: &Path, id: &str) -> Result<String, ShowError> {
    let mut out = String::new();
    for split in Split::ALL {
        for_each(&folder.join(neutral(split)), |row: Row| {
            if row.id == id || row.source.session == id || row.source.prompts.last().is_some_and(|prompt| prompt == id)
            {
                out.push_str(&origin(&row, split));
            }
        })?;
    }
    for_each(&folder.join(DROPPED_FILE), |note: DropNote| {
        let is_meant = note.row.as_deref() == Some(id) || note.session == id || note.prompt.as_deref() == Some(id);
        if is_meant {
            out.push_str(&left_out(&note));
        }
    })?;
    if out.is_empty() {
        return Err(ShowError::UnknownRow { id: id.to_owned(), folder: folder.to_owned() });
    }
    Ok(out)
}

fn origin(row: &Row, split: Split) -> String {
    let source = &row.source;
    let model = source.source_model.as_deref().unwrap_or("unknown");
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "row {} is in the {} set and ends in {}", row.id, split.as_str(), row.ending.as_str());
    let _ = writeln!(out, "  agent {}, project {}, session {}", source.agent, source.project, source.session);
    let _ = writeln!(out, "  source model {model}, licence class {}", source.licence.as_str());
    let _ = writeln!(out, "  prompts {}", source.prompts.join(", "));
    let mut calls = source.calls.iter();
    for (index, message) in row.messages.iter().enumerate() {
        for call in message.calls() {
            let id = calls.next().map_or("?", String::as_str);
            let loss = if row.trained.contains(&index) { "trained on" } else { "no loss" };
            let _ = writeln!(out, "  call {id}: {}, {loss}", call.function.name);
        }
    }
    out
}

fn left_out(note: &DropNote) -> String {
    let what = note.row.as_ref().map_or_else(|| "no row".to_owned(), |row| format!("row {row}"));
    let prompt = note.prompt.as_deref().unwrap_or("all");
    let like = note.like.as_ref().map(|row| format!(" ({row})")).unwrap_or_default();
    format!("{what} of session {}, prompt {prompt}: left out, because {}{like}\n", note.session, note.reason.why())
}

/// As a conversation reads; what is trained on stands between `»` and `«`.
pub(super) fn conversation(row: &Row) -> String {
    let mut out = format!("--- row {} ({}), {} tools offered\n", row.id, row.ending.as_str(), row.tools.len());
    for (index, message) in row.messages.iter().enumerate() {
        let (role, mut text) = match message {
            Message::System { content } => ("system", content.clone()),
            Message::User { content } => ("user", content.clone()),
            Message::Tool { name, content } => ("tool", format!("{name}: {content}")),
            Message::Assistant { content, .. } => ("assistant", content.clone()),
        };
        for call in message.calls() {
            let arguments = serde_json::Value::Object(call.function.arguments.clone());
            let _ = write!(text, "{}({arguments})", call.function.name);
        }
        if row.trained.contains(&index) {
            text = format!("»{text}«");
        }
        let _ = writeln!(out, "{role:>9}  {}", text.replace('\n', "\n           "));
    }
    out
}

fn for_each<T: serde::de::DeserializeOwned>(path: &Path, mut see: impl FnMut(T)) -> Result<(), ShowError> {
    let unreadable = |source| ShowError::Unreadable { path: path.to_owned(), source };
    let lines = BufReader::new(File::open(path).map_err(unreadable)?).lines();
    for (number, line) in lines.enumerate() {
        let line = line.map_err(unreadable)?;
        let value = serde_json::from_str(&line).map_err(|source| ShowError::Invalid {
            path: path.to_owned(),
            line: number + 1,
            source,
        })?;
        see(value);
    }
    Ok(())
}
