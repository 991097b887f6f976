//! What a person decides about projects: by what else one is known, and what is none of its own.
//!
//! Keys that are chosen here win over every rule by which events find their project.

use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;

use super::project_merges::{audit, move_documents, wait_for_long_statements};
use super::{Db, ProjectError, StoreError, project_aliases, project_names};
use crate::access::Who;
use crate::ids::ProjectId;
use crate::project::{common_key, folder_key, name_of, normalise_remote};

/// Which part of a project is to be one of its own.
#[derive(Debug, Clone, Copy)]
pub enum SplitBy<'a> {
    /// The top folder of a checkout or a worktree.
    Folder(&'a str),
    Remote(&'a str),
}

/// What a split moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitProject {
    pub from: String,
    pub name: String,
    /// By which the new project is known.
    pub keys: Vec<String>,
    pub sessions: usize,
}

/// Gives what was recorded in a folder or under a remote a project of its own, and sends what will be there too.
pub async fn split_project(db: &Db, project: &str, by: SplitBy<'_>) -> Result<SplitProject, ProjectError> {
    let mut tx = db.begin().await?;
    wait_for_long_statements(&mut tx).await?;
    let source = project_names::find_one(&mut tx, Who::Operator, project).await?;
    let row = sqlx::query!("select name, identity_key from mem_projects where id = $1 for update", source as ProjectId)
        .fetch_one(&mut *tx)
        .await?;
    let part = Part::of(by);
    let keys = aliases_of(&mut tx, source, &part).await?;
    let Some(first) = keys.first() else {
        if part.keys().contains(&row.identity_key) {
            return Err(ProjectError::OwnKey { key: row.identity_key, project: row.name });
        }
        let known = known_aliases(&mut tx, source).await?;
        return Err(ProjectError::UnknownAlias { what: part.what, project: row.name, known });
    };
    let Part { folder, remote, what } = &part;
    // One that was split off and merged back has a row already.
    let own = sqlx::query_scalar!(
        r#"insert into mem_projects (identity_key, name, root, remote_url, person_id, is_shared)
           select $1, $2, $3, $4, person_id, is_shared from mem_projects where id = $5
           on conflict on constraint mem_projects_identity_key_unique do update set merged_into = null
               where mem_projects.merged_into = $5
           returning id as "id: ProjectId""#,
        first,
        name_of(what),
        folder.as_deref(),
        remote.as_deref(),
        source as ProjectId,
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or_else(|| ProjectError::AliasTaken { key: first.clone(), project: row.name.clone() })?;
    sqlx::query!(
        "update mem_project_aliases set project_id = $2, is_chosen = true where identity_key = any($1)",
        &keys,
        own as ProjectId,
    )
    .execute(&mut *tx)
    .await?;
    if let Some(folder) = folder {
        sqlx::query!("update mem_projects set root = null where id = $1 and root = $2", source as ProjectId, folder)
            .execute(&mut *tx)
            .await?;
    }
    let sessions = sqlx::query_scalar!(
        r#"update mem_sessions set project_id = $2
           where project_id = $1
             and (project_key = any($3) or worktree = $4
                  or (worktree is null and (working_folder = $4 or starts_with(working_folder, $4 || '/'))))
           returning id"#,
        source as ProjectId,
        own as ProjectId,
        &keys,
        folder.as_deref(),
    )
    .fetch_all(&mut *tx)
    .await?;
    // What was told of a session goes with it.
    let digests = sqlx::query_scalar!(
        "update mem_observations set project_id = $1
         where session_id = any($2) and kind = 'digest' and source = 'worker' returning id",
        own as ProjectId,
        &sessions,
    )
    .fetch_all(&mut *tx)
    .await?;
    move_documents(&mut tx, own, &sessions, &digests).await?;
    let split = SplitProject { from: row.name, name: name_of(what), keys, sessions: sessions.len() };
    audit(&mut tx, "split_project", &split.from, &json!(split)).await?;
    tx.commit().await?;
    Ok(split)
}

/// From now on what comes from that folder, remote or key belongs to the project. Returns the keys that were added.
pub async fn alias_project(db: &Db, project: &str, key_or_place: &str) -> Result<Vec<String>, ProjectError> {
    let mut tx = db.begin().await?;
    let target = project_names::find_one(&mut tx, Who::Operator, project).await?;
    let keys = keys_of(key_or_place.trim());
    for known in project_aliases::known(&mut tx, Who::Operator, &keys).await? {
        if known.project != target {
            let owner = sqlx::query_scalar!("select name from mem_projects where id = $1", known.project as ProjectId)
                .fetch_one(&mut *tx)
                .await?;
            return Err(ProjectError::AliasTaken { key: known.key, project: owner });
        }
    }
    sqlx::query!(
        "insert into mem_project_aliases (identity_key, project_id, is_chosen)
         select key, $2, true from unnest($1::text[]) key
         on conflict on constraint mem_project_aliases_pkey do update set is_chosen = true",
        &keys,
        target as ProjectId,
    )
    .execute(&mut *tx)
    .await?;
    audit(&mut tx, "alias_project", project, &json!({ "keys": keys })).await?;
    tx.commit().await?;
    Ok(keys)
}

/// A part of a project as it is written into rows.
struct Part {
    folder: Option<String>,
    remote: Option<String>,
    what: String,
}

impl Part {
    fn of(by: SplitBy<'_>) -> Self {
        match by {
            SplitBy::Folder(folder) => {
                let folder = folder.trim_end_matches('/').to_owned();
                Self { what: folder.clone(), folder: Some(folder), remote: None }
            }
            SplitBy::Remote(remote) => {
                let remote = normalise_remote(remote).unwrap_or_else(|| remote.to_owned());
                Self { what: remote.clone(), folder: None, remote: Some(remote) }
            }
        }
    }

    fn keys(&self) -> Vec<String> {
        match &self.folder {
            Some(folder) => places_of(folder),
            None => vec![format!("remote:{}", self.what)],
        }
    }
}

/// The aliases of a project that are about that part, the folder's own before its repository's.
async fn aliases_of(connection: &mut PgConnection, project: ProjectId, part: &Part) -> Result<Vec<String>, StoreError> {
    let keys = part.keys();
    let found = sqlx::query_scalar!(
        "select identity_key from mem_project_aliases
         where project_id = $1
           and (identity_key = any($2)
                or split_part(regexp_replace(identity_key, '^person:\\d+/', ''), '#', 1) = any($2))
         order by identity_key ~ '^(person:\\d+/)?git:', identity_key",
        project as ProjectId,
        &keys,
    )
    .fetch_all(connection)
    .await?;
    Ok(found)
}

async fn known_aliases(connection: &mut PgConnection, project: ProjectId) -> Result<String, StoreError> {
    let known = sqlx::query_scalar!(
        "select identity_key from mem_project_aliases
         where project_id = $1 and identity_key !~ '^(person:\\d+/)?git:' order by identity_key",
        project as ProjectId,
    )
    .fetch_all(connection)
    .await?;
    Ok(if known.is_empty() { "none".to_owned() } else { known.join(", ") })
}

/// A key as it is, a remote in any spelling, or a folder.
fn keys_of(text: &str) -> Vec<String> {
    if ["remote:", "git:", "folder:", "name:", "worktree:", "person:"].iter().any(|kind| text.starts_with(kind)) {
        return vec![text.to_owned()];
    }
    match normalise_remote(text) {
        Some(remote) => vec![format!("remote:{remote}")],
        None => places_of(text),
    }
}

fn places_of(folder: &str) -> Vec<String> {
    let folder = folder.trim_end_matches('/');
    vec![folder_key(folder), common_key(&format!("{folder}/.git")), common_key(folder)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_keys_remotes_and_folders() {
        assert_eq!(keys_of("remote:example.com/a/b"), ["remote:example.com/a/b"]);
        assert_eq!(keys_of("git@example.com:a/b.git"), ["remote:example.com/a/b"]);
        assert_eq!(keys_of("/srv/a/"), ["folder:/srv/a", "git:/srv/a/.git", "git:/srv/a"]);
    }
}
