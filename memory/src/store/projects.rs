//! `mem_projects`: which row a checkout means, also after its remote was renamed, its folder moved or its worktree removed.
//!
//! The rules, first match wins: what a person chose; the remote; the same repository under another remote, at another place or
//! before it had one; else a new project. What was seen is remembered as aliases (`project_aliases`).

use sqlx::PgConnection;

use super::StoreError;
use super::project_aliases::{self, Known};
use crate::access::Who;
use crate::event::bounded_id;
use crate::ids::{PersonId, ProjectId};
use crate::project::{Place, ProjectIdentity, RepositoryPlace};

/// A project's row, and the key under which it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) id: ProjectId,
    pub(super) key: String,
}

/// The project's row, made if it is new. An alias wins over a row of its own, and a merged project leads to the one it is in.
pub(super) async fn resolve(
    connection: &mut PgConnection,
    identity: &ProjectIdentity,
) -> Result<ProjectId, StoreError> {
    match &identity.place {
        Place::None => {
            let known = project_aliases::known(connection, identity.who, std::slice::from_ref(&identity.key)).await?;
            match known.first() {
                Some(known) => Ok(known.project),
                None => create(connection, identity).await,
            }
        }
        Place::Folder { above } => resolve_folder(connection, identity, above).await,
        Place::Worktree { root_key } => resolve_worktree(connection, identity, root_key).await,
        Place::Repository(place) => resolve_repository(connection, identity, place).await,
    }
}

/// A folder that is no repository's may lie where one was: then it belongs to the nearest. Projects that are folders themselves
/// take in nothing below them, else one session in `~/code` would own all of it.
async fn resolve_folder(
    connection: &mut PgConnection,
    identity: &ProjectIdentity,
    above: &[String],
) -> Result<ProjectId, StoreError> {
    let mut keys = above.to_vec();
    keys.push(identity.key.clone());
    let known = project_aliases::known(connection, identity.who, &keys).await?;
    let nearest = above.iter().find_map(|key| known.iter().find(|known| known.is_alias && known.key == *key));
    let own = || known.iter().find(|known| known.key == identity.key);
    match nearest.or_else(own) {
        Some(known) => Ok(known.project),
        None => create(connection, identity).await,
    }
}

async fn resolve_worktree(
    connection: &mut PgConnection,
    identity: &ProjectIdentity,
    root_key: &String,
) -> Result<ProjectId, StoreError> {
    let known = project_aliases::known(connection, identity.who, &[identity.key.clone(), root_key.clone()]).await?;
    let find = |key: &String| known.iter().find(|known| known.key == *key);
    if let Some(chosen) = find(root_key).filter(|known| known.is_chosen) {
        return Ok(chosen.project);
    }
    let project = match find(&identity.key) {
        Some(known) => known.project,
        None => create(connection, identity).await?,
    };
    if find(root_key).is_none_or(|known| known.project != project) {
        project_aliases::remember_root(connection, root_key, project).await?;
    }
    Ok(project)
}

async fn resolve_repository(
    connection: &mut PgConnection,
    identity: &ProjectIdentity,
    place: &RepositoryPlace,
) -> Result<ProjectId, StoreError> {
    let mut keys = vec![identity.key.clone(), place.common_key.clone(), place.root_key.clone()];
    keys.extend(place.instance_key.clone());
    // What is a person's own carries their name; what everyone shares does not.
    let shared_key = identity.shared_key().filter(|_| identity.who != Who::Operator);
    keys.extend(shared_key.clone());
    let known = project_aliases::known(connection, identity.who, &keys).await?;
    let find = |key: &String| known.iter().find(|known| known.key == *key);
    let instance = place.instance_key.as_ref().and_then(find);
    // Another repository may have been here: then what is known of the place is not about this one.
    let here = find(&place.common_key).filter(|known| match (known.created_at_us, place.instance.created_at_us) {
        (Some(then), Some(now)) => then == now,
        _ => true,
    });
    let root = find(&place.root_key);

    if let Some(chosen) = root.filter(|known| known.is_chosen) {
        return Ok(chosen.project);
    }
    let chosen = instance.into_iter().chain(here).find(|known| known.is_chosen);
    let own = identity.remote_url.as_ref().and_then(|_| find(&identity.key));
    let remote = shared_key.as_ref().and_then(find).filter(|known| known.is_shared).or(own);
    let project = if let Some(known) = chosen.or(remote) {
        known.project
    } else {
        let kept = match former(connection, (identity.who, place), instance, here, root).await? {
            Some(former) => keep(connection, identity, &former).await?,
            None => None,
        };
        match kept {
            Some(project) => project,
            None => create(connection, identity).await?,
        }
    };
    project_aliases::remember_repository(connection, place, project, &known).await?;
    Ok(project)
}

/// The project that a repository had before.
struct Former {
    project: ProjectId,
    how: Trace,
}

/// How a repository is known to be the same as before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trace {
    /// By when it was made, at the same place.
    Proven,
    /// By when it was made and its number on the disk, at another place.
    Moved,
    /// By its place alone: an older hook says no more.
    Place,
    /// The folder was worked in before it became a repository.
    Folder,
}

async fn former(
    connection: &mut PgConnection,
    (who, place): (Who, &RepositoryPlace),
    instance: Option<&Known>,
    here: Option<&Known>,
    root: Option<&Known>,
) -> Result<Option<Former>, StoreError> {
    if let Some(known) = instance {
        return Ok(Some(Former { project: known.project, how: Trace::Proven }));
    }
    if let Some(known) = here {
        let is_proven = known.created_at_us.is_some() && place.instance.created_at_us.is_some();
        let how = if is_proven { Trace::Proven } else { Trace::Place };
        return Ok(Some(Former { project: known.project, how }));
    }
    if let (Some(created_at_us), Some(inode)) = (place.instance.created_at_us, place.instance.inode)
        && let Some(project) = project_aliases::find_moved(connection, who, created_at_us, inode).await?
    {
        return Ok(Some(Former { project, how: Trace::Moved }));
    }
    let folder = root.filter(|known| !known.is_alias && !place.is_worktree);
    Ok(folder.map(|known| Former { project: known.project, how: Trace::Folder }))
}

/// Whether the former project is this one, and if so brings its row up to date: the former key becomes an alias.
async fn keep(
    connection: &mut PgConnection,
    identity: &ProjectIdentity,
    former: &Former,
) -> Result<Option<ProjectId>, StoreError> {
    let is_proven = matches!(former.how, Trace::Proven | Trace::Moved);
    if identity.who != Who::Operator && is_shared(connection, former.project).await? {
        // By what a shared one is found is not one person's to change: under a remote of their choice it would take in what others do.
        return Ok(is_proven.then_some(former.project));
    }
    if identity.remote_url.is_none() && former.how != Trace::Folder {
        if former.how == Trace::Moved {
            let root = identity.root.as_deref();
            sqlx::query!("update mem_projects set root = $2 where id = $1", former.project as ProjectId, root)
                .execute(connection)
                .await?;
        }
        return Ok(Some(former.project));
    }
    let id = sqlx::query_scalar!(
        r#"with former as (
               select id, identity_key from mem_projects
               where id = $1 and (remote_url is null or $2)
                 and not exists (select from mem_projects where identity_key = $3)
               for update
           ), kept as (
               update mem_projects set identity_key = $3, name = $4, remote_url = $5, root = coalesce($6, root)
               from former where mem_projects.id = former.id
           )
           insert into mem_project_aliases (identity_key, project_id) select identity_key, id from former
           on conflict on constraint mem_project_aliases_pkey do update set project_id = excluded.project_id
           returning project_id as "id: ProjectId""#,
        former.project as ProjectId,
        is_proven,
        identity.key,
        identity.name,
        identity.remote_url,
        identity.root,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}

/// Another server may have made it since: then the no-op update returns that row.
async fn create(connection: &mut PgConnection, identity: &ProjectIdentity) -> Result<ProjectId, StoreError> {
    let id = sqlx::query_scalar!(
        r#"insert into mem_projects (identity_key, name, root, remote_url, person_id)
           values ($1, $2, $3, $4, $5)
           on conflict on constraint mem_projects_identity_key_unique do update set name = mem_projects.name
           returning coalesce(merged_into, id) as "id!: ProjectId""#,
        identity.key,
        identity.name,
        identity.root,
        identity.remote_url,
        identity.who.person() as Option<PersonId>,
    )
    .fetch_one(connection)
    .await?;
    Ok(id)
}

async fn is_shared(connection: &mut PgConnection, project: ProjectId) -> Result<bool, StoreError> {
    let is_shared = sqlx::query_scalar!("select is_shared from mem_projects where id = $1", project as ProjectId)
        .fetch_one(connection)
        .await?;
    Ok(is_shared)
}

/// A project that is known by nothing but the name somebody gave it.
pub(super) fn named(name: &str) -> ProjectIdentity {
    ProjectIdentity {
        who: Who::Operator,
        key: bounded_id(format!("name:{name}")),
        name: name.to_owned(),
        root: None,
        remote_url: None,
        place: Place::None,
    }
}
