//! The journal in Postgres: all SQL for the `mem_` tables but the queue's (`queue`) and the search itself (`recall`).
//!
//! Functions take a connection and do one thing; whoever calls them owns the transaction. `journal` is the way in for
//! events, `observations` for notes, `documents` for the search index.

pub mod audit;
mod backfill;
mod backups;
#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "import")]
mod claude_mem;
mod connect;
mod databases;
mod diagnosis;
mod digests;
mod documents;
mod forget;
mod imports;
mod injections;
mod journal;
pub mod leaving;
mod lesson_events;
mod lesson_mining;
mod lessons;
mod notices;
mod observations;
mod outputs;
mod people;
mod pooler;
mod project_aliases;
mod project_choices;
mod project_list;
mod project_merges;
mod project_names;
mod project_sharing;
mod projects;
mod prompts;
mod rebuild;
mod reembed;
pub mod retention;
mod search_upkeep;
mod session_events;
mod sessions;
mod snapshot;
mod stats;
pub mod tokens;
mod tool_call_columns;
mod tool_calls;
mod training;

pub use backfill::{BackfillRun, RolledBack, RunEnd, finish_run, roll_back, runs as backfill_runs, start_run};
pub use backups::{BackupNews, backup_news, note_backup, note_schedule};
#[cfg(feature = "import")]
pub use claude_mem::{ClaudeMem, ClaudeMemError};
pub use connect::{
    ConnectError, Db, DbConnection, Way, connect, connect_lazily, connect_to, known_schema_version, migrate,
    schema_version,
};
pub use databases::{Databases, foreign_tables, marks_columns};
pub use diagnosis::{AgentLinkage, ModelShare, agents, database_bytes, models};
pub use digests::{DIGEST_SESSION, keep_digest, session_facts};
pub(crate) use digests::{call_facts, enqueue_digest};
pub(crate) use documents::padded;
pub use documents::{
    DocumentText, EMBED_DOCUMENT, Embedded, STORED_DIMENSIONS, document_texts, embedding_model, revisions,
    set_embeddings,
};
pub use forget::{forget, forgettable};
pub use imports::{ImportedNote, NoteKind, import_note};
pub use injections::{InjectionCounts, Occasion, Told, count_injection, injection_counts};
pub(crate) use injections::{Telling, claim as claim_tellings};
pub use journal::{ProjectCache, READ_TRANSCRIPT, Recorded, commit, record};
pub use lesson_events::{
    Firing, LessonStats, Whereabouts, fire as fire_lesson, inform_at_start, stats as lesson_stats, whereabouts,
};
pub(crate) use lesson_events::{keep_settled, unsettled as unsettled_lessons};
pub use lesson_mining::{LEARN_LESSONS, propose_lessons};
pub(crate) use lesson_mining::{enqueue_learning, enqueue_mining};
pub use lessons::{
    LessonChange, LessonError, LessonFilter, add as add_lesson, change as change_lesson, get as lesson,
    list as lessons, search as search_lessons,
};
pub(crate) use notices::JOBS;
pub use notices::{LESSONS, Listener, Notices};
pub use observations::{
    ChangedObservation, NewObservation, SavedObservation, Source, save as save_observation,
    supersede as supersede_observation,
};
pub use people::{PersonOverview, people};
pub use pooler::check_pooler;
pub(crate) use pooler::reading;
pub use project_choices::{SplitBy, SplitProject, alias_project, split_project};
pub use project_list::{ProjectMerge, ProjectOverview, list_project_merges, list_projects};
pub use project_merges::{MergedProject, UndoneMerge, merge_projects, undo_merge};
pub use project_names::{find_by_name as find_project, visible as visible_projects};
pub use project_sharing::{Sharing, share_project, unshare_project};
pub(crate) use prompts::QUEUED;
pub use rebuild::{Rebuilt, count_documents, rebuild, remove_orphans};
pub use reembed::{Walk, count_without_vector, enqueue_of_other_models, enqueue_without_vector};
pub use search_upkeep::{count_lexemes, reindex};
pub use snapshot::{DatabaseBytes, Snapshot, TableSum, table_sums};
pub use stats::{Stats, stats};
pub use training::{
    TrainableCount, TrainingCall, TrainingSession, TrainingTurn, count_trainable, training_sessions, training_turns,
};

use crate::ids::DocumentId;
use crate::queue::QueueError;

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database did not do what was asked")]
    Database(#[from] sqlx::Error),
    #[error("a job could not be enqueued")]
    Queue(#[from] QueueError),
    #[error("no project is called `{name}`; known are {known}")]
    UnknownProject { name: String, known: String },
    #[error("several projects are called `{name}`: {known}")]
    AmbiguousProject { name: String, known: String },
    #[error("`{field}` is empty")]
    Empty { field: &'static str },
    #[error("there is no note `{0}`")]
    UnknownNote(DocumentId),
    #[error("`{0}` is a lesson, and says what the lesson says")]
    IsLesson(DocumentId),
    #[error("`{id}` was superseded by `{by}`")]
    Superseded { id: DocumentId, by: DocumentId },
}

/// Why projects could not be changed as a person wished.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`{0}` is the same project by both names")]
    SameProject(String),
    #[error("there is no merge {0} that could be undone")]
    UnknownMerge(i64),
    #[error("`{what}` is none of the places by which `{project}` is known; those are {known}")]
    UnknownAlias { what: String, project: String, known: String },
    #[error("`{key}` is what `{project}` is known by first; split the others off instead")]
    OwnKey { key: String, project: String },
    #[error("`{key}` belongs to the project `{project}`")]
    AliasTaken { key: String, project: String },
    #[error("`{from}` and `{into}` are not the same one's, and `{into}` is not shared")]
    OthersProject { from: String, into: String },
    #[error("`{own}` cannot be shared: `{taken}` is another project already")]
    SharedKeyTaken { own: String, taken: String },
    #[error("others' projects were merged into `{project}`: {merges}")]
    HoldsOthers { project: String, merges: String },
    #[error("`{0}` holds what was done nowhere in particular, and is not shared")]
    Unfiled(String),
}

impl From<sqlx::Error> for ProjectError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl StoreError {
    /// Whether the same call may succeed later: the database is away, read-only, full, or two transactions met.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) | Self::Queue(QueueError::Database(error)) => is_transient(error),
            Self::UnknownProject { .. }
            | Self::AmbiguousProject { .. }
            | Self::Empty { .. }
            | Self::UnknownNote(_)
            | Self::IsLesson(_)
            | Self::Superseded { .. } => false,
        }
    }

    /// Whether the role may not do what was asked.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Database(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42501"))
    }

    /// Whether two transactions stood in each other's way: the same one succeeds when it is tried again at once.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error))
            | Self::Queue(QueueError::Database(sqlx::Error::Database(error))) => {
                error.code().is_some_and(|code| code.starts_with("40"))
            }
            _ => false,
        }
    }
}

/// Only what is about the values that were sent stays wrong: classes 22 data, 23 constraint, 54 limits, and values that
/// cannot be encoded. Everything else is about the database, and is mended there.
fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => {
            !error.code().is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.starts_with(class)))
        }
        sqlx::Error::Encode(_) | sqlx::Error::RowNotFound => false,
        _ => true,
    }
}
