//! Finding what helps: rank by words and by meaning, fuse both, give back a short index; then what was around a hit, and
//! the whole of it.
//!
//! A search in the order of its steps: `plan` chooses which words are looked up, `lookup` asks the index, `bm25` scores words,
//! `nearby` ranks documents with what stood around them, `support` drops what nothing speaks for, `fuse` makes one list of all, `arrange` puts the
//! hits in their order.
//!
//! Questions about code stand on it: `file_history` who touched a file, `fixes` what worked after a failure, `how` which commands
//! worked for a goal. `shell`, `commands` and `touches` read what calls ran and which files they named, `calls` reads the calls themselves.
//! `unasked` tells an agent what it did not ask for, where `relevance` says that it helps.

mod arrange;
mod bm25;
mod calls;
mod details;
mod file_history;
mod fixes;
mod fuse;
mod how;
mod lookup;
mod nearby;
mod plan;
pub mod relevance;
mod search;
mod support;
mod timeline;
mod touches;
pub mod unasked;

use chrono::{DateTime, Utc};

pub use calls::Call;
pub use details::{Details, details};
pub use file_history::{FileHistoryRequest, FileTouch, file_history};
pub use fixes::{Fix, Step, find_fix};
pub use fuse::{Fused, Rank, RankedList, fuse};
pub use how::{WorkingCommand, how};
pub use search::{Answer, CountedTerm, Course, Hit, MAX_LIMIT, SearchRequest, search};
pub use support::Support;
pub use timeline::{Anchor, Around, TimelineRequest, timeline};
pub use touches::Touch;

use crate::access::Projects;
use crate::analyze::{self, Query};
use crate::ids::{DocumentId, DocumentKind};
use crate::store::StoreError;

/// What a search may return.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub projects: Projects,
    /// Any of these; empty means every kind.
    pub kinds: Vec<DocumentKind>,
    pub from: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
    /// Of the sessions of this agent, as `mem_sessions` names it.
    pub agent: Option<String>,
    /// Of the sessions that worked on this branch.
    pub branch: Option<String>,
    /// What names this file: its path or the last parts of it.
    pub file: Option<String>,
}

impl Filter {
    /// What the query must match besides, for the file.
    fn narrow(&self, query: Query) -> Result<Query, RecallError> {
        let Some(file) = &self.file else { return Ok(query) };
        let named = analyze::in_a_row(file).ok_or_else(|| RecallError::NoFile(file.clone()))?;
        let condition = query.condition.into_iter().chain([named]).collect::<Vec<_>>().join(" & ");
        Ok(Query { condition: Some(condition), ..query })
    }
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
    #[error("`{0}` names no file that could be looked for")]
    NoFile(String),
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
