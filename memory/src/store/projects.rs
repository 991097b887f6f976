//! `mem_projects` and the aliases that lead to them.

use sqlx::PgConnection;

use super::StoreError;
use crate::event::bounded_id;
use crate::ids::ProjectId;
use crate::project::ProjectIdentity;

/// The project's row, made if it is new. An alias wins over a row of its own.
pub(super) async fn resolve(
    connection: &mut PgConnection,
    identity: &ProjectIdentity,
) -> Result<ProjectId, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select coalesce(
               (select project_id from mem_project_aliases where identity_key = $1),
               (select id from mem_projects where identity_key = $1)
           ) as "id: ProjectId""#,
        identity.key,
    )
    .fetch_one(&mut *connection)
    .await?;
    if let Some(id) = found {
        return Ok(id);
    }
    if let Some(id) = adopt(connection, identity).await? {
        return Ok(id);
    }
    // Another server may have made it since: then the no-op update returns that row.
    let id = sqlx::query_scalar!(
        r#"insert into mem_projects (identity_key, name, root, remote_url)
           values ($1, $2, $3, $4)
           on conflict on constraint mem_projects_identity_key_unique do update set name = mem_projects.name
           returning id as "id: ProjectId""#,
        identity.key,
        identity.name,
        identity.root,
        identity.remote_url,
    )
    .fetch_one(connection)
    .await?;
    Ok(id)
}

/// A repository that got its remote after it was first seen keeps its row: the former key becomes an alias.
async fn adopt(connection: &mut PgConnection, identity: &ProjectIdentity) -> Result<Option<ProjectId>, StoreError> {
    let Some(former_key) = &identity.former_key else { return Ok(None) };
    let id = sqlx::query_scalar!(
        r#"with adopted as (
               update mem_projects set identity_key = $1, name = $3, remote_url = $4 where identity_key = $2 returning id
           )
           insert into mem_project_aliases (identity_key, project_id) select $2, id from adopted
           returning project_id as "id: ProjectId""#,
        identity.key,
        former_key,
        identity.name,
        identity.remote_url,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}

/// Finds projects by what a person would call one: its name, its remote, its key, its folder, or a folder inside it. All
/// that are called so, or the one whose folder is nearest above.
pub async fn find_by_name(connection: &mut PgConnection, name: &str) -> Result<Vec<ProjectId>, StoreError> {
    let name = name.trim().trim_end_matches('/');
    let found = sqlx::query_scalar!(
        r#"with called as (
               select id from mem_projects
               where lower(name) = lower($1) or lower(remote_url) = lower($1) or identity_key = $1 or root = $1
           ), around as (
               select id from mem_projects where starts_with($1, root || '/') order by length(root) desc limit 1
           )
           select id as "id!: ProjectId" from called
           union all
           select id from around where not exists (select from called)
           order by 1"#,
        name,
    )
    .fetch_all(&mut *connection)
    .await?;
    if found.is_empty() {
        return Err(StoreError::UnknownProject { name: name.to_owned(), known: known_names(connection).await? });
    }
    Ok(found)
}

/// The one project that is called so: for writing, where a guess would file something under the wrong one.
pub(super) async fn find_one(connection: &mut PgConnection, name: &str) -> Result<ProjectId, StoreError> {
    let found = find_by_name(connection, name).await?;
    if let [id] = found[..] {
        return Ok(id);
    }
    let ids: Vec<i64> = found.iter().map(|id| id.0).collect();
    let known = sqlx::query_scalar!(
        r#"select coalesce(remote_url, root, identity_key) as "known!" from mem_projects where id = any($1) order by id"#,
        &ids,
    )
    .fetch_all(connection)
    .await?;
    Err(StoreError::AmbiguousProject { name: name.to_owned(), known: known.join(", ") })
}

/// The names of the newest projects, for whoever asked for one that is not there.
async fn known_names(connection: &mut PgConnection) -> Result<String, StoreError> {
    const MOST: i64 = 12;
    let names = sqlx::query_scalar!("select name from mem_projects order by id desc limit $1", MOST)
        .fetch_all(connection)
        .await?;
    Ok(if names.is_empty() { "none yet".to_owned() } else { names.join(", ") })
}

/// A project that is known by nothing but the name somebody gave it.
pub(super) fn named(name: &str) -> ProjectIdentity {
    ProjectIdentity {
        key: bounded_id(format!("name:{name}")),
        name: name.to_owned(),
        root: None,
        remote_url: None,
        former_key: None,
    }
}
