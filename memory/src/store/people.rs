//! `mem_people`: who records on this server beside its operator.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Db, StoreError};
use crate::ids::PersonId;

/// A person, and how much is theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PersonOverview {
    pub id: PersonId,
    pub name: String,
    pub projects: i64,
    pub sessions: i64,
    pub last_event_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// Every person, by name.
pub async fn people(db: &Db) -> Result<Vec<PersonOverview>, StoreError> {
    let people = sqlx::query_as!(
        PersonOverview,
        r#"select id as "id: PersonId", name, created_at,
                  (select count(*) from mem_projects where person_id = person.id and merged_into is null) as "projects!",
                  coalesce(work.sessions, 0) as "sessions!", work.last_event_at
           from mem_people person
           left join (select person_id, count(*) as sessions, max(last_event_at) as last_event_at
                      from mem_sessions where person_id is not null group by person_id) work on work.person_id = person.id
           order by name"#,
    )
    .fetch_all(db)
    .await?;
    Ok(people)
}
