//! `mem_backfill_runs`: what a backfill inserted, closed and can be taken back.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{Db, StoreError};
use crate::ids::BackfillRunId;

/// A session that was read from a transcript has ended when nothing was written to it for so long.
const QUIET: &str = "30 minutes";

/// A run as the list shows it.
#[derive(Debug, Clone, Serialize)]
pub struct BackfillRun {
    pub id: i64,
    pub agent: String,
    pub source_path: String,
    pub status: String,
    pub counts: Value,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Rows that a roll-back deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RolledBack {
    pub prompts: i64,
    pub calls: i64,
    pub happenings: i64,
    pub notes: i64,
    pub sessions: i64,
    pub projects: i64,
}

pub async fn start_run(db: &Db, agent: &str, source_path: &str) -> Result<BackfillRunId, StoreError> {
    let id = sqlx::query_scalar!(
        r#"insert into mem_backfill_runs (agent, source_path) values ($1, $2) returning id as "id: BackfillRunId""#,
        agent,
        source_path,
    )
    .fetch_one(db)
    .await?;
    Ok(id)
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    Done,
    /// Some of its files could not be read or stored; what was stored stays.
    Failed,
}

impl RunEnd {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// Notes the end of a run, and of the sessions that it told of and that nobody works in any more.
pub async fn finish_run(db: &Db, run: BackfillRunId, end: RunEnd, counts: &Value) -> Result<(), StoreError> {
    sqlx::query!(
        "with ended as (
             update mem_sessions set status = 'ended', end_reason = 'transcript', ended_at = last_event_at
             where backfill_run_id = $1 and status = 'active' and last_event_at < now() - $4::text::interval
         )
         update mem_backfill_runs set status = $2, counts = $3, finished_at = now() where id = $1",
        run as BackfillRunId,
        end.as_str(),
        counts,
        QUIET,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The newest runs first.
pub async fn runs(db: &Db) -> Result<Vec<BackfillRun>, StoreError> {
    let runs = sqlx::query_as!(
        BackfillRun,
        "select id, agent, source_path, status, counts, started_at, finished_at
         from mem_backfill_runs order by id desc limit 200"
    )
    .fetch_all(db)
    .await?;
    Ok(runs)
}

/// Deletes what the run inserted and nobody has told of since, with what is found by it. `None`: there is no such run, or it was
/// rolled back already.
pub async fn roll_back(db: &Db, run: BackfillRunId) -> Result<Option<RolledBack>, StoreError> {
    let mut tx = db.begin().await?;
    let marked = sqlx::query!(
        "update mem_backfill_runs set status = 'rolled_back', finished_at = coalesce(finished_at, now())
         where id = $1 and status <> 'rolled_back'",
        run as BackfillRunId,
    )
    .execute(&mut *tx)
    .await?;
    if marked.rows_affected() == 0 {
        return Ok(None);
    }
    let mut gone = sqlx::query_as!(
        RolledBack,
        r#"with prompts as (
               delete from mem_user_prompts where backfill_run_id = $1 returning id
           ), calls as (
               delete from mem_tool_calls where backfill_run_id = $1 returning id
           ), happenings as (
               delete from mem_session_events where backfill_run_id = $1 returning id
           ), notes as (
               -- A session that a hook has told of since keeps its digest.
               delete from mem_observations note
               where backfill_run_id = $1
                 and not (kind = 'digest' and source = 'worker'
                          and exists (select from mem_sessions where id = note.session_id
                                      and backfill_run_id is distinct from $1))
               returning id
           ), documents as (
               select 'prompt' as kind, id from prompts
               union all select 'call', id from calls
               union all select 'note', id from notes
           ), index_rows as (
               delete from mem_search_index using documents
               where document_kind = documents.kind and document_id = documents.id
           ), jobs as (
               delete from mem_observation_queue using documents
               where mem_observation_queue.kind = 'embed_document'
                 and payload->>'document' = documents.kind || '-' || documents.id
           )
           select (select count(*) from prompts) as "prompts!", (select count(*) from calls) as "calls!",
                  (select count(*) from happenings) as "happenings!", (select count(*) from notes) as "notes!",
                  0::bigint as "sessions!", 0::bigint as "projects!""#,
        run as BackfillRunId,
    )
    .fetch_one(&mut *tx)
    .await?;
    gone.sessions = sqlx::query_scalar!(
        r#"with gone as (
               delete from mem_sessions s
               where backfill_run_id = $1
                 and not exists (select from mem_user_prompts where session_id = s.id)
                 and not exists (select from mem_tool_calls where session_id = s.id)
                 and not exists (select from mem_session_events where session_id = s.id)
                 and not exists (select from mem_forgotten where session_id = s.id)
               returning id
           )
           select count(*) as "count!" from gone"#,
        run as BackfillRunId,
    )
    .fetch_one(&mut *tx)
    .await?;
    // A project or an output that an earlier run made, and this one used, goes with the last of both.
    let since = sqlx::query_scalar!(
        r#"select min(started_at) as "since!" from mem_backfill_runs where status = 'rolled_back'"#
    )
    .fetch_one(&mut *tx)
    .await?;
    gone.projects = sqlx::query_scalar!(
        r#"with gone as (
               delete from mem_projects p
               where created_at >= $1
                 and not exists (select from mem_sessions where project_id = p.id)
                 and not exists (select from mem_observations where project_id = p.id)
                 and not exists (select from mem_lessons where project_id = p.id)
                 and p.merged_into is null
                 and not exists (select from mem_projects where merged_into = p.id)
                 and not exists (select from mem_project_aliases where project_id = p.id and is_chosen)
               returning id
           )
           select count(*) as "count!" from gone"#,
        since,
    )
    .fetch_one(&mut *tx)
    .await?;
    sqlx::query!(
        "delete from mem_outputs where recorded_at >= $1
           and not exists (select from mem_tool_calls where output_hash = content_hash)",
        since,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Some(gone))
}
