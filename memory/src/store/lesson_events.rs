//! `mem_lesson_events`: each time a lesson fired, and what came of it.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Db, StoreError};
use crate::access::Who;
use crate::event::Upcoming;
use crate::ids::{DocumentId, LessonId, PersonId, ProjectId, SessionId};
use crate::lessons::{Action, Fired, LaterCall, Lesson, Settled, Speech};
use crate::project::ProjectPolicy;

/// Where a call is about to run.
#[derive(Debug, Clone, Copy)]
pub struct Whereabouts {
    pub session: Option<SessionId>,
    pub project: Option<ProjectId>,
}

/// The session of a call that is about to run, and its project. A session that nobody has told of yet has the project of its folder.
pub async fn whereabouts(db: &Db, upcoming: &Upcoming, policy: &ProjectPolicy) -> Result<Whereabouts, StoreError> {
    if let Who::Person(person) = upcoming.who {
        return persons_whereabouts(db, upcoming, policy, person).await;
    }
    let key = upcoming.checkout.project(policy).key;
    let row = sqlx::query!(
        r#"select session.id as "session?: SessionId",
                  coalesce(session.project_id,
                           (select coalesce(merged_into, id) from mem_projects where identity_key = $3),
                           (select project_id from mem_project_aliases where identity_key = $3 limit 1)) as "project: ProjectId"
           from (select) nothing
           left join mem_sessions session on session.agent = $1 and session.external_id = $2"#,
        upcoming.agent.as_str(),
        upcoming.session,
        key,
    )
    .fetch_one(db)
    .await?;
    Ok(Whereabouts { session: row.session, project: row.project })
}

/// The same for one of several people: as an event of theirs finds its project, and only where they may see it.
async fn persons_whereabouts(
    db: &Db,
    upcoming: &Upcoming,
    policy: &ProjectPolicy,
    person: PersonId,
) -> Result<Whereabouts, StoreError> {
    let identity = upcoming.checkout.project(policy).of(upcoming.who);
    let keys: Vec<_> = identity.shared_key().into_iter().chain([identity.key]).collect();
    let row = sqlx::query!(
        r#"with session as (
               select id, project_id from mem_sessions where agent = $1 and external_id = $2
           ), candidate as (
               select project_id as id, 0 as place from session
               union all
               select coalesce(project.merged_into, project.id), place
               from unnest($3::text[]) with ordinality as known (key, place)
               join mem_projects project
                   on project.identity_key = key
                   or project.id in (select project_id from mem_project_aliases where identity_key = key)
           )
           select (select id from session) as "session: SessionId",
                  (select project.id from candidate join mem_projects project on project.id = candidate.id
                   where is_shared or person_id = $4 order by place limit 1) as "project: ProjectId""#,
        upcoming.agent.as_str(),
        upcoming.session,
        &keys,
        person as PersonId,
    )
    .fetch_one(db)
    .await?;
    Ok(Whereabouts { session: row.session, project: row.project })
}

/// Less than the server waits for the database before it lets a call go ahead.
const PATIENCE: &str = "120ms";

/// What a lesson has to do with a call that fires it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firing {
    /// It is to be said now.
    Now,
    /// It stopped this very call before: the agent is sure.
    Repeated,
    /// It was said in this session, about another call.
    Said,
}

/// Records that a lesson fires, unless it has said the same in this session; where it stopped this very call, that it was repeated.
///
/// # Errors
/// Also where the database takes longer than a hook waits: then nothing is recorded, for nothing is said.
pub async fn fire(
    db: &Db,
    upcoming: &Upcoming,
    session: Option<SessionId>,
    lesson: &Lesson,
    action: &Action,
    speech: &Speech,
) -> Result<Firing, StoreError> {
    let mut tx = db.begin().await?;
    sqlx::query_scalar!("select set_config('statement_timeout', $1, true)", PATIENCE).fetch_one(&mut *tx).await?;
    let found = sqlx::query!(
        r#"with earlier as (
               select id, action_key = $8 and decision = 'stopped' and tool_use_id is distinct from $5 as is_repeated
               from mem_lesson_events
               where lesson_id = $1 and agent = $3 and session = $4 and once_key = $9 and outcome = 'fired'
           ), fired as (
               insert into mem_lesson_events (lesson_id, session_id, agent, session, tool_use_id, outcome, decision, action, action_key,
                                              once_key, occurred_at)
               values ($1, $2, $3, $4, $5, 'fired', $6, $7, $8, $9, $10)
               on conflict (agent, session, lesson_id, once_key) where outcome = 'fired' do nothing
               returning id
           ), repeated as (
               insert into mem_lesson_events (lesson_id, session_id, agent, session, tool_use_id, outcome, action, action_key, fired_id,
                                              retry, occurred_at)
               select $1, $2, $3, $4, $5, 'overridden', $7, $8, id, 'same', $10
               from earlier where is_repeated
               on conflict (fired_id, outcome) where fired_id is not null do nothing
           )
           select exists (select from fired) as "is_now!",
                  exists (select from earlier where is_repeated) as "is_repeated!""#,
        lesson.id.0,
        session as Option<SessionId>,
        upcoming.agent.as_str(),
        upcoming.session,
        upcoming.tool_use_id,
        speech.decision.as_str(),
        action.summary(),
        action.key,
        speech.once_key,
        upcoming.occurred_at,
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(match (found.is_now, found.is_repeated) {
        (true, _) => Firing::Now,
        (false, true) => Firing::Repeated,
        (false, false) => Firing::Said,
    })
}

/// The lessons that an agent is told at a session's start because nobody can stop its calls: those that would, at most `limit`, the most
/// severe and newest first. Those that the session was told before are left out.
pub async fn inform_at_start(db: &Db, agent: &str, session: &str, limit: i64) -> Result<Vec<LessonId>, StoreError> {
    let told = sqlx::query_scalar!(
        r#"with chosen as (
               select lesson.id, session.id as session_id
               from mem_sessions session
               join mem_projects project on project.id = session.project_id
               join mem_lessons lesson
                   on lesson.project_id is null and lesson.person_id is not distinct from session.person_id
                   or lesson.project_id = session.project_id
                      and (session.person_id is null or project.is_shared or project.person_id = session.person_id)
               where session.agent = $1 and session.external_id = $2 and lesson.status = 'active' and lesson.may_stop
                 and lesson.severity <> 'info' and (lesson.trigger_pattern is not null or lesson.trigger_meaning is not null)
               order by lesson.severity = 'critical' desc, lesson.id desc
               limit $3
           )
           insert into mem_lesson_events (lesson_id, session_id, agent, session, outcome, decision, once_key, occurred_at)
           select id, session_id, $1, $2, 'fired', 'informed', '', now() from chosen
           on conflict (agent, session, lesson_id, once_key) where outcome = 'fired' do nothing
           returning lesson_id as "id: LessonId""#,
        agent,
        session,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(told)
}

/// The lessons that stopped a call of a session and of which nobody has told yet what came of it, with the calls that ran afterwards.
pub(crate) async fn unsettled(db: &Db, agent: &str, session: &str) -> Result<Vec<(Fired, Vec<LaterCall>)>, StoreError> {
    let fired = sqlx::query!(
        r#"select event.id, coalesce(event.action, '') as "action!", coalesce(event.action_key, '') as "action_key!", event.occurred_at
           from mem_lesson_events event
           where event.agent = $1 and event.session = $2 and event.outcome = 'fired' and event.decision = 'stopped'
             and not exists (select from mem_lesson_events later where later.fired_id = event.id and later.outcome = 'obeyed')
           order by event.id"#,
        agent,
        session,
    )
    .fetch_all(db)
    .await?;
    let Some(first) = fired.iter().map(|event| event.occurred_at).min() else { return Ok(Vec::new()) };
    let calls = sqlx::query!(
        r#"select tool_name, input, success as "success!", call.occurred_at, session.worktree, session.working_folder
           from mem_tool_calls call join mem_sessions session on session.id = call.session_id
           where session.agent = $1 and session.external_id = $2 and call.occurred_at >= $3
           order by call.occurred_at, call.id limit 2000"#,
        agent,
        session,
        first,
    )
    .fetch_all(db)
    .await?;
    let calls: Vec<(DateTime<Utc>, LaterCall)> = calls
        .into_iter()
        .map(|row| {
            let root = row.worktree.or(row.working_folder);
            let action = Action::of(&row.tool_name, &row.input, root.as_deref());
            (row.occurred_at, LaterCall { summary: action.summary(), key: action.key, failed: !row.success })
        })
        .collect();
    let settled = fired.into_iter().map(|event| {
        let later = calls.iter().filter(|(at, _)| *at >= event.occurred_at).map(|(_, call)| call.clone()).collect();
        (Fired { event: event.id, action: event.action, action_key: event.action_key }, later)
    });
    Ok(settled.collect())
}

/// Records what came of a lesson.
pub(crate) async fn keep_settled(db: &Db, settled: &[Settled]) -> Result<(), StoreError> {
    for Settled { event, outcome, retry, failed_again } in settled {
        let outcomes: Vec<_> =
            std::iter::once(*outcome).chain(failed_again.then_some("repeated_failure")).map(str::to_owned).collect();
        sqlx::query!(
            "insert into mem_lesson_events (lesson_id, session_id, agent, session, outcome, action, action_key, fired_id, retry, occurred_at)
             select lesson_id, session_id, agent, session, told, action, action_key, id, $3, now()
             from mem_lesson_events, unnest($2::text[]) as told
             -- What was repeated in the end was not obeyed.
             where id = $1 and not (told = 'obeyed' and exists (
                 select from mem_lesson_events known where known.fired_id = $1 and known.outcome = 'overridden'))
             on conflict (fired_id, outcome) where fired_id is not null do nothing",
            event,
            &outcomes,
            retry,
        )
        .execute(db)
        .await?;
    }
    Ok(())
}

/// Takes what is forgotten out of what lessons keep: proposals that rest on it go, and events about the same action lose its text.
pub(super) async fn forget(db: &Db, gone: &[DocumentId]) -> Result<(), StoreError> {
    let names: Vec<_> = gone.iter().map(ToString::to_string).collect();
    sqlx::query!("delete from mem_lessons where source = 'mined' and status = 'proposed' and evidence && $1", &names)
        .execute(db)
        .await?;
    sqlx::query!(
        "with known as (
             select event.session_id, event.action_key
             from mem_lesson_events event
             join mem_forgotten forgotten on forgotten.session_id = event.session_id and forgotten.kind = 'call'
                                             and forgotten.key = event.tool_use_id
         )
         update mem_lesson_events event set action = null from known
         where event.session_id = known.session_id and event.action_key = known.action_key and event.action is not null",
    )
    .execute(db)
    .await?;
    Ok(())
}

/// How a lesson has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LessonStats {
    pub lesson: LessonId,
    pub fired: i64,
    pub obeyed: i64,
    pub overridden: i64,
    pub repeated_failures: i64,
    pub last_fired_at: Option<DateTime<Utc>>,
    /// Why it should go, if it should.
    pub retire: Option<String>,
}

/// Overridden so often, and more often than obeyed, a lesson is in the way.
const MANY_OVERRIDES: i64 = 3;
/// A lesson that fired nothing for so many days is about something that does not happen.
const QUIET_DAYS: i32 = 90;

/// How lessons have done, by lesson, the newest lesson first.
pub async fn stats(db: &Db) -> Result<Vec<LessonStats>, StoreError> {
    let rows = sqlx::query!(
        r#"select lesson.id as "lesson: LessonId", lesson.status,
                  (trigger_pattern is not null or trigger_meaning is not null) as "has_trigger!",
                  count(*) filter (where outcome = 'fired') as "fired!",
                  count(*) filter (where outcome = 'obeyed') as "obeyed!",
                  count(*) filter (where outcome = 'overridden') as "overridden!",
                  count(*) filter (where outcome = 'repeated_failure') as "repeated_failures!",
                  max(event.occurred_at) filter (where outcome = 'fired') as last_fired_at,
                  greatest(max(event.occurred_at) filter (where outcome = 'fired'), lesson.updated_at)
                      < now() - make_interval(days => $1) as "is_quiet!"
           from mem_lessons lesson left join mem_lesson_events event on event.lesson_id = lesson.id
           group by lesson.id order by lesson.id desc"#,
        QUIET_DAYS,
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let is_active = row.status == "active";
            let is_in_the_way = row.overridden >= MANY_OVERRIDES && row.overridden > row.obeyed;
            let retire = match () {
                () if !is_active => None,
                () if is_in_the_way => Some(format!("overridden {} times, obeyed {}", row.overridden, row.obeyed)),
                () if row.is_quiet && row.has_trigger => Some(format!("fired nothing for {QUIET_DAYS} days")),
                () => None,
            };
            LessonStats {
                lesson: row.lesson,
                fired: row.fired,
                obeyed: row.obeyed,
                overridden: row.overridden,
                repeated_failures: row.repeated_failures,
                last_fired_at: row.last_fired_at,
                retire,
            }
        })
        .collect())
}
