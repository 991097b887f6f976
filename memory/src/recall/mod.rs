//! Finding what helps: rank by words and by meaning, fuse both, give back a short index; then what was around a hit, and
//! the whole of it.
//!
//! A search in the order of its steps: `plan` chooses which words are looked up, `lookup` asks the index, `bm25` scores words,
//! `nearby` ranks documents with what stood around them, `fuse` makes one list of all. `unasked` tells an agent what it did not ask for,
//! where `relevance` says that it helps.

mod bm25;
mod details;
mod fuse;
mod lookup;
mod nearby;
mod plan;
pub mod relevance;
mod search;
mod timeline;
pub mod unasked;

use chrono::{DateTime, Utc};

pub use details::{Details, details};
pub use fuse::{Fused, RankedList, fuse};
pub use search::{Hit, MAX_LIMIT, SearchRequest, rankings, search};
pub use timeline::{Anchor, TimelineRequest, timeline};

use crate::ids::{DocumentId, DocumentKind, ProjectId};
use crate::store::StoreError;

/// What a search may return.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Any of these; empty means every project.
    pub projects: Vec<ProjectId>,
    /// Any of these; empty means every kind.
    pub kinds: Vec<DocumentKind>,
    pub from: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
}

/// One line of an index or a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub id: DocumentId,
    pub occurred_at: DateTime<Utc>,
    /// The project's name; a note may have none.
    pub project: Option<String>,
    pub headline: String,
    /// Whether a call failed; `None` for what cannot fail.
    pub failed: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecallError {
    #[error("the query is empty")]
    EmptyQuery,
    #[error("no document `{0}`")]
    UnknownDocument(DocumentId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for RecallError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}
