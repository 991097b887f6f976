//! The queue as the operator sees it: what waits and why, and what can be done about it.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::QueueError;
use crate::store::Db;

/// The jobs of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindState {
    pub kind: String,
    pub pending: i64,
    /// Could be taken now: due, and nobody holds them.
    pub due: i64,
    /// Since when the longest of these could be.
    pub due_since: Option<DateTime<Utc>>,
    /// Failed and wait for their next attempt.
    pub backing_off: i64,
    /// Held under a lease that runs.
    pub held: i64,
    pub held_until: Option<DateTime<Utc>>,
    pub holders: Vec<String>,
    /// Held under a lease that ran out more than a minute ago: any worker would have taken them.
    pub expired: i64,
    pub dead: i64,
    /// Of the jobs that are not dead, the most attempts and the last reason.
    pub attempts: i32,
    pub last_error: Option<String>,
}

/// Jobs that were given up for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadJobs {
    pub kind: String,
    pub reason: String,
    pub jobs: i64,
    pub attempts: i32,
    pub oldest_at: DateTime<Utc>,
}

/// Which jobs an operator means.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// All kinds if `None`.
    pub kind: Option<String>,
    pub reach: Reach,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Those that were given up.
    #[default]
    Dead,
    /// Those that wait, too; not those that a worker holds.
    All,
}

pub async fn kinds(db: &Db) -> Result<Vec<KindState>, QueueError> {
    let kinds = sqlx::query_as!(
        KindState,
        r#"with job as (
               select *, status = 'pending' and locked_until > now() as is_held,
                      status = 'pending' and locked_until <= now() - interval '1 minute' as is_expired,
                      status = 'pending' and locked_until is null and run_after <= now() as is_due,
                      status = 'pending' and locked_until is null and run_after > now() as is_later
               from mem_observation_queue
           )
           select kind, count(*) filter (where status = 'pending') as "pending!",
                  count(*) filter (where is_due) as "due!", min(run_after) filter (where is_due) as due_since,
                  count(*) filter (where is_later) as "backing_off!",
                  count(*) filter (where is_held) as "held!", max(locked_until) filter (where is_held) as held_until,
                  coalesce(array_agg(distinct locked_by) filter (where is_held and locked_by is not null), '{}')
                      as "holders!",
                  count(*) filter (where is_expired) as "expired!",
                  count(*) filter (where status = 'dead') as "dead!",
                  coalesce(max(attempts) filter (where status = 'pending'), 0) as "attempts!",
                  (array_agg(last_error order by attempts desc) filter (where status = 'pending' and last_error is not null))[1]
                      as last_error
           from job group by kind order by kind"#
    )
    .fetch_all(db)
    .await?;
    Ok(kinds)
}

/// What was given up, by kind and reason, most first.
pub async fn dead(db: &Db) -> Result<Vec<DeadJobs>, QueueError> {
    let dead = sqlx::query_as!(
        DeadJobs,
        r#"select kind, coalesce(last_error, 'no reason is known') as "reason!", count(*) as "jobs!",
                  max(attempts) as "attempts!", min(created_at) as "oldest_at!"
           from mem_observation_queue where status = 'dead'
           group by kind, last_error order by count(*) desc, kind"#
    )
    .fetch_all(db)
    .await?;
    Ok(dead)
}

/// Has jobs tried again at once, as if they had never failed; what a worker holds is left to it.
pub async fn retry(db: &Db, selection: &Selection) -> Result<u64, QueueError> {
    let retried = sqlx::query!(
        "update mem_observation_queue
         set status = 'pending', attempts = 0, run_after = now(), locked_until = null, locked_by = null
         where ($1::text is null or kind = $1)
           and (status = 'dead' or $2 and (locked_until is null or locked_until <= now()) and attempts > 0)",
        selection.kind,
        selection.reach == Reach::All,
    )
    .execute(db)
    .await?;
    if retried.rows_affected() > 0 {
        // Workers wake for new jobs only.
        sqlx::query!("select pg_notify('mem_observation_queue', '')").fetch_one(db).await?;
    }
    Ok(retried.rows_affected())
}

/// Removes jobs for good; what a worker holds is left to it.
pub async fn drop_jobs(db: &Db, selection: &Selection) -> Result<u64, QueueError> {
    let dropped = sqlx::query!(
        "delete from mem_observation_queue
         where ($1::text is null or kind = $1)
           and (status = 'dead' or $2 and (locked_until is null or locked_until <= now()))",
        selection.kind,
        selection.reach == Reach::All,
    )
    .execute(db)
    .await?;
    Ok(dropped.rows_affected())
}
