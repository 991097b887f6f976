//! `mem_session_events`: what happened in a session besides prompts and calls.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::StoreError;
use crate::event::{Happening, Origin};
use crate::ids::{BackfillRunId, SessionId};

/// Stores the event; `false`: it was there already.
pub(super) async fn insert(
    connection: &mut PgConnection,
    session: SessionId,
    happening: &Happening,
    at: DateTime<Utc>,
    origin: Origin,
) -> Result<bool, StoreError> {
    let stored = sqlx::query!(
        "insert into mem_session_events (session_id, event_key, kind, prompt_id, subject, body, details,
                                         truncated_at_bytes, occurred_at, backfill_run_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict on constraint mem_session_events_session_key_unique do nothing",
        session as SessionId,
        happening.key,
        happening.kind.as_str(),
        happening.prompt_id,
        happening.subject,
        happening.text.as_ref().map(|capped| capped.text.as_str()),
        happening.details,
        happening.text.as_ref().and_then(|capped| capped.truncated_at_bytes),
        at,
        origin.run() as Option<BackfillRunId>,
    )
    .execute(&mut *connection)
    .await?;
    let is_new = stored.rows_affected() > 0;
    if !is_new && origin == Origin::Hook {
        // What a hook has told of is no longer the backfill's to take back.
        sqlx::query!(
            "update mem_session_events set backfill_run_id = null
             where session_id = $1 and event_key = $2 and backfill_run_id is not null",
            session as SessionId,
            happening.key,
        )
        .execute(connection)
        .await?;
    }
    Ok(is_new)
}
