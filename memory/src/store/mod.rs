//! The journal in Postgres: all SQL for the `mem_` tables but the queue's (`queue`) and the search itself (`recall`).
//!
//! Functions take a connection and do one thing; whoever calls them owns the transaction. `journal` is the way in for
//! events, `observations` for notes, `documents` for the search index.

mod connect;
mod documents;
mod journal;
mod observations;
mod projects;
mod prompts;
mod sessions;
mod stats;
mod tool_calls;
mod training;

pub use connect::{ConnectError, Db, connect, connect_lazily, migrate, schema_version};
pub(crate) use documents::padded;
pub use documents::{DocumentText, EMBED_DOCUMENT, STORED_DIMENSIONS, document_texts, embedding_model, set_embeddings};
pub use journal::{ProjectCache, Recorded, record};
pub use observations::{NewObservation, SavedObservation, Source, save as save_observation};
pub use projects::find_by_name as find_project;
pub use stats::{Stats, stats};
pub use training::{TrainableCount, count_trainable};

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
    #[error("`{field}` is empty")]
    Empty { field: &'static str },
}

impl StoreError {
    /// Whether the same call may succeed later: the database is away, restarting, or two transactions met.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) | Self::Queue(QueueError::Database(error)) => is_transient(error),
            Self::UnknownProject { .. } | Self::Empty { .. } => false,
        }
    }
}

fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Classes 08 connection, 40 rollback (deadlock, serialisation), 53 resources, 57 shutdown, 58 system, 55 lock.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["08", "40", "53", "55", "57", "58", "28", "3D"].iter().any(|class| code.starts_with(class))
        }),
        _ => false,
    }
}
