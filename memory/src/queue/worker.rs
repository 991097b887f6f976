//! The loop that works the queue: claim a batch, hand it to the kind's handler, settle it, wait for more.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::listen::Wakeups;
use super::{Job, QueueError, claim, complete, fail, release};
use crate::store::{Db, Notices};

/// How a batch ended.
#[derive(Debug)]
pub enum Outcome {
    Done,
    /// These must be tried again, for this reason.
    Failed(String),
    /// What the jobs need is not there; nothing is held against them.
    NotReady(String),
}

/// Does the jobs of one kind.
pub trait Handler: Send + Sync {
    /// The kind of job, as it was enqueued.
    const KIND: &'static str;
    /// How many jobs are handed over at once.
    const BATCH: i64;

    fn run(&self, jobs: &[Job]) -> impl Future<Output = Outcome> + Send;
}

/// One worker over one queue. Several may run, in one process or many.
pub struct Worker<H> {
    db: Db,
    name: String,
    handler: H,
    notices: Option<Notices>,
}

/// What one look at the queue found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Work,
    Nothing,
    NotReady,
}

/// A handler that is not ready is asked again after this long.
const NOT_READY_PAUSE: Duration = Duration::from_secs(15);
/// The database is asked again after this long when it is away.
const AWAY_PAUSE: Duration = Duration::from_secs(2);

impl<H: Handler> Worker<H> {
    pub fn new(db: Db, handler: H) -> Self {
        Self { db, name: format!("worker-{}", Uuid::new_v4().simple()), handler, notices: None }
    }

    /// Looks at the queue when a job is told of, and not only from time to time.
    pub fn woken_by(self, notices: &Notices) -> Self {
        Self { notices: Some(notices.clone()), ..self }
    }

    /// Works until `shutdown` is cancelled; a batch in hand is finished first.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut wakeups = Wakeups::of(self.notices.as_ref());
        while !shutdown.is_cancelled() {
            let pause = match self.run_batch().await {
                Ok(Found::Work) => continue,
                Ok(Found::Nothing) => None,
                Ok(Found::NotReady) => Some(NOT_READY_PAUSE),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        job.kind = H::KIND,
                        "the queue is not reachable"
                    );
                    Some(AWAY_PAUSE)
                }
            };
            let wait = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => wakeups.wait(H::KIND).await,
                }
            };
            shutdown.run_until_cancelled(wait).await;
        }
    }

    /// Works until nothing is due: for tests and for commands that wait for their effect.
    pub async fn run_until_empty(&self) -> Result<(), QueueError> {
        while self.run_batch().await? == Found::Work {}
        Ok(())
    }

    async fn run_batch(&self) -> Result<Found, QueueError> {
        let jobs = claim(&self.db, &self.name, H::KIND, H::BATCH).await?;
        if jobs.is_empty() {
            return Ok(Found::Nothing);
        }
        let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
        match self.handler.run(&jobs).await {
            Outcome::Done => complete(&self.db, &self.name, &ids).await?,
            Outcome::NotReady(reason) => {
                tracing::debug!(job.kind = H::KIND, reason, "jobs wait for what they need");
                release(&self.db, &self.name, &ids).await?;
                return Ok(Found::NotReady);
            }
            // One bad job must not hold up its batch: each is tried alone, and only those that fail again are counted.
            Outcome::Failed(reason) if jobs.len() > 1 => {
                tracing::debug!(job.kind = H::KIND, reason, "a batch failed; trying its jobs one by one");
                for job in jobs {
                    match self.handler.run(std::slice::from_ref(&job)).await {
                        Outcome::Done => complete(&self.db, &self.name, &[job.id]).await?,
                        Outcome::NotReady(_) => release(&self.db, &self.name, &[job.id]).await?,
                        Outcome::Failed(reason) => fail(&self.db, &self.name, &[job.id], &reason).await?,
                    }
                }
            }
            Outcome::Failed(reason) => {
                tracing::warn!(job.kind = H::KIND, job.attempts = jobs[0].attempts, reason, "a job failed");
                fail(&self.db, &self.name, &ids, &reason).await?;
            }
        }
        Ok(Found::Work)
    }
}
