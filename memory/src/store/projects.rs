//! `mem_projects` and the aliases that lead to them.

use sqlx::PgConnection;

use super::StoreError;
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

/// Finds projects by what a person would call one: its name, its remote, its folder or a folder inside it.
pub async fn find_by_name(connection: &mut PgConnection, name: &str) -> Result<Vec<ProjectId>, StoreError> {
    let name = name.trim().trim_end_matches('/');
    let found = sqlx::query_scalar!(
        r#"select id as "id: ProjectId" from mem_projects
           where lower(name) = lower($1) or lower(remote_url) = lower($1) or identity_key = $1
              or root = $1 or starts_with($1, root || '/')
           order by id"#,
        name,
    )
    .fetch_all(&mut *connection)
    .await?;
    if found.is_empty() {
        return Err(StoreError::UnknownProject { name: name.to_owned(), known: known_names(connection).await? });
    }
    Ok(found)
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
    ProjectIdentity { key: format!("name:{name}"), name: name.to_owned(), root: None, remote_url: None }
}
