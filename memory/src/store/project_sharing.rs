//! Which projects everybody on a server may see. A project is its first recorder's own until the operator shares it; from then on what
//! others do in the same repository belongs to it too.

use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;

use super::project_merges::audit;
use super::{Db, ProjectError, project_names};
use crate::access::{Who, plain_name};
use crate::ids::{PersonId, ProjectId};
use crate::project::{UNFILED_KEY, remote_key};

/// A project that is shared now, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sharing {
    pub project: String,
    /// Whose it is; `None`: the operator's.
    pub person: Option<String>,
    /// By what it is found from now on.
    pub key: String,
    /// Whether anything was to be changed.
    pub is_new: bool,
    /// How many sessions of others are in it.
    pub sessions_of_others: i64,
}

/// Shows a project to everybody. By its remote it is found by all from now on; its folders stay those of its owner's machine.
pub async fn share_project(db: &Db, project: &str) -> Result<Sharing, ProjectError> {
    let mut tx = db.begin().await?;
    let found = Found::named(&mut tx, project).await?;
    if plain_name(&found.key) == UNFILED_KEY {
        return Err(ProjectError::Unfiled(found.name));
    }
    let key = match &found.remote_url {
        Some(remote) => remote_key(remote),
        None => found.key.clone(),
    };
    if key != found.key {
        let taken = sqlx::query_scalar!(
            r#"select identity_key as "key!" from mem_projects where identity_key = $1
               union all select identity_key from mem_project_aliases where identity_key = $1 and project_id <> $2"#,
            key,
            found.id as ProjectId,
        )
        .fetch_optional(&mut *tx)
        .await?;
        if let Some(taken) = taken {
            return Err(ProjectError::SharedKeyTaken { own: found.key, taken });
        }
    }
    let sharing = found.becomes(&mut tx, key, Seen::ByEverybody).await?;
    audit(&mut tx, "share_project", &sharing.project, &json!(sharing)).await?;
    tx.commit().await?;
    Ok(sharing)
}

/// Shows a project to its owner alone. What others recorded in it stays there; what they record from now on is their own.
pub async fn unshare_project(db: &Db, project: &str) -> Result<Sharing, ProjectError> {
    let mut tx = db.begin().await?;
    let found = Found::named(&mut tx, project).await?;
    found.check_merges(&mut tx).await?;
    let key = Who::of_person(found.person).own(plain_name(&found.key));
    let sharing = found.becomes(&mut tx, key, Seen::ByItsOwner).await?;
    audit(&mut tx, "unshare_project", &sharing.project, &json!(sharing)).await?;
    tx.commit().await?;
    Ok(sharing)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    ByEverybody,
    ByItsOwner,
}

/// A project as it was.
struct Found {
    id: ProjectId,
    key: String,
    name: String,
    remote_url: Option<String>,
    person: Option<PersonId>,
    is_shared: bool,
}

impl Found {
    async fn named(connection: &mut PgConnection, project: &str) -> Result<Self, ProjectError> {
        let id = project_names::find_one(connection, Who::Operator, project).await?;
        let found = sqlx::query_as!(
            Self,
            r#"select id as "id: ProjectId", identity_key as key, name, remote_url, person_id as "person: PersonId", is_shared
               from mem_projects where id = $1 for update"#,
            id as ProjectId,
        );
        Ok(found.fetch_one(connection).await?)
    }

    /// By their own keys the owners of projects that were merged into this one would still be led to it.
    async fn check_merges(&self, connection: &mut PgConnection) -> Result<(), ProjectError> {
        let merges = sqlx::query_scalar!(
            r#"select merge.id::text as "id!" from mem_project_merges merge
               join mem_projects source on source.id = merge.from_project_id
               where source.merged_into = $1 and source.person_id is distinct from $2 and merge.undone_at is null
               order by merge.id"#,
            self.id as ProjectId,
            self.person as Option<PersonId>,
        )
        .fetch_all(connection)
        .await?;
        if merges.is_empty() {
            return Ok(());
        }
        Err(ProjectError::HoldsOthers { project: self.name.clone(), merges: merges.join(", ") })
    }

    /// Its former key leads to it still; the places on others' machines lead to it only while they may see it.
    async fn becomes(self, connection: &mut PgConnection, key: String, seen: Seen) -> Result<Sharing, ProjectError> {
        let is_shared = seen == Seen::ByEverybody;
        let changed = sqlx::query!(
            r#"with project as (
                   update mem_projects set identity_key = $2, is_shared = $3 where id = $1 returning person_id
               ), aliases as (
                   delete from mem_project_aliases
                   where project_id = $1
                     and (identity_key = $2
                          or not $3 and starts_with(identity_key, 'person:') and not ($5 <> '' and starts_with(identity_key, $5)))
               ), former as (
                   insert into mem_project_aliases (identity_key, project_id) select $4, $1 where $3 and $4 <> $2
                   on conflict on constraint mem_project_aliases_pkey do nothing
               )
               select (select name from mem_people person where person.id = project.person_id) as person,
                      (select count(*) from mem_sessions
                       where project_id = $1 and person_id is distinct from project.person_id) as "others!"
               from project"#,
            self.id as ProjectId,
            key,
            is_shared,
            self.key,
            Who::of_person(self.person).own(""),
        )
        .fetch_one(connection)
        .await?;
        Ok(Sharing {
            project: self.name,
            person: changed.person,
            is_new: self.is_shared != is_shared,
            sessions_of_others: changed.others,
            key,
        })
    }
}
