//! Two projects become one, and two again. A merge moves rows and remembers which; the merged project keeps its own row, which
//! from then on leads to the other, so that whoever knows its id or its keys still arrives.
//!
//! Each is one transaction with its line in the audit log.

use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;

use super::audit::{self, Act};
use super::{Db, ProjectError, StoreError, project_names};
use crate::access::Who;
use crate::ids::ProjectId;

/// What a merge moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergedProject {
    /// By which it is undone.
    pub merge: i64,
    pub from: String,
    pub into: String,
    pub sessions: usize,
    pub notes: usize,
    pub lessons: usize,
}

/// What undoing a merge gave back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoneMerge {
    pub merge: i64,
    pub from: String,
    pub into: String,
    /// Those that were moved, and those that came since by the keys of the project.
    pub sessions: usize,
    pub notes: usize,
}

/// How often it is tried again when the recording of events stood in the way.
const MAX_CONFLICTS: u32 = 3;

/// Everything of `from` is `into`'s from now on. Both are named as a person would.
pub async fn merge_projects(db: &Db, from: &str, into: &str) -> Result<MergedProject, ProjectError> {
    let mut conflicts = 0;
    loop {
        match try_merge(db, from, into).await {
            Err(ProjectError::Store(error)) if error.is_conflict() && conflicts < MAX_CONFLICTS => conflicts += 1,
            outcome => return outcome,
        }
    }
}

/// Gives back what that merge moved, and what has come by the project's keys since.
pub async fn undo_merge(db: &Db, merge: i64) -> Result<UndoneMerge, ProjectError> {
    let mut conflicts = 0;
    loop {
        match try_undo(db, merge).await {
            Err(ProjectError::Store(error)) if error.is_conflict() && conflicts < MAX_CONFLICTS => conflicts += 1,
            outcome => return outcome,
        }
    }
}

async fn try_merge(db: &Db, from: &str, into: &str) -> Result<MergedProject, ProjectError> {
    let mut tx = db.begin().await?;
    wait_for_long_statements(&mut tx).await?;
    let source = project_names::find_one(&mut tx, Who::Operator, from).await?;
    let target = project_names::find_one(&mut tx, Who::Operator, into).await?;
    if source == target {
        return Err(ProjectError::SameProject(from.to_owned()));
    }
    // From here on a session that is new waits, and is then led to the target.
    let names = lock(&mut tx, source, target).await?;
    check_owners(&mut tx, source, target).await?;
    let moved = sqlx::query!(
        r#"with followers as (
               update mem_projects set merged_into = $2 where merged_into = $1 returning id
           ), merged as (
               update mem_projects set merged_into = $2 where id = $1
           ), sessions as (
               update mem_sessions set project_id = $2 where project_id = $1 returning id
           ), observations as (
               update mem_observations set project_id = $2 where project_id = $1 returning id
           ), lessons as (
               -- What was mined in both stays as it was found in each.
               update mem_lessons lesson set project_id = $2,
                   fingerprint = case when not exists (select from mem_lessons known
                                                       where known.project_id = $2 and known.fingerprint = lesson.fingerprint)
                                      then fingerprint end
               where project_id = $1 returning id
           ), aliases as (
               update mem_project_aliases set project_id = $2 where project_id = $1 returning identity_key
           )
           insert into mem_project_merges (from_project_id, into_project_id, session_ids, observation_ids, lesson_ids,
                                           alias_keys, follower_ids)
           values ($1, $2, array(select id from sessions), array(select id from observations),
                   array(select id from lessons), array(select identity_key from aliases),
                   array(select id from followers))
           returning id, session_ids, observation_ids, lesson_ids"#,
        source as ProjectId,
        target as ProjectId,
    )
    .fetch_one(&mut *tx)
    .await?;
    // A statement of its own, after the sessions are locked: it sees what was being recorded meanwhile.
    sqlx::query!(
        "update mem_search_index set project_id = $2 where project_id = $1",
        source as ProjectId,
        target as ProjectId
    )
    .execute(&mut *tx)
    .await?;
    let merged = MergedProject {
        merge: moved.id,
        from: names.source,
        into: names.target,
        sessions: moved.session_ids.len(),
        notes: moved.observation_ids.len(),
        lessons: moved.lesson_ids.len(),
    };
    audit(&mut tx, "merge_projects", &merged.from, &json!(merged)).await?;
    tx.commit().await?;
    Ok(merged)
}

/// What is one's own must not become another's by a merge: what two people record together is shared.
async fn check_owners(connection: &mut PgConnection, source: ProjectId, target: ProjectId) -> Result<(), ProjectError> {
    let apart = sqlx::query!(
        r#"select source.identity_key as source, target.identity_key as target
           from mem_projects source, mem_projects target
           where source.id = $1 and target.id = $2
             and source.person_id is distinct from target.person_id and not target.is_shared"#,
        source as ProjectId,
        target as ProjectId,
    )
    .fetch_optional(connection)
    .await?;
    match apart {
        None => Ok(()),
        Some(apart) => Err(ProjectError::OthersProject { from: apart.source, into: apart.target }),
    }
}

async fn try_undo(db: &Db, merge: i64) -> Result<UndoneMerge, ProjectError> {
    let mut tx = db.begin().await?;
    wait_for_long_statements(&mut tx).await?;
    let done = sqlx::query!(
        r#"select from_project_id as "source: ProjectId", coalesce(target.merged_into, target.id) as "target!: ProjectId",
                  session_ids, observation_ids, lesson_ids, alias_keys, follower_ids
           from mem_project_merges merge join mem_projects target on target.id = merge.into_project_id
           where merge.id = $1 and undone_at is null
           for update of merge"#,
        merge,
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or(ProjectError::UnknownMerge(merge))?;
    let names = lock(&mut tx, done.source, done.target).await?;
    // Only what still lies where the merge put it: a later split or another undoing has moved the rest on purpose.
    let back = sqlx::query!(
        r#"with undone as (
               update mem_project_merges set undone_at = now() where id = $3
           ), own as (
               update mem_projects set merged_into = null where id = $1
           ), followers as (
               update mem_projects set merged_into = $1 where id = any($8) and merged_into = $2
           ), aliases as (
               update mem_project_aliases set project_id = $1 where identity_key = any($7) and project_id = $2
           ), sessions as (
               update mem_sessions set project_id = $1
               where project_id = $2
                 and (id = any($4) or project_key = any($7)
                      or project_key = (select identity_key from mem_projects where id = $1))
               returning id
           ), observations as (
               update mem_observations set project_id = $1
               where project_id = $2
                 and (id = any($5)
                      or (kind = 'digest' and source = 'worker' and session_id in (select id from sessions)))
               returning id
           ), lessons as (
               update mem_lessons set project_id = $1 where id = any($6) and project_id = $2
           )
           select array(select id from sessions) as "sessions!", array(select id from observations) as "observations!""#,
        done.source as ProjectId,
        done.target as ProjectId,
        merge,
        &done.session_ids,
        &done.observation_ids,
        &done.lesson_ids,
        &done.alias_keys,
        &done.follower_ids,
    )
    .fetch_one(&mut *tx)
    .await?;
    move_documents(&mut tx, done.source, &back.sessions, &back.observations).await?;
    let undone = UndoneMerge {
        merge,
        from: names.source,
        into: names.target,
        sessions: back.sessions.len(),
        notes: back.observations.len(),
    };
    audit(&mut tx, "undo_merge", &undone.from, &json!(undone)).await?;
    tx.commit().await?;
    Ok(undone)
}

struct Names {
    source: String,
    target: String,
}

/// Locks both rows and tells their names. Sessions that are new in the source wait; those in the target need not.
async fn lock(connection: &mut PgConnection, source: ProjectId, target: ProjectId) -> Result<Names, StoreError> {
    let source = sqlx::query_scalar!("select name from mem_projects where id = $1 for update", source as ProjectId)
        .fetch_one(&mut *connection)
        .await?;
    let target =
        sqlx::query_scalar!("select name from mem_projects where id = $1 for no key update", target as ProjectId)
            .fetch_one(connection)
            .await?;
    Ok(Names { source, target })
}

/// The documents of sessions and notes follow them.
pub(super) async fn move_documents(
    connection: &mut PgConnection,
    project: ProjectId,
    sessions: &[i64],
    observations: &[i64],
) -> Result<(), StoreError> {
    sqlx::query!(
        "update mem_search_index set project_id = $1
         where session_id = any($2) or (document_kind = 'note' and document_id = any($3))",
        project as ProjectId,
        sessions,
        observations,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Moving a large project's documents takes longer than anything that an agent waits for may.
pub(super) async fn wait_for_long_statements(connection: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query!("set local statement_timeout = 0").execute(connection).await?;
    Ok(())
}

/// A person's act, for those who ask later who did what.
pub(super) async fn audit(
    connection: &mut PgConnection,
    action: &str,
    subject: &str,
    details: &serde_json::Value,
) -> Result<(), StoreError> {
    let details = details.clone();
    audit::note(connection, Act { actor: "operator", action, subject: Some(subject), details }).await
}
