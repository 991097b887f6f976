//! Backups as the journal knows them: whether they still come. The files themselves are the operator's.

use chrono::{DateTime, Utc};

use super::audit::{self, Act};
use super::{Db, StoreError};

const MADE: &str = "backup";
const FAILED: &str = "backup_failed";
const SCHEDULED: &str = "backups_scheduled";
const ENDED: &str = "backups_unscheduled";

/// What the server knows of backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupNews {
    /// Since when one is made each day; nothing where nobody asked for it.
    pub scheduled_since: Option<DateTime<Utc>>,
    pub last_made_at: Option<DateTime<Utc>>,
    pub last_failed_at: Option<DateTime<Utc>>,
}

/// Notes that a backup was made, or could not be.
pub async fn note_backup(db: &Db, succeeded: bool) -> Result<(), StoreError> {
    note(db, if succeeded { MADE } else { FAILED }).await
}

/// Notes that one is made each day from now on, or not any more.
pub async fn note_schedule(db: &Db, wanted: bool) -> Result<(), StoreError> {
    note(db, if wanted { SCHEDULED } else { ENDED }).await
}

async fn note(db: &Db, action: &str) -> Result<(), StoreError> {
    let details = serde_json::json!({});
    audit::note(db, Act { actor: "operator", action, subject: None, details }).await
}

pub async fn backup_news(db: &Db) -> Result<BackupNews, StoreError> {
    let row = sqlx::query!(
        r#"select max(occurred_at) filter (where action = $1) as last_made_at,
                  max(occurred_at) filter (where action = $2) as scheduled_at,
                  max(occurred_at) filter (where action = $3) as ended_at,
                  max(occurred_at) filter (where action = $4) as last_failed_at
           from mem_audit_log where action in ($1, $2, $3, $4)"#,
        MADE,
        SCHEDULED,
        ENDED,
        FAILED,
    )
    .fetch_one(db)
    .await?;
    let scheduled_since = row.scheduled_at.filter(|at| row.ended_at.is_none_or(|ended| ended < *at));
    Ok(BackupNews { scheduled_since, last_made_at: row.last_made_at, last_failed_at: row.last_failed_at })
}
