//! `mem_sessions`: made by whichever event comes first, and touched by every later one.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::StoreError;
use super::projects::Resolved;
use crate::event::Event;
use crate::ids::{BackfillRunId, ProjectId, SessionId};

/// A session's row as its events need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) id: SessionId,
    /// Where the session was first seen to work; later events stay with it.
    pub(super) project_id: ProjectId,
}

/// Makes or touches the session's row and holds its lock until the transaction ends: that serialises the session's events.
pub(super) async fn touch(
    connection: &mut PgConnection,
    event: &Event,
    project: &Resolved,
) -> Result<Session, StoreError> {
    let git = event.checkout.git.as_ref();
    let session = sqlx::query_as!(
        Session,
        // The project may have been merged since it was asked for, and may be while this runs: its row is waited for.
        r#"insert into mem_sessions (agent, external_id, project_id, branch, worktree, working_folder, commit_sha,
                                     transcript_path, started_at, last_event_at, model, backfill_run_id, project_key)
           values ($1, $2, (select coalesce(merged_into, id) from mem_projects where id = $3 for key share),
                   $4, $5, $6, $7, $8, $9, $9, $10, $11, $12)
           on conflict on constraint mem_sessions_agent_external_id_unique do update set
               branch = coalesce(mem_sessions.branch, excluded.branch),
               worktree = coalesce(mem_sessions.worktree, excluded.worktree),
               working_folder = coalesce(mem_sessions.working_folder, excluded.working_folder),
               commit_sha = coalesce(mem_sessions.commit_sha, excluded.commit_sha),
               transcript_path = coalesce(mem_sessions.transcript_path, excluded.transcript_path),
               model = coalesce(mem_sessions.model, excluded.model),
               -- What a hook has told of is no longer the backfill's to take back.
               backfill_run_id = case when excluded.backfill_run_id is null then null else mem_sessions.backfill_run_id end,
               started_at = least(mem_sessions.started_at, excluded.started_at),
               last_event_at = greatest(mem_sessions.last_event_at, excluded.last_event_at)
           returning id as "id: SessionId", project_id as "project_id: ProjectId""#,
        event.agent.as_str(),
        event.session,
        project.id as ProjectId,
        git.and_then(|git| git.branch.as_deref()),
        event.checkout.worktree(),
        event.checkout.folder,
        git.and_then(|git| git.head.as_deref()),
        event.transcript_path,
        event.occurred_at,
        event.model,
        event.origin.run() as Option<BackfillRunId>,
        project.key,
    )
    .fetch_one(connection)
    .await?;
    Ok(session)
}

/// The project of a session that is known already.
pub(super) async fn project_of(
    connection: &mut PgConnection,
    agent: &str,
    external_id: &str,
) -> Result<Option<Resolved>, StoreError> {
    let project = sqlx::query_as!(
        Resolved,
        r#"select project_id as "id: ProjectId", coalesce(project_key, '') as "key!"
           from mem_sessions where agent = $1 and external_id = $2"#,
        agent,
        external_id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(project)
}

/// Notes the start, or the resumption of a session that had ended before.
pub(super) async fn start(
    connection: &mut PgConnection,
    session: SessionId,
    at: DateTime<Utc>,
    source: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update mem_sessions set
             source = coalesce(source, $3),
             status = case when ended_at < $2 then 'active' else status end,
             end_reason = case when ended_at < $2 then null else end_reason end,
             ended_at = case when ended_at < $2 then null else ended_at end
         where id = $1",
        session as SessionId,
        at,
        source,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes the end, unless something later is known of the session already (it was resumed, and this end is old news).
pub(super) async fn end(
    connection: &mut PgConnection,
    session: SessionId,
    at: DateTime<Utc>,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update mem_sessions set status = 'ended', ended_at = $2, end_reason = $3
         where id = $1 and last_event_at <= $2",
        session as SessionId,
        at,
        reason,
    )
    .execute(connection)
    .await?;
    Ok(())
}
