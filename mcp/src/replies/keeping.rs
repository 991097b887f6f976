//! What became of notes that were saved or said otherwise, and of what was to be forgotten.

use memory::recall::Line;
use memory::store::SavedObservation;
use schemars::JsonSchema;
use serde::Serialize;

use super::{FRAME, IndexLine};

/// A note that was saved.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SavedReply {
    /// What `get_observations` takes.
    id: String,
    title: String,
}

/// A note that was saved in place of another.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UpdatedReply {
    /// The note as it is now.
    id: String,
    title: String,
    /// The note that it supersedes: `search` finds it no more, `get_observations` still gives it.
    supersedes: String,
}

/// What would be removed, or what was.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ForgetReply {
    /// How to take what follows.
    about: &'static str,
    /// Whether it was removed.
    removed: bool,
    documents: Vec<IndexLine>,
    /// What to do next.
    notes: Vec<String>,
}

impl SavedReply {
    pub(crate) fn of(saved: SavedObservation) -> Self {
        Self { id: saved.id.to_string(), title: saved.title }
    }
}

impl UpdatedReply {
    pub(crate) fn of(saved: SavedObservation, row: i64) -> Self {
        Self { id: saved.id.to_string(), title: saved.title, supersedes: format!("note-{row}") }
    }
}

impl ForgetReply {
    /// What removing those ids would remove.
    pub(crate) fn shown(lines: Vec<Line>) -> Self {
        let next = "Nothing was removed. With the user's consent, call `forget` again with these ids and `dry_run` false: that cannot be \
                    undone.";
        Self::of(lines, false, vec![next.to_owned()])
    }

    /// What a search found.
    pub(crate) fn found(lines: Vec<Line>, degraded: Option<String>) -> Self {
        let next = if lines.is_empty() {
            "Nothing matched, and nothing was removed: try other words."
        } else {
            "Nothing was removed. Choose with the user which of these are meant, and call `forget` with their ids."
        };
        Self::of(lines, false, degraded.into_iter().chain([next.to_owned()]).collect())
    }

    pub(crate) fn removed(lines: Vec<Line>) -> Self {
        let next = "Removed for good, and not recorded again. The agent's own transcript files are not changed, nor are records of \
                    others that repeat the text: search for it to be sure.";
        Self::of(lines, true, vec![next.to_owned()])
    }

    fn of(lines: Vec<Line>, removed: bool, notes: Vec<String>) -> Self {
        Self { about: FRAME, removed, documents: lines.into_iter().map(IndexLine::of).collect(), notes }
    }
}
