//! `mem_audit_log`: who did what that cannot be undone, or lets others do something. Names and numbers, never content.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgExecutor;

use super::{Db, StoreError};

/// Something that was done.
#[derive(Debug, Clone)]
pub struct Act<'a> {
    /// `operator`, `server`, or a token's name.
    pub actor: &'a str,
    pub action: &'a str,
    pub subject: Option<&'a str>,
    /// An object.
    pub details: Value,
}

/// The same, as it is read later.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditEntry {
    pub occurred_at: DateTime<Utc>,
    pub actor: String,
    pub action: String,
    pub subject: Option<String>,
    pub details: Value,
}

pub async fn note(executor: impl PgExecutor<'_>, act: Act<'_>) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into mem_audit_log (actor, action, subject, details) values ($1, $2, $3, $4)",
        act.actor,
        act.action,
        act.subject,
        act.details,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// The newest entries first.
pub async fn list(db: &Db, most: i64) -> Result<Vec<AuditEntry>, StoreError> {
    let entries = sqlx::query_as!(
        AuditEntry,
        "select occurred_at, actor, action, subject, details from mem_audit_log order by occurred_at desc, id desc limit $1",
        most,
    )
    .fetch_all(db)
    .await?;
    Ok(entries)
}
