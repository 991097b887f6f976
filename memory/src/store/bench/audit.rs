//! What is in the journal, by the keys under which it was sent.

use chrono::{DateTime, Utc};

use super::super::{Db, StoreError};

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

/// When the first call happened, by the clock of who sent it.
pub async fn earliest(db: &Db) -> Result<Option<DateTime<Utc>>, StoreError> {
    Ok(sqlx::query_scalar!("select min(occurred_at) from mem_tool_calls").fetch_one(db).await?)
}
