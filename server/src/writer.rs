//! The one way into the journal: events queue up here, and what has come in while one transaction commits goes into the
//! next. So concurrent requests share commits.

use std::future::Future;
use std::time::Duration;

use memory::event::Event;
use memory::store::{Db, ProjectCache, Recorded, StoreError, record};
use tokio::sync::{mpsc, oneshot};

/// Events in one transaction, at most: what a burst of parallel sessions sends in a few milliseconds.
const MAX_BATCH: usize = 64;
/// Events that wait; when there are more, requests wait to be taken in.
const MAX_WAITING: usize = 1024;
/// A database that takes longer than this for a batch counts as away.
const DEADLINE: Duration = Duration::from_secs(10);

/// A handle to the write loop. The loop ends when the last handle is gone.
#[derive(Clone)]
pub(crate) struct Writer {
    events: mpsc::Sender<Pending>,
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
    pub(crate) fn new(db: Db) -> (Self, impl Future<Output = ()> + Send) {
        let (events, waiting) = mpsc::channel(MAX_WAITING);
        (Self { events }, write(db, waiting))
    }

    /// Returns after the event's commit. The event is stored even if the caller stops waiting.
    pub(crate) async fn write(&self, event: Event) -> Result<Recorded, WriteError> {
        self.enqueue(event).await?.committed().await
    }

    /// Returns when the event has its place in the order of events; its commit is still to come.
    pub(crate) async fn enqueue(&self, event: Event) -> Result<Enqueued, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Pending { event, reply }).await.map_err(|_| WriteError::Away)?;
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

async fn write(db: Db, mut waiting: mpsc::Receiver<Pending>) {
    let mut projects = ProjectCache::default();
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
        // Servers that share a database lock sessions in the same order, so that they never wait for each other in a ring.
        batch.sort_by(|one, two| session_of(one).cmp(&session_of(two)));
        let (events, replies): (Vec<_>, Vec<_>) = batch.drain(..).map(|pending| (pending.event, pending.reply)).unzip();
        let results = store(&db, &mut projects, events).await;
        for (reply, result) in replies.into_iter().zip(results) {
            // Nobody waits any more: the hook's deadline was shorter.
            let _ = reply.send(result);
        }
    }
}

fn session_of(pending: &Pending) -> (&'static str, &str) {
    (pending.event.agent.as_str(), &pending.event.session)
}

/// Stores a batch in one transaction. If the database refuses one event, each gets a transaction of its own.
async fn store(db: &Db, projects: &mut ProjectCache, events: Vec<Event>) -> Vec<Result<Recorded, WriteError>> {
    match attempt(db, projects, events.clone()).await {
        Ok(recorded) => recorded.into_iter().map(Ok).collect(),
        Err(WriteError::Refused(_)) if events.len() > 1 => {
            let mut results = Vec::with_capacity(events.len());
            for event in events {
                results.push(attempt(db, projects, vec![event]).await.map(|mut recorded| recorded.remove(0)));
            }
            results
        }
        Err(error) => vec![Err(error); events.len()],
    }
}

async fn attempt(db: &Db, projects: &mut ProjectCache, events: Vec<Event>) -> Result<Vec<Recorded>, WriteError> {
    let count = events.len();
    let stored = tokio::time::timeout(DEADLINE, transaction(db, projects, events)).await;
    let error = match stored {
        Ok(Ok(recorded)) => return Ok(recorded),
        Ok(Err(error)) => Some(error),
        Err(_) => None,
    };
    // A project that this transaction made is gone with it.
    projects.clear();
    match error {
        Some(error) if !error.is_transient() => {
            tracing::error!(error = &error as &dyn std::error::Error, events = count, "the database refused events");
            Err(WriteError::Refused(error.to_string()))
        }
        error => {
            let error = error.as_ref().map(|error| error as &dyn std::error::Error);
            tracing::warn!(error, events = count, "the database is away; the hooks keep their events in the spool");
            Err(WriteError::Away)
        }
    }
}

async fn transaction(db: &Db, projects: &mut ProjectCache, events: Vec<Event>) -> Result<Vec<Recorded>, StoreError> {
    let mut tx = db.begin().await?;
    let mut recorded = Vec::with_capacity(events.len());
    for event in events {
        recorded.push(record(&mut tx, projects, event).await?);
    }
    tx.commit().await?;
    Ok(recorded)
}
