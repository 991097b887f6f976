//! `mem_project_aliases`: by what else a project is known. Events leave traces here; `project_choices` is a person's hand.

use sqlx::PgConnection;

use super::StoreError;
use crate::access::Who;
use crate::ids::{PersonId, ProjectId};
use crate::project::RepositoryPlace;

/// What is known of a key.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) key: String,
    /// The project it leads to, past merges.
    pub(super) project: ProjectId,
    /// Whether it is an alias; otherwise it is the project's own key.
    pub(super) is_alias: bool,
    /// Whether a person said so.
    pub(super) is_chosen: bool,
    /// Whether everybody may see that project.
    pub(super) is_shared: bool,
    /// When the repository at that place was made.
    pub(super) created_at_us: Option<i64>,
    pub(super) inode: Option<i64>,
}

/// What is known of those keys, in no order. A key that leads a person to what they may not see leads nowhere.
pub(super) async fn known(connection: &mut PgConnection, who: Who, keys: &[String]) -> Result<Vec<Known>, StoreError> {
    let known = sqlx::query_as!(
        Known,
        r#"with found as (
               select identity_key, project_id, true as is_alias, is_chosen, repository_created_at_us, repository_inode
               from mem_project_aliases where identity_key = any($1)
               union all
               select identity_key, id, false, false, null, null from mem_projects own
               where identity_key = any($1)
                 and not exists (select from mem_project_aliases alias where alias.identity_key = own.identity_key)
           )
           select found.identity_key as "key!", coalesce(project.merged_into, project.id) as "project!: ProjectId",
                  is_alias as "is_alias!", is_chosen as "is_chosen!", coalesce(target.is_shared, project.is_shared) as "is_shared!",
                  repository_created_at_us as created_at_us, repository_inode as inode
           from found join mem_projects project on project.id = found.project_id
                left join mem_projects target on target.id = project.merged_into
           where $2::bigint is null or coalesce(target.is_shared, project.is_shared)
                 or case when target.id is null then project.person_id else target.person_id end = $2"#,
        keys,
        who.person() as Option<PersonId>,
    )
    .fetch_all(connection)
    .await?;
    Ok(known)
}

/// The project of a repository that was made then and has that number on the disk, wherever it was seen last. On another person's
/// machine the same numbers are another repository.
pub(super) async fn find_moved(
    connection: &mut PgConnection,
    who: Who,
    created_at_us: i64,
    inode: i64,
) -> Result<Option<ProjectId>, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select coalesce(project.merged_into, project.id) as "id!: ProjectId"
           from mem_project_aliases alias join mem_projects project on project.id = alias.project_id
           where repository_created_at_us = $1 and repository_inode = $2
             and ($4::bigint is null or project.merged_into is null and (project.is_shared or project.person_id = $4))
             and case when $3 = '' then not starts_with(alias.identity_key, 'person:') else starts_with(alias.identity_key, $3) end
           order by alias.created_at desc limit 1"#,
        created_at_us,
        inode,
        who.own(""),
        who.person() as Option<PersonId>,
    )
    .fetch_optional(connection)
    .await?;
    Ok(found)
}

/// Remembers where a repository was seen. Writes only what is new, because every process asks again and again.
pub(super) async fn remember_repository(
    connection: &mut PgConnection,
    place: &RepositoryPlace,
    project: ProjectId,
    known: &[Known],
) -> Result<(), StoreError> {
    let find = |key: &String| known.iter().find(|known| known.is_alias && known.key == *key);
    let is_remembered = |key: &String| {
        find(key).is_some_and(|known| {
            known.project == project
                && (place.instance.created_at_us.is_none() || known.created_at_us == place.instance.created_at_us)
                && (place.instance.inode.is_none() || known.inode == place.instance.inode)
        })
    };
    let keys = std::iter::once(&place.common_key).chain(&place.instance_key);
    let new: Vec<String> = keys.filter(|key| !is_remembered(key)).cloned().collect();
    if !new.is_empty() {
        sqlx::query!(
            "insert into mem_project_aliases as alias
                 (identity_key, project_id, repository_created_at_us, repository_inode)
             select key, $2, $3, $4 from unnest($1::text[]) key
             on conflict on constraint mem_project_aliases_pkey do update set
                 project_id = excluded.project_id,
                 is_chosen = alias.is_chosen and alias.project_id = excluded.project_id,
                 repository_created_at_us = coalesce(excluded.repository_created_at_us, alias.repository_created_at_us),
                 repository_inode = coalesce(excluded.repository_inode, alias.repository_inode)",
            &new,
            project as ProjectId,
            place.instance.created_at_us,
            place.instance.inode,
        )
        .execute(&mut *connection)
        .await?;
    }
    if find(&place.root_key).is_none_or(|known| known.project != project) {
        remember_root(connection, &place.root_key, project).await?;
    }
    Ok(())
}

/// Remembers whose working tree lies in a folder. A project that had its own there before has it no longer: a search by that
/// folder must not find it.
pub(super) async fn remember_root(
    connection: &mut PgConnection,
    root_key: &str,
    project: ProjectId,
) -> Result<(), StoreError> {
    sqlx::query!(
        "with left_behind as (
             update mem_projects set root = null
             where coalesce('person:' || person_id || '/', '') || 'folder:' || root = $1 and id <> $2 and merged_into is null
         )
         insert into mem_project_aliases as alias (identity_key, project_id) values ($1, $2)
         on conflict on constraint mem_project_aliases_pkey do update set
             project_id = excluded.project_id, is_chosen = alias.is_chosen and alias.project_id = excluded.project_id",
        root_key,
        project as ProjectId,
    )
    .execute(connection)
    .await?;
    Ok(())
}
