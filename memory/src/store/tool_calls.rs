//! `mem_tool_calls`: one row a call, joined to its prompt if that is there already.
//!
//! A call can be told twice, by a hook and by a transcript. Where both know the agent's id, the second finds the first by it and
//! adds what the first did not know. Where the hook has no id, the two find each other by their content, oldest first.

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::tool_call_columns::Columns;
use super::{StoreError, outputs};
use crate::event::{Key, Origin, Outcome, ToolCall};
use crate::ids::{SessionId, ToolCallId};

/// A call to be stored.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) session: SessionId,
    pub(super) call: &'a ToolCall,
    pub(super) working_folder: Option<&'a str>,
    pub(super) occurred_at: DateTime<Utc>,
    pub(super) origin: Origin,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    New(ToolCallId),
    /// It was there, and now tells more than before.
    Amended(ToolCallId),
    Known,
}

/// Stores the call, or what is new about it.
pub(super) async fn store(connection: &mut PgConnection, new: Call<'_>) -> Result<Stored, StoreError> {
    match (new.origin, &new.call.key) {
        (Origin::Hook, Key::Given(_)) => {}
        (Origin::Hook, Key::Derived(id)) => {
            if claim_for_hook(connection, new, id).await? {
                return Ok(Stored::Known);
            }
        }
        (Origin::Transcript { .. }, key) => {
            if let Key::Given(id) = key {
                claim_for_transcript(connection, new, id).await?;
            }
            if let Some(id) = amend(connection, new).await? {
                return Ok(Stored::Amended(id));
            }
        }
    }
    let inserted = insert(connection, &[new]).await?;
    Ok(inserted.into_iter().flatten().next().map_or(Stored::Known, Stored::New))
}

/// Whether the call can be no other row's but its key's, so that calls of this kind are inserted together.
pub(super) fn is_known_by_its_key_alone(origin: Origin, call: &ToolCall) -> bool {
    matches!((origin, &call.key), (Origin::Hook, Key::Given(_)))
}

/// Inserts calls in their order, each joined to its prompt; gives the row of each that is new.
pub(super) async fn insert(
    connection: &mut PgConnection,
    calls: &[Call<'_>],
) -> Result<Vec<Option<ToolCallId>>, StoreError> {
    let mut columns = Columns::default();
    let mut hashes = Vec::with_capacity(calls.len());
    for new in calls {
        let output_hash = match &new.call.output {
            Some(output) => Some(outputs::keep(connection, output).await?),
            None => None,
        };
        hashes.push(output_hash.clone());
        columns.push(new, output_hash);
    }
    let mut inserted = columns.insert(connection).await?;
    // One that is there twice is the first one's.
    let ids: Vec<_> = calls.iter().map(|new| inserted.remove(&(new.session, row_key(&new.call.key).0))).collect();
    let known: Vec<_> = calls.iter().zip(&ids).filter(|(_, id)| id.is_none()).map(|(new, _)| *new).collect();
    take_from_runs(connection, &known).await?;
    // A call that was forgotten is not stored again, nor is its output.
    let unused: Vec<_> =
        hashes.into_iter().zip(&ids).filter(|(_, id)| id.is_none()).filter_map(|(hash, _)| hash).collect();
    outputs::drop_unused(connection, &unused).await?;
    Ok(ids)
}

/// What a hook has told of is no longer the backfill's to take back.
async fn take_from_runs(connection: &mut PgConnection, known: &[Call<'_>]) -> Result<(), StoreError> {
    let of_hooks = known.iter().filter(|call| call.origin == Origin::Hook);
    let (sessions, keys): (Vec<_>, Vec<_>) = of_hooks.map(|call| (call.session.0, row_key(&call.call.key).0)).unzip();
    if keys.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "update mem_tool_calls call set backfill_run_id = null
         from unnest($1::bigint[], $2::text[]) as told (session_id, tool_use_id)
         where call.session_id = told.session_id and call.tool_use_id = told.tool_use_id
           and call.backfill_run_id is not null",
        &sessions,
        &keys,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether the journal has this event already: from the same hook, or from a transcript whose row it then claims.
async fn claim_for_hook(connection: &mut PgConnection, new: Call<'_>, id: &str) -> Result<bool, StoreError> {
    let known = sqlx::query_scalar!(
        r#"with told as (
               select id from mem_tool_calls where session_id = $1 and live_event_id = $2
           ), claimed as (
               update mem_tool_calls set live_event_id = $2, backfill_run_id = null
               where id = (select id from mem_tool_calls
                           where session_id = $1 and origin = 'transcript' and live_event_id is null
                             and tool_name = $3 and input = $4
                           order by occurred_at, id limit 1)
                 and not exists (select from told)
               returning id
           )
           select exists (select from told union all select from claimed) as "known!""#,
        new.session as SessionId,
        id,
        new.call.tool_name,
        new.call.input,
    )
    .fetch_one(connection)
    .await?;
    Ok(known)
}

/// Gives the agent's id to the oldest row of the same content that a hook without one left, unless a row has that id.
async fn claim_for_transcript(connection: &mut PgConnection, new: Call<'_>, id: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "update mem_tool_calls set tool_use_id = $2
         where id = (select id from mem_tool_calls
                     where session_id = $1 and live_event_id is not null and tool_use_id = 'event:' || live_event_id
                       and tool_name = $3 and input = $4
                     order by occurred_at, id limit 1)
           and not exists (select from mem_tool_calls where session_id = $1 and tool_use_id = $2)",
        new.session as SessionId,
        id,
        new.call.tool_name,
        new.call.input,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Adds what the row lacks. What a hook has told of is no longer a backfill's to take back. `None`: there is no such row, or nothing
/// that it lacks.
pub(super) async fn amend(connection: &mut PgConnection, new: Call<'_>) -> Result<Option<ToolCallId>, StoreError> {
    let call = new.call;
    let id = sqlx::query_scalar!(
        r#"update mem_tool_calls set
               success = case when outcome_is_assumed and not $3 then $4::text is null else success end,
               error = case when outcome_is_assumed and not $3 then $4 else error end,
               outcome_is_assumed = outcome_is_assumed and $3,
               output_preview = coalesce(output_preview, $5),
               duration_ms = coalesce(duration_ms, $6),
               commit_sha = coalesce(commit_sha, $7),
               backfill_run_id = case when $8 then null else backfill_run_id end
           where session_id = $1 and tool_use_id = $2
             and ($8 and backfill_run_id is not null or outcome_is_assumed and not $3 or output_preview is null and $5::text is not null
                  or duration_ms is null and $6::bigint is not null or commit_sha is null and $7::text is not null)
           returning id as "id: ToolCallId""#,
        new.session as SessionId,
        row_key(&call.key).0,
        call.outcome == Outcome::Assumed,
        error_of(call),
        call.output_preview,
        call.duration_ms,
        call.commit_sha,
        new.origin == Origin::Hook,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}

/// The row's key, and the event's id where that is all we have.
pub(super) fn row_key(key: &Key) -> (String, Option<&str>) {
    match key {
        Key::Given(id) => (id.clone(), None),
        Key::Derived(id) => (format!("event:{id}"), Some(id)),
    }
}

pub(super) fn error_of(call: &ToolCall) -> Option<&str> {
    match &call.outcome {
        Outcome::Failed { error } => Some(error),
        Outcome::Succeeded | Outcome::Assumed => None,
    }
}

/// SHA-256 of what the call was, whenever and wherever it ran: tool, input and outcome.
pub(super) fn content_hash(call: &ToolCall) -> Vec<u8> {
    let mut hash = Sha256::new();
    for part in [call.tool_name.as_str(), &call.input.to_string(), call.output_preview.as_deref().unwrap_or_default()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    if let Outcome::Failed { error } = &call.outcome {
        hash.update(error);
    }
    hash.finalize().to_vec()
}
