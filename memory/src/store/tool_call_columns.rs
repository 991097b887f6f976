//! Calls as the columns of one insert.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use super::StoreError;
use super::tool_calls::{Call, content_hash, error_of, row_key};
use crate::event::Outcome;
use crate::ids::{SessionId, ToolCallId};

/// One entry a call in each. No call is in it twice.
#[derive(Default)]
pub(super) struct Columns {
    keys: HashSet<(SessionId, String)>,
    session: Vec<i64>,
    tool_use_id: Vec<String>,
    prompt_id: Vec<Option<String>>,
    tool_name: Vec<String>,
    input: Vec<Value>,
    output_preview: Vec<Option<String>>,
    error: Vec<Option<String>>,
    duration_ms: Vec<Option<i64>>,
    subagent_id: Vec<Option<String>>,
    subagent_type: Vec<Option<String>>,
    working_folder: Vec<Option<String>>,
    commit_sha: Vec<Option<String>>,
    content_hash: Vec<Vec<u8>>,
    truncated_at_bytes: Vec<Option<i64>>,
    occurred_at: Vec<DateTime<Utc>>,
    outcome_is_assumed: Vec<bool>,
    output_hash: Vec<Option<Vec<u8>>>,
    live_event_id: Vec<Option<String>>,
    origin: Vec<String>,
    backfill_run: Vec<Option<i64>>,
}

impl Columns {
    pub(super) fn push(&mut self, new: &Call<'_>, output_hash: Option<Vec<u8>>) {
        let call = new.call;
        let (key, live_event_id) = row_key(&call.key);
        if !self.keys.insert((new.session, key.clone())) {
            return;
        }
        let subagent = call.subagent.as_ref();
        self.session.push(new.session.0);
        self.tool_use_id.push(key);
        self.prompt_id.push(call.prompt_id.clone());
        self.tool_name.push(call.tool_name.clone());
        self.input.push(call.input.clone());
        self.output_preview.push(call.output_preview.clone());
        self.error.push(error_of(call).map(str::to_owned));
        self.duration_ms.push(call.duration_ms);
        self.subagent_id.push(subagent.map(|subagent| subagent.id.clone()));
        self.subagent_type.push(subagent.and_then(|subagent| subagent.kind.clone()));
        self.working_folder.push(new.working_folder.map(str::to_owned));
        self.commit_sha.push(call.commit_sha.clone());
        self.content_hash.push(content_hash(call));
        self.truncated_at_bytes.push(call.truncated_at_bytes);
        self.occurred_at.push(new.occurred_at);
        self.outcome_is_assumed.push(call.outcome == Outcome::Assumed);
        self.output_hash.push(output_hash);
        self.live_event_id.push(live_event_id.map(str::to_owned));
        self.origin.push(new.origin.as_str().to_owned());
        self.backfill_run.push(new.origin.run().map(|run| run.0));
    }

    /// Inserts them in their order; gives those that are new.
    pub(super) async fn insert(
        self,
        connection: &mut PgConnection,
    ) -> Result<HashMap<(SessionId, String), ToolCallId>, StoreError> {
        // Subqueries where a join would do: a plan made while the tables were small must not scan them when they are large.
        let rows = sqlx::query!(
            r#"with new as (
                   select * from unnest(
                       $1::bigint[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::text[], $7::text[], $8::bigint[],
                       $9::text[], $10::text[], $11::text[], $12::text[], $13::bytea[], $14::bigint[], $15::timestamptz[],
                       $16::boolean[], $17::bytea[], $18::text[], $19::text[], $20::bigint[]) with ordinality
                   as new (session_id, tool_use_id, prompt_id, tool_name, input, output_preview, error, duration_ms,
                           subagent_id, subagent_type, working_folder, commit_sha, content_hash, truncated_at_bytes,
                           occurred_at, outcome_is_assumed, output_hash, live_event_id, origin, backfill_run_id, position)
               ), unknown as (
                   select new.*, case
                       when prompt_id is not null then (
                           select id from mem_user_prompts prompt
                           where prompt.session_id = new.session_id and prompt.prompt_id = new.prompt_id
                             and prompt.prompt is not null)
                       else (
                           select id from mem_user_prompts prompt
                           where prompt.session_id = new.session_id and prompt.prompt is not null
                             and prompt.occurred_at <= new.occurred_at
                           order by prompt.occurred_at desc, id desc limit 1)
                       end as served
                   from new
                   where (select id from mem_tool_calls known where known.session_id = new.session_id
                            and known.tool_use_id = new.tool_use_id) is null
               ), turn as (
                   select served,
                          (select turn_index from mem_user_prompts where id = served) as turn_index,
                          (select coalesce(max(turn_subindex) + 1, 0) from mem_tool_calls
                           where prev_user_prompt_id = served) as next_subindex
                   from (select distinct served from unknown where served is not null) turns
               )
               insert into mem_tool_calls (
                   session_id, tool_use_id, prompt_id, prev_user_prompt_id, turn_index, turn_subindex, tool_name, input,
                   output_preview, success, error, duration_ms, subagent_id, subagent_type, working_folder, commit_sha,
                   content_hash, truncated_at_bytes, occurred_at, outcome_is_assumed, output_hash, live_event_id, origin,
                   backfill_run_id)
               select session_id, tool_use_id, prompt_id, unknown.served, turn_index,
                      coalesce(next_subindex + row_number() over (partition by unknown.served order by position) - 1, 0),
                      tool_name, input, output_preview, error is null, error, duration_ms, subagent_id, subagent_type,
                      working_folder, commit_sha, content_hash, truncated_at_bytes, occurred_at, outcome_is_assumed,
                      output_hash, live_event_id, origin, backfill_run_id
               from unknown left join turn on turn.served = unknown.served
               order by position
               on conflict on constraint mem_tool_calls_session_tool_use_unique do nothing
               returning id as "id: ToolCallId", session_id as "session_id: SessionId", tool_use_id"#,
            &self.session,
            &self.tool_use_id,
            &self.prompt_id as &[Option<String>],
            &self.tool_name,
            &self.input,
            &self.output_preview as &[Option<String>],
            &self.error as &[Option<String>],
            &self.duration_ms as &[Option<i64>],
            &self.subagent_id as &[Option<String>],
            &self.subagent_type as &[Option<String>],
            &self.working_folder as &[Option<String>],
            &self.commit_sha as &[Option<String>],
            &self.content_hash,
            &self.truncated_at_bytes as &[Option<i64>],
            &self.occurred_at,
            &self.outcome_is_assumed,
            &self.output_hash as &[Option<Vec<u8>>],
            &self.live_event_id as &[Option<String>],
            &self.origin,
            &self.backfill_run as &[Option<i64>],
        )
        .fetch_all(connection)
        .await?;
        Ok(rows.into_iter().map(|row| ((row.session_id, row.tool_use_id), row.id)).collect())
    }
}
