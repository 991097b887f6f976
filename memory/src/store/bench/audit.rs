//! What is in the journal, by the keys under which it was sent, and what hangs in the queue.

use chrono::{DateTime, Utc};

use super::super::{Db, StoreError};
use crate::ids::{DocumentId, DocumentKind};
use crate::queue::LEASE;

/// A prompt or a call, as its agent names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRow {
    pub session: String,
    /// The prompt's id or the call's.
    pub key: String,
}

/// Every prompt and every call.
pub async fn journal_rows(db: &Db) -> Result<Vec<JournalRow>, StoreError> {
    let rows = sqlx::query_as!(
        JournalRow,
        r#"select session.external_id as "session!", prompt.prompt_id as "key!"
           from mem_user_prompts prompt join mem_sessions session on session.id = prompt.session_id
           union all
           select session.external_id, call.tool_use_id
           from mem_tool_calls call join mem_sessions session on session.id = call.session_id"#
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// How many prompts and calls cannot be found by their words, because the index has no row for them.
pub async fn unindexed(db: &Db) -> Result<i64, StoreError> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from (
               select 'prompt' as kind, id from mem_user_prompts union all select 'call', id from mem_tool_calls
           ) document
           where not exists (select from mem_search_index where document_kind = kind and document_id = document.id)"#
    )
    .fetch_one(db)
    .await?;
    Ok(count)
}

/// Whether every document has its vector, as the server has counted them, and the lexemes of all but the last have been counted.
pub async fn is_indexed(db: &Db) -> Result<bool, StoreError> {
    let is_indexed = sqlx::query_scalar!(
        r#"select not exists (select from mem_search_index where embedding is null)
                  and (select documents * 1.2 from mem_search_statistics) >= (select count(*) from mem_search_index)
                  and (select documents_without_vector = 0 from mem_search_statistics)
                      as "is_indexed!""#
    )
    .fetch_one(db)
    .await?;
    Ok(is_indexed)
}

/// Each prompt by the id under which a search gives it: its session's name and its own.
pub async fn prompt_keys(db: &Db) -> Result<Vec<(String, (String, String))>, StoreError> {
    let rows = sqlx::query!(
        "select prompt.id, session.external_id, prompt.prompt_id
         from mem_user_prompts prompt join mem_sessions session on session.id = prompt.session_id"
    )
    .fetch_all(db)
    .await?;
    let key = |row: i64| DocumentId { kind: DocumentKind::Prompt, row }.to_string();
    Ok(rows.into_iter().map(|row| (key(row.id), (row.external_id, row.prompt_id))).collect())
}

/// When the first call happened, by the clock of who sent it.
pub async fn earliest(db: &Db) -> Result<Option<DateTime<Utc>>, StoreError> {
    Ok(sqlx::query_scalar!("select min(occurred_at) from mem_tool_calls").fetch_one(db).await?)
}

/// The leases that were given out before a moment.
#[derive(Debug, Clone, Copy)]
pub struct Leases {
    /// None of them runs longer, by the database's clock.
    until: DateTime<Utc>,
}

/// Jobs that have not come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftJobs {
    /// Held under one of the leases, running or run out.
    pub leased: i64,
    pub dead: i64,
}

impl Leases {
    /// Those given out until now.
    pub async fn now(db: &Db) -> Result<Self, StoreError> {
        let now = sqlx::query_scalar!(r#"select now() as "now!""#).fetch_one(db).await?;
        Ok(Self { until: now + LEASE })
    }

    /// A job that another worker has taken since is not among them.
    pub async fn left(self, db: &Db) -> Result<LeftJobs, StoreError> {
        let left = sqlx::query_as!(
            LeftJobs,
            r#"select count(*) filter (where status = 'pending' and locked_until <= $1) as "leased!",
                      count(*) filter (where status = 'dead') as "dead!"
               from mem_observation_queue"#,
            self.until,
        )
        .fetch_one(db)
        .await?;
        Ok(left)
    }
}
