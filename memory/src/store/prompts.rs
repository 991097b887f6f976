//! `mem_user_prompts`, and the calls that waited for their prompt.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::StoreError;
use crate::event::Capped;
use crate::ids::{PromptId, SessionId};

/// A prompt to be stored.
pub(super) struct Prompt<'a> {
    pub(super) session: SessionId,
    pub(super) prompt_id: &'a str,
    pub(super) text: &'a Capped,
    pub(super) source: Option<&'a str>,
    pub(super) occurred_at: DateTime<Utc>,
}

/// Stores the prompt and joins the calls that came before it. `None`: it was there already.
pub(super) async fn submit(connection: &mut PgConnection, prompt: Prompt<'_>) -> Result<Option<PromptId>, StoreError> {
    let id = sqlx::query_scalar!(
        r#"with prompt as (
               insert into mem_user_prompts (session_id, prompt_id, turn_index, prompt, source, truncated_at_bytes, occurred_at)
               values ($1, $2, (select coalesce(max(turn_index) + 1, 0) from mem_user_prompts where session_id = $1),
                       $3, $4, $5, $6)
               on conflict on constraint mem_user_prompts_session_prompt_unique do update set
                   prompt = excluded.prompt, source = excluded.source, truncated_at_bytes = excluded.truncated_at_bytes,
                   occurred_at = excluded.occurred_at
               where mem_user_prompts.prompt is null
               returning id, turn_index
           ), waiting as (
               select id, row_number() over (order by occurred_at, id) - 1 as subindex from mem_tool_calls
               where session_id = $1 and prompt_id = $2 and prev_user_prompt_id is null
           ), joined as (
               update mem_tool_calls
               set prev_user_prompt_id = prompt.id, turn_index = prompt.turn_index, turn_subindex = waiting.subindex
               from prompt, waiting where mem_tool_calls.id = waiting.id
           )
           select id as "id: PromptId" from prompt"#,
        prompt.session as SessionId,
        prompt.prompt_id,
        prompt.text.text,
        prompt.source,
        prompt.text.truncated_at_bytes,
        prompt.occurred_at,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}

/// Puts the turns of a session, and the calls of each, into the order of their time: an event from the spool may come after
/// later ones. Does nothing where the newest event came last, which is the rule.
pub(super) async fn renumber(
    connection: &mut PgConnection,
    session: SessionId,
    arrived: DateTime<Utc>,
) -> Result<(), StoreError> {
    let is_late = sqlx::query_scalar!(
        r#"select exists (select from mem_user_prompts where session_id = $1 and occurred_at > $2)
               or exists (select from mem_tool_calls where session_id = $1 and occurred_at > $2) as "late!""#,
        session as SessionId,
        arrived,
    )
    .fetch_one(&mut *connection)
    .await?;
    if !is_late {
        return Ok(());
    }
    sqlx::query!(
        "update mem_user_prompts prompt set turn_index = ordered.turn_index
         from (select id, row_number() over (order by occurred_at, id) - 1 as turn_index
               from mem_user_prompts where session_id = $1) ordered
         where prompt.id = ordered.id and prompt.turn_index <> ordered.turn_index",
        session as SessionId,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "update mem_tool_calls call set turn_index = ordered.turn_index, turn_subindex = ordered.turn_subindex
         from (select call.id, prompt.turn_index,
                      row_number() over (partition by prompt.id order by call.occurred_at, call.id) - 1 as turn_subindex
               from mem_tool_calls call join mem_user_prompts prompt on prompt.id = call.prev_user_prompt_id
               where call.session_id = $1) ordered
         where call.id = ordered.id
           and (call.turn_index, call.turn_subindex) is distinct from (ordered.turn_index, ordered.turn_subindex)",
        session as SessionId,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether this prompt id is taken by another text: an agent that reuses an id must not cost the person a prompt.
pub(super) async fn is_another_text(
    connection: &mut PgConnection,
    session: SessionId,
    prompt_id: &str,
    text: &str,
) -> Result<bool, StoreError> {
    let other = sqlx::query_scalar!(
        r#"select exists (
               select from mem_user_prompts where session_id = $1 and prompt_id = $2 and prompt <> $3
           ) as "other!""#,
        session as SessionId,
        prompt_id,
        text,
    )
    .fetch_one(connection)
    .await?;
    Ok(other)
}

/// Stores the assistant's closing answer; the newest wins, for a turn may be closed more than once. `None`: nothing changed.
pub(super) async fn answer(
    connection: &mut PgConnection,
    session: SessionId,
    prompt_id: &str,
    answer: &Capped,
    at: DateTime<Utc>,
) -> Result<Option<PromptId>, StoreError> {
    let id = sqlx::query_scalar!(
        r#"insert into mem_user_prompts (session_id, prompt_id, turn_index, answer, answered_at, occurred_at)
           values ($1, $2, (select coalesce(max(turn_index) + 1, 0) from mem_user_prompts where session_id = $1),
                   $3, $4, $4)
           on conflict on constraint mem_user_prompts_session_prompt_unique do update set
               answer = excluded.answer, answered_at = excluded.answered_at
           where mem_user_prompts.answered_at is null or mem_user_prompts.answered_at < excluded.answered_at
           returning id as "id: PromptId""#,
        session as SessionId,
        prompt_id,
        answer.text,
        at,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}
