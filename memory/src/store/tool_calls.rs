//! `mem_tool_calls`: one row a call, joined to its prompt if that is there already.

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::StoreError;
use crate::event::{Outcome, ToolCall};
use crate::ids::{SessionId, ToolCallId};

/// A call to be stored.
pub(super) struct Call<'a> {
    pub(super) session: SessionId,
    pub(super) call: &'a ToolCall,
    pub(super) working_folder: Option<&'a str>,
    pub(super) occurred_at: DateTime<Utc>,
}

/// Stores the call. `None`: it was there already.
pub(super) async fn insert(connection: &mut PgConnection, new: Call<'_>) -> Result<Option<ToolCallId>, StoreError> {
    let call = new.call;
    let error = match &call.outcome {
        Outcome::Succeeded => None,
        Outcome::Failed { error } => Some(error.as_str()),
    };
    let id = sqlx::query_scalar!(
        r#"with prompt as (
               select id, turn_index from mem_user_prompts
               where session_id = $1 and prompt_id = $3 and prompt is not null
           )
           insert into mem_tool_calls (
               session_id, tool_use_id, prompt_id, prev_user_prompt_id, turn_index, turn_subindex, tool_name, input,
               output_preview, success, error, duration_ms, subagent_id, subagent_type, working_folder, commit_sha,
               content_hash, truncated_at_bytes, occurred_at)
           values (
               $1, $2, $3, (select id from prompt), (select turn_index from prompt),
               (select coalesce(max(turn_subindex) + 1, 0) from mem_tool_calls, prompt where prev_user_prompt_id = prompt.id),
               $4, $5, $6, $7::text is null, $7, $8, $9, $10, $11, $12, $13, $14, $15)
           on conflict on constraint mem_tool_calls_session_tool_use_unique do nothing
           returning id as "id: ToolCallId""#,
        new.session as SessionId,
        call.tool_use_id,
        call.prompt_id,
        call.tool_name,
        call.input,
        call.output_preview,
        error,
        call.duration_ms,
        call.subagent.as_ref().map(|subagent| subagent.id.as_str()),
        call.subagent.as_ref().and_then(|subagent| subagent.kind.as_deref()),
        new.working_folder,
        call.commit_sha,
        content_hash(call),
        call.truncated_at_bytes,
        new.occurred_at,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
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
