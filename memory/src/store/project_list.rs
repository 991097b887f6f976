//! The projects as the operator sees them, and the merges that can be undone.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Db, StoreError};
use crate::ids::ProjectId;

/// A project, how much is in it, and by what it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectOverview {
    pub id: ProjectId,
    pub name: String,
    pub key: String,
    pub root: Option<String>,
    pub remote_url: Option<String>,
    /// Whose it is; `None`: the operator's.
    pub person: Option<String>,
    /// Whether everybody sees it.
    pub is_shared: bool,
    pub sessions: i64,
    pub notes: i64,
    pub last_event_at: Option<DateTime<Utc>>,
    pub aliases: Vec<String>,
}

/// A merge that has not been undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectMerge {
    pub id: i64,
    pub from: String,
    pub into: String,
    pub sessions: i64,
    pub merged_at: DateTime<Utc>,
}

/// Every project that is not merged into another, the one worked in last first.
pub async fn list_projects(db: &Db) -> Result<Vec<ProjectOverview>, StoreError> {
    let projects = sqlx::query_as!(
        ProjectOverview,
        r#"with work as (
               select project_id, count(*) as sessions, max(last_event_at) as last_event_at
               from mem_sessions group by project_id
           ), kept as (
               select project_id, count(*) as notes from mem_observations group by project_id
           ), other as (
               select project_id, array_agg(identity_key order by identity_key) as aliases
               from mem_project_aliases group by project_id
           )
           select project.id as "id: ProjectId", project.name, identity_key as key, root, remote_url, is_shared,
                  (select person.name from mem_people person where person.id = project.person_id) as person,
                  coalesce(work.sessions, 0) as "sessions!", coalesce(kept.notes, 0) as "notes!",
                  work.last_event_at, coalesce(other.aliases, '{}') as "aliases!"
           from mem_projects project
           left join work on work.project_id = project.id
           left join kept on kept.project_id = project.id
           left join other on other.project_id = project.id
           where merged_into is null
           order by work.last_event_at desc nulls last, project.id"#
    )
    .fetch_all(db)
    .await?;
    Ok(projects)
}

/// The newest first.
pub async fn list_project_merges(db: &Db) -> Result<Vec<ProjectMerge>, StoreError> {
    let merges = sqlx::query_as!(
        ProjectMerge,
        r#"select merge.id, source.name as "from", target.name as "into",
                  coalesce(cardinality(merge.session_ids), 0)::bigint as "sessions!", merge.merged_at
           from mem_project_merges merge
           join mem_projects source on source.id = merge.from_project_id
           join mem_projects target on target.id = merge.into_project_id
           where merge.undone_at is null
           order by merge.id desc"#
    )
    .fetch_all(db)
    .await?;
    Ok(merges)
}
