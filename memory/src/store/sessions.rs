//! `mem_sessions`: made by whichever event comes first, and touched by every later one.

use std::collections::HashMap;

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
    /// When the newest of the events happened that were known before; `None` where there are none.
    pub(super) last_event_before: Option<DateTime<Utc>>,
}

/// What some events of one session know of it.
pub(super) struct Touch<'a> {
    event: &'a Event,
    project: Resolved,
    branch: Option<&'a str>,
    worktree: Option<String>,
    folder: Option<&'a str>,
    head: Option<&'a str>,
    transcript_path: Option<&'a str>,
    model: Option<&'a str>,
    run: Option<BackfillRunId>,
    first_at: DateTime<Utc>,
    last_at: DateTime<Utc>,
}

impl<'a> Touch<'a> {
    pub(super) fn of(event: &'a Event, project: Resolved) -> Self {
        let git = event.checkout.git.as_ref();
        Self {
            event,
            project,
            branch: git.and_then(|git| git.branch.as_deref()),
            worktree: event.checkout.worktree().map(Into::into),
            folder: event.checkout.folder.as_deref(),
            head: git.and_then(|git| git.head.as_deref()),
            transcript_path: event.transcript_path.as_deref(),
            model: event.model.as_deref(),
            run: event.origin.run(),
            first_at: event.occurred_at,
            last_at: event.occurred_at,
        }
    }

    /// Adds what a later event of the same session knows and the earlier ones did not.
    pub(super) fn add(&mut self, event: &'a Event) {
        let later = Self::of(event, self.project.clone());
        self.branch = self.branch.or(later.branch);
        self.worktree = self.worktree.take().or(later.worktree);
        self.folder = self.folder.or(later.folder);
        self.head = self.head.or(later.head);
        self.transcript_path = self.transcript_path.or(later.transcript_path);
        self.model = self.model.or(later.model);
        // One that a hook has told of is not the backfill's to take back.
        self.run = self.run.and(later.run);
        self.first_at = self.first_at.min(later.first_at);
        self.last_at = self.last_at.max(later.last_at);
    }
}

/// Makes or touches the rows of sessions, each once, and holds their locks until the transaction ends: that serialises a session's
/// events. The sessions come in the order in which everyone locks them, and go in that order.
pub(super) async fn touch(connection: &mut PgConnection, touches: Vec<&Touch<'_>>) -> Result<Vec<Session>, StoreError> {
    fn column<T>(touches: &[&Touch<'_>], of: impl Fn(&Touch<'_>) -> T) -> Vec<T> {
        touches.iter().map(|touch| of(touch)).collect()
    }
    let agents = column(&touches, |touch| touch.event.agent.as_str().to_owned());
    let names = column(&touches, |touch| touch.event.session.clone());
    // A project may have been merged since it was asked for, and may be while this runs: its row is waited for.
    let rows = sqlx::query!(
        r#"with known as (
               select session.id, session.last_event_at
               from unnest($1::text[], $2::text[]) with ordinality as named (agent, external_id, position)
               join mem_sessions session on session.agent = named.agent and session.external_id = named.external_id
               order by position
               for no key update of session
           )
           insert into mem_sessions (agent, external_id, project_id, branch, worktree, working_folder, commit_sha,
                                     transcript_path, started_at, last_event_at, model, backfill_run_id, project_key, person_id)
           select agent, external_id, (select coalesce(merged_into, id) from mem_projects where id = new.project_id for key share),
                  branch, worktree, working_folder, commit_sha, transcript_path, first_at, last_at, model, run, project_key,
                  person_id
           from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                       $9::timestamptz[], $10::timestamptz[], $11::text[], $12::bigint[], $13::text[], $14::bigint[]) with ordinality
                as new (agent, external_id, project_id, branch, worktree, working_folder, commit_sha, transcript_path,
                        first_at, last_at, model, run, project_key, person_id, position)
           -- Their rows are locked before any is written.
           where (select count(*) from known) >= 0
           order by position
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
           returning id, agent, external_id, project_id, last_event_at, xmax = 0 as "is_new!",
                     (select last_event_at from known where known.id = mem_sessions.id) as last_event_before"#,
        &agents,
        &names,
        &column(&touches, |touch| touch.project.id.0),
        &column(&touches, |touch| touch.branch.map(str::to_owned)) as &[Option<String>],
        &column(&touches, |touch| touch.worktree.clone()) as &[Option<String>],
        &column(&touches, |touch| touch.folder.map(str::to_owned)) as &[Option<String>],
        &column(&touches, |touch| touch.head.map(str::to_owned)) as &[Option<String>],
        &column(&touches, |touch| touch.transcript_path.map(str::to_owned)) as &[Option<String>],
        &column(&touches, |touch| touch.first_at),
        &column(&touches, |touch| touch.last_at),
        &column(&touches, |touch| touch.model.map(str::to_owned)) as &[Option<String>],
        &column(&touches, |touch| touch.run.map(|run| run.0)) as &[Option<i64>],
        &column(&touches, |touch| touch.project.key.clone()),
        &column(&touches, |touch| touch.event.who.person().map(|person| person.0)) as &[Option<i64>],
    )
    .fetch_all(connection)
    .await?;
    let sessions: HashMap<_, _> = rows
        .into_iter()
        .map(|row| {
            // Where another server made it in between, whatever it knows may be later.
            let last_event_before = row.last_event_before.or((!row.is_new).then_some(row.last_event_at));
            let session = Session { id: SessionId(row.id), project_id: ProjectId(row.project_id), last_event_before };
            ((row.agent, row.external_id), session)
        })
        .collect();
    Ok(agents.into_iter().zip(names).map(|key| sessions[&key]).collect())
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
