//! Which projects somebody may look at, and which they mean by a name: of what they may not see they learn nothing, not even that
//! it is there.

use sqlx::PgConnection;

use super::StoreError;
use crate::access::{Projects, Who};
use crate::ids::{PersonId, ProjectId};
use crate::project::normalise_remote;

/// All that somebody may see.
pub async fn visible(connection: &mut PgConnection, who: Who) -> Result<Projects, StoreError> {
    let Who::Person(person) = who else { return Ok(Projects::All) };
    let seen = sqlx::query_scalar!(
        r#"select id as "id: ProjectId" from mem_projects where merged_into is null and (is_shared or person_id = $1) order by id"#,
        person as PersonId,
    )
    .fetch_all(connection)
    .await?;
    Ok(Projects::These(seen))
}

/// Finds projects by what a person would call one: its name, its remote in any spelling, its key, its folder or one of its
/// worktrees, or a folder inside these. All that are called so, or the one whose folder is nearest above.
pub async fn find_by_name(connection: &mut PgConnection, who: Who, name: &str) -> Result<Vec<ProjectId>, StoreError> {
    let name = name.trim().trim_end_matches('/');
    let remote = normalise_remote(name).unwrap_or_else(|| name.to_owned());
    let visible = visible(connection, who).await?.ids();
    let found = sqlx::query_scalar!(
        r#"with called as (
               select id from (
                   select coalesce(merged_into, id) as id from mem_projects
                   where lower(name) = lower($1) or lower(remote_url) = lower($2) or identity_key = $1 or root = $1
                   union
                   select coalesce(project.merged_into, project.id)
                   from mem_project_aliases alias join mem_projects project on project.id = alias.project_id
                   where alias.identity_key
                       in ($1, $3 || 'folder:' || $1, $3 || 'git:' || $1, $3 || 'remote:' || $2, 'remote:' || $2)
               ) named
               where $4::bigint[] is null or id = any($4)
           ), place as (
               select coalesce(merged_into, id) as id, root as folder from mem_projects
               union all
               select coalesce(project.merged_into, project.id), substr(alias.identity_key, length($3 || 'folder:') + 1)
               from mem_project_aliases alias join mem_projects project on project.id = alias.project_id
               where starts_with(alias.identity_key, $3 || 'folder:')
           ), around as (
               select id from place
               where starts_with($1, folder || '/') and ($4::bigint[] is null or id = any($4))
               order by length(folder) desc limit 1
           )
           select id as "id!: ProjectId" from called
           union all
           select id from around where not exists (select from called)
           order by 1"#,
        name,
        remote,
        who.own(""),
        visible.as_deref(),
    )
    .fetch_all(&mut *connection)
    .await?;
    if found.is_empty() {
        let known = known_names(connection, visible.as_deref()).await?;
        return Err(StoreError::UnknownProject { name: name.to_owned(), known });
    }
    Ok(found)
}

/// The one project that is called so: for writing, where a guess would file something under the wrong one.
pub(super) async fn find_one(connection: &mut PgConnection, who: Who, name: &str) -> Result<ProjectId, StoreError> {
    let found = find_by_name(connection, who, name).await?;
    if let [id] = found[..] {
        return Ok(id);
    }
    Err(ambiguous(connection, name, &found).await?)
}

/// The same for what is noted down: where several are called so, it belongs to one's own.
pub(super) async fn find_own(connection: &mut PgConnection, who: Who, name: &str) -> Result<ProjectId, StoreError> {
    let found = find_by_name(connection, who, name).await?;
    if let [id] = found[..] {
        return Ok(id);
    }
    let ids: Vec<i64> = found.iter().map(|id| id.0).collect();
    let own = sqlx::query_scalar!(
        r#"select id as "id: ProjectId" from mem_projects where id = any($1) and person_id is not distinct from $2"#,
        &ids,
        who.person() as Option<PersonId>,
    )
    .fetch_all(&mut *connection)
    .await?;
    match own[..] {
        [id] => Ok(id),
        _ => Err(ambiguous(connection, name, &found).await?),
    }
}

/// Names each by what tells it from the others.
async fn ambiguous(connection: &mut PgConnection, name: &str, found: &[ProjectId]) -> Result<StoreError, StoreError> {
    let ids: Vec<i64> = found.iter().map(|id| id.0).collect();
    let known = sqlx::query_scalar!(
        r#"select case when person_id is null then coalesce(remote_url, root, identity_key) else identity_key end as "known!"
           from mem_projects where id = any($1) order by id"#,
        &ids,
    )
    .fetch_all(connection)
    .await?;
    Ok(StoreError::AmbiguousProject { name: name.to_owned(), known: known.join(", ") })
}

/// The names of the newest projects, for whoever asked for one that is not there.
async fn known_names(connection: &mut PgConnection, visible: Option<&[i64]>) -> Result<String, StoreError> {
    const MOST: i64 = 12;
    let names = sqlx::query_scalar!(
        "select name from mem_projects
         where merged_into is null and ($2::bigint[] is null or id = any($2)) order by id desc limit $1",
        MOST,
        visible,
    )
    .fetch_all(connection)
    .await?;
    Ok(if names.is_empty() { "none yet".to_owned() } else { names.join(", ") })
}
