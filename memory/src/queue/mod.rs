//! A job queue in one table: enqueue in the caller's transaction, claim under a lease, complete, or fail with back-off until
//! the job is dead. It knows nothing about what the jobs do.

mod inspect;
mod listen;
mod worker;

use std::time::Duration;

use serde_json::Value;
use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use crate::ids::JobId;
use crate::store::Db;

pub use inspect::{DeadJobs, KindState, Reach, Selection, dead, drop_jobs, kinds, retry};
pub use worker::{Handler, Outcome, Worker};

/// How long a claimed job belongs to its worker; then another may take it. Longer than the slowest batch.
pub const LEASE: Duration = Duration::from_mins(2);
/// A job that failed so often is dead.
pub const MAX_ATTEMPTS: i32 = 8;

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("the queue's table did not do what was asked")]
    Database(#[from] sqlx::Error),
}

/// A job to be done.
#[derive(Debug, Clone)]
pub struct NewJob {
    kind: &'static str,
    payload: Value,
    dedupe_key: Option<String>,
    delay: Duration,
}

impl NewJob {
    /// A job that is not enqueued again while one with the same key still waits.
    pub fn once(kind: &'static str, payload: Value, key: String) -> Self {
        Self { kind, payload, dedupe_key: Some(key), delay: Duration::ZERO }
    }

    /// The same job, not before that time has passed.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// A job that this worker holds.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: JobId,
    pub payload: Value,
    /// How often it was claimed, this time included.
    pub attempts: i32,
}

/// Enqueues jobs, no two with the same key. Where one with that key waits already, its row is locked until the transaction ends,
/// so that no worker takes it and reads what the transaction is about to change.
pub async fn enqueue(connection: &mut PgConnection, jobs: &[NewJob]) -> Result<(), QueueError> {
    let kinds: Vec<_> = jobs.iter().map(|job| job.kind.to_owned()).collect();
    let payloads: Vec<_> = jobs.iter().map(|job| job.payload.clone()).collect();
    let keys: Vec<_> = jobs.iter().map(|job| job.dedupe_key.clone()).collect();
    let delays_us: Vec<_> = jobs.iter().map(|job| job.delay.as_micros() as i64).collect();
    sqlx::query!(
        "insert into mem_observation_queue (kind, payload, dedupe_key, run_after)
         select kind, payload, dedupe_key, now() + delay_us * interval '1 microsecond'
         from unnest($1::text[], $2::jsonb[], $3::text[], $4::bigint[]) as new (kind, payload, dedupe_key, delay_us)
         on conflict (kind, dedupe_key) where status = 'pending' do update set payload = excluded.payload",
        &kinds,
        &payloads,
        &keys as &[Option<String>],
        &delays_us,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives up on jobs whose workers, time and again, never came back: such a job ends its worker.
async fn bury_lost(db: &Db, kind: &str) -> Result<(), QueueError> {
    sqlx::query!(
        "update mem_observation_queue
         set status = 'dead', locked_until = null, locked_by = null, last_error = 'its worker did not come back' || coalesce('; before that: ' || last_error, '')
         where kind = $1 and status = 'pending' and attempts >= $2 and locked_until < now()",
        kind,
        MAX_ATTEMPTS,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Takes up to `limit` due jobs of a kind, oldest first, for [`LEASE`].
async fn claim(db: &Db, worker: &str, kind: &str, limit: i64) -> Result<Vec<Job>, QueueError> {
    let jobs = sqlx::query_as!(
        Job,
        r#"with due as (
               select id from mem_observation_queue
               where kind = $2 and status = 'pending' and run_after <= now()
                 and (locked_until is null or locked_until < now() and attempts < $5)
               order by run_after, id limit $3
               for update skip locked
           )
           update mem_observation_queue job
           set locked_until = now() + $4, locked_by = $1, attempts = attempts + 1, dedupe_key = null
           from due where job.id = due.id
           returning job.id as "id: JobId", payload, attempts"#,
        worker,
        kind,
        limit,
        PgInterval::try_from(LEASE).expect("a lease is whole microseconds"),
        MAX_ATTEMPTS,
    )
    .fetch_all(db)
    .await?;
    if jobs.is_empty() {
        bury_lost(db, kind).await?;
    }
    Ok(jobs)
}

async fn complete(db: &Db, worker: &str, ids: &[JobId]) -> Result<(), QueueError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    sqlx::query!("delete from mem_observation_queue where id = any($1) and locked_by = $2", &ids, worker)
        .execute(db)
        .await?;
    Ok(())
}

/// Gives jobs back: to be tried again after a pause that doubles with each attempt, or as dead after [`MAX_ATTEMPTS`]. The pause is
/// up to a quarter longer or shorter, so that what failed together does not come back together.
async fn fail(db: &Db, worker: &str, ids: &[JobId], error: &str) -> Result<(), QueueError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    sqlx::query!(
        "update mem_observation_queue
         set locked_until = null, locked_by = null, last_error = $3,
             status = case when attempts >= $4 then 'dead' else 'pending' end,
             run_after = now() + (0.75 + random() / 2) * least(interval '1 hour', interval '1 second' * power(2, least(attempts, 12)))
         where id = any($1) and locked_by = $2",
        &ids,
        worker,
        error,
        MAX_ATTEMPTS,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Gives jobs back as if they had not been claimed: what they need is not there, and that is not their fault.
async fn release(db: &Db, worker: &str, ids: &[JobId]) -> Result<(), QueueError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    sqlx::query!(
        "update mem_observation_queue set locked_until = null, locked_by = null, attempts = attempts - 1
         where id = any($1) and locked_by = $2",
        &ids,
        worker,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// How much waits, and how much was given up on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Depth {
    pub pending: i64,
    pub dead: i64,
}

pub async fn depth(db: &Db) -> Result<Depth, QueueError> {
    let depth = sqlx::query_as!(
        Depth,
        r#"select count(*) filter (where status = 'pending') as "pending!", count(*) filter (where status = 'dead') as "dead!"
           from mem_observation_queue"#
    )
    .fetch_one(db)
    .await?;
    Ok(depth)
}
