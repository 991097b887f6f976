//! The one way into the journal: events queue up here, and what has come in while one transaction commits goes into the
//! next. So concurrent requests share commits. Sessions are spread over a few such loops; one session stays with one of them, and
//! so do its events in their order.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use memory::event::Event;
use memory::project::ProjectPolicy;
use memory::store::{Db, DbConnection, ProjectCache, Recorded, StoreError, commit};
use tokio::sync::{mpsc, oneshot};

use crate::storage::Storage;

/// While one loop waits for its commit, the other can use the database: with two, that is never idle under load. More only made
/// the batches smaller.
const LOOPS: usize = 2;
/// Events in one transaction, at most: twice as many as parallel sessions send at once.
const MAX_BATCH: usize = 128;
/// Events that wait for one loop; when there are more, requests wait to be taken in.
const MAX_WAITING: usize = 512;
/// How often a transaction that stood in another's way is tried again at once.
const MAX_CONFLICTS: u32 = 3;
/// A database that takes longer than this for a batch counts as away.
const DEADLINE: Duration = Duration::from_secs(10);

/// A handle to the write loops. They end when the last handle is gone.
#[derive(Clone)]
pub(crate) struct Writer {
    storage: Storage,
    loops: [mpsc::Sender<Pending>; LOOPS],
}

/// Why an event is not in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// The same event may be stored later.
    Away,
    /// The database refused this very event.
    Refused(String),
}

struct Pending {
    event: Event,
    reply: oneshot::Sender<Result<Recorded, WriteError>>,
}

impl Writer {
    pub(crate) fn new(
        db: &Db,
        projects: &ProjectPolicy,
        storage: Storage,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let channels: [_; LOOPS] = std::array::from_fn(|_| mpsc::channel(MAX_WAITING));
        let loops = channels.each_ref().map(|(events, _)| events.clone());
        let write = |(_, waiting)| write(db.clone(), ProjectCache::new(projects.clone()), waiting);
        (Self { storage, loops }, join_all(channels.map(write)).map(drop))
    }

    /// Returns after the event's commit. The event is stored even if the caller stops waiting.
    pub(crate) async fn write(&self, event: Event) -> Result<Recorded, WriteError> {
        self.enqueue(event).await?.committed().await
    }

    /// Returns when the event has its place in the order of events; its commit is still to come.
    pub(crate) async fn enqueue(&self, mut event: Event) -> Result<Enqueued, WriteError> {
        self.storage.fit(&mut event);
        let mut hash = DefaultHasher::new();
        (event.agent, &event.session).hash(&mut hash);
        let turn = hash.finish() as usize % LOOPS;
        let (reply, answer) = oneshot::channel();
        self.loops[turn].send(Pending { event, reply }).await.map_err(|_| WriteError::Away)?;
        Ok(Enqueued { answer })
    }
}

/// An event on its way into the journal.
pub(crate) struct Enqueued {
    answer: oneshot::Receiver<Result<Recorded, WriteError>>,
}

impl Enqueued {
    pub(crate) async fn committed(self) -> Result<Recorded, WriteError> {
        self.answer.await.unwrap_or(Err(WriteError::Away))
    }
}

/// A loop's own connection. It is kept between transactions: taking one out of the pool and giving it back each asks the database
/// whether it is still there, which for a single event is a fourth of all its round trips.
struct Line {
    db: Db,
    kept: Option<DbConnection>,
}

impl Line {
    /// Commits events. A connection on which something failed is not kept.
    async fn commit(&mut self, projects: &mut ProjectCache, events: &[Event]) -> Result<Vec<Recorded>, StoreError> {
        let mut connection = match self.kept.take() {
            Some(kept) => kept,
            None => self.db.acquire().await?,
        };
        let recorded = commit(&mut connection, projects, events).await?;
        self.kept = Some(connection);
        Ok(recorded)
    }
}

async fn write(db: Db, mut projects: ProjectCache, mut waiting: mpsc::Receiver<Pending>) {
    let mut line = Line { db, kept: None };
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
        // Servers that share a database lock sessions in the same order, so that they never wait for each other in a ring.
        batch.sort_by(|one, two| session_of(one).cmp(&session_of(two)));
        let (events, replies): (Vec<_>, Vec<_>) = batch.drain(..).map(|pending| (pending.event, pending.reply)).unzip();
        let results = store(&mut line, &mut projects, &events).await;
        for (reply, result) in replies.into_iter().zip(results) {
            // Nobody waits any more: the hook's deadline was shorter.
            let _ = reply.send(result);
        }
    }
}

fn session_of(pending: &Pending) -> (&'static str, &str) {
    (pending.event.agent.as_str(), &pending.event.session)
}

/// Stores a batch in one transaction. If one of its events is refused or takes too long, the halves are tried alone, so that
/// the others do not share its fate.
async fn store(line: &mut Line, projects: &mut ProjectCache, events: &[Event]) -> Vec<Result<Recorded, WriteError>> {
    let count = events.len();
    let failure = match attempt(line, projects, events).await {
        Ok(recorded) => return recorded.into_iter().map(Ok).collect(),
        Err(failure) => failure,
    };
    if count > 1 && !matches!(failure, Failure::Away(_)) {
        let (first, second) = events.split_at(count / 2);
        let mut results = Box::pin(store(line, projects, first)).await;
        results.extend(Box::pin(store(line, projects, second)).await);
        return results;
    }
    let error = match failure {
        Failure::Refused(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the database refused an event");
            WriteError::Refused(error.to_string())
        }
        Failure::Slow => {
            tracing::warn!(
                deadline_ms = DEADLINE.as_millis() as u64,
                "the database is too slow; the event stays in the spool"
            );
            WriteError::Away
        }
        Failure::Away(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, events = count, "the database is away; events stay in the spool");
            WriteError::Away
        }
    };
    vec![Err(error); count]
}

/// Why a transaction came to nothing.
enum Failure {
    /// It is about the values: the same event fails again.
    Refused(StoreError),
    Slow,
    /// It is about the database: any event would fail.
    Away(StoreError),
}

async fn attempt(line: &mut Line, projects: &mut ProjectCache, events: &[Event]) -> Result<Vec<Recorded>, Failure> {
    let mut conflicts = 0;
    loop {
        let was_kept = line.kept.is_some();
        let stored = tokio::time::timeout(DEADLINE, line.commit(projects, events)).await;
        if let Ok(Ok(recorded)) = stored {
            return Ok(recorded);
        }
        // A project that this transaction made is gone with it.
        projects.clear();
        match stored {
            Ok(Err(error)) if error.is_conflict() && conflicts < MAX_CONFLICTS => conflicts += 1,
            // The database may have gone and come back while nothing was to be written.
            Ok(Err(error)) if error.is_transient() && was_kept => {
                tracing::debug!(error = &error as &dyn std::error::Error, "a kept connection was of no use");
            }
            Ok(Err(error)) if error.is_transient() => return Err(Failure::Away(error)),
            Ok(Err(error)) => return Err(Failure::Refused(error)),
            _ => return Err(Failure::Slow),
        }
    }
}
