//! `mem_user_prompts`, and the calls that waited for their prompt.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::StoreError;
use super::tool_calls::row_key;
use crate::event::{Capped, Key, Origin};
use crate::ids::{BackfillRunId, PromptId, SessionId};

/// The source of a message that was sent while the agent worked on another.
pub(crate) const QUEUED: &str = "queued";

/// A prompt to be stored.
#[derive(Clone, Copy)]
pub(super) struct Prompt<'a> {
    pub(super) session: SessionId,
    pub(super) key: &'a Key,
    pub(super) text: &'a Capped,
    pub(super) source: Option<&'a str>,
    pub(super) occurred_at: DateTime<Utc>,
    pub(super) origin: Origin,
}

/// A prompt that was stored, and its answer, where that came first.
#[derive(Debug)]
pub(super) struct Submitted {
    pub(super) id: PromptId,
    pub(super) answer: Option<String>,
}

/// Stores the prompt and joins the calls that came before it. `None`: it was there already.
pub(super) async fn submit(connection: &mut PgConnection, prompt: Prompt<'_>) -> Result<Option<Submitted>, StoreError> {
    match (prompt.origin, prompt.key) {
        (Origin::Hook, Key::Derived(id)) if claim_for_hook(connection, prompt, id).await? => return Ok(None),
        (Origin::Transcript { .. }, Key::Given(id)) => {
            if is_sent_in_between(prompt, id) && is_told(connection, prompt, id).await? {
                return Ok(None);
            }
            claim_for_transcript(connection, prompt, id).await?;
        }
        _ => {}
    }
    let (key, live_event_id) = row_key(prompt.key);
    let submitted = sqlx::query_as!(
        Submitted,
        r#"with prompt as (
               insert into mem_user_prompts (session_id, prompt_id, turn_index, prompt, source, truncated_at_bytes, occurred_at,
                                             live_event_id, origin, backfill_run_id)
               values ($1, $2, (select coalesce(max(turn_index) + 1, 0) from mem_user_prompts where session_id = $1),
                       $3, $4, $5, $6, $7, $8, $9)
               on conflict on constraint mem_user_prompts_session_prompt_unique do update set
                   prompt = excluded.prompt, source = excluded.source, truncated_at_bytes = excluded.truncated_at_bytes,
                   occurred_at = excluded.occurred_at
               where mem_user_prompts.prompt is null
               returning id, turn_index, answer
           ), waiting as (
               select id, row_number() over (order by occurred_at, id) - 1 as subindex from mem_tool_calls
               where session_id = $1 and prompt_id = $2 and prev_user_prompt_id is null
           ), joined as (
               update mem_tool_calls
               set prev_user_prompt_id = prompt.id, turn_index = prompt.turn_index, turn_subindex = waiting.subindex
               from prompt, waiting where mem_tool_calls.id = waiting.id
           )
           select id as "id: PromptId", answer from prompt"#,
        prompt.session as SessionId,
        key,
        prompt.text.text,
        prompt.source,
        prompt.text.truncated_at_bytes,
        prompt.occurred_at,
        live_event_id,
        prompt.origin.as_str(),
        prompt.origin.run() as Option<BackfillRunId>,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if submitted.is_none() && prompt.origin == Origin::Hook {
        take_from_run(connection, prompt.session, &key).await?;
    }
    Ok(submitted)
}

/// What a hook has told of is no longer the backfill's to take back.
async fn take_from_run(connection: &mut PgConnection, session: SessionId, key: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "update mem_user_prompts set backfill_run_id = null
         where session_id = $1 and prompt_id = $2 and backfill_run_id is not null",
        session as SessionId,
        key,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether a transcript tells of a message that was sent while the agent worked. The agent's hook names such a one otherwise
/// than its transcript, so it is known by the turn and its text.
fn is_sent_in_between(prompt: Prompt<'_>, id: &str) -> bool {
    prompt.source == Some(QUEUED) || id.contains(':')
}

/// Whether the session has that text in that turn, or, where the message names no turn, within a day.
async fn is_told(connection: &mut PgConnection, prompt: Prompt<'_>, id: &str) -> Result<bool, StoreError> {
    let turn = (prompt.source != Some(QUEUED)).then(|| id.split(':').next().unwrap_or(id));
    let told = sqlx::query_scalar!(
        r#"select exists (
               select from mem_user_prompts
               where session_id = $1 and prompt = $2 and prompt_id <> $3
                 and case when $4::text is null
                          then occurred_at between $5::timestamptz - interval '1 day' and $5::timestamptz + interval '1 day'
                          else split_part(prompt_id, ':', 1) = $4 end
           ) as "told!""#,
        prompt.session as SessionId,
        prompt.text.text,
        id,
        turn,
        prompt.occurred_at,
    )
    .fetch_one(connection)
    .await?;
    Ok(told)
}

/// Whether the journal has this event already: from the same hook, or from a transcript whose row it then claims.
async fn claim_for_hook(connection: &mut PgConnection, prompt: Prompt<'_>, id: &str) -> Result<bool, StoreError> {
    let known = sqlx::query_scalar!(
        r#"with told as (
               select id from mem_user_prompts where session_id = $1 and live_event_id = $2
           ), claimed as (
               update mem_user_prompts set live_event_id = $2, backfill_run_id = null
               where id = (select id from mem_user_prompts
                           where session_id = $1 and origin = 'transcript' and live_event_id is null and prompt = $3
                           order by occurred_at, id limit 1)
                 and not exists (select from told)
               returning id
           )
           select exists (select from told union all select from claimed) as "known!""#,
        prompt.session as SessionId,
        id,
        prompt.text.text,
    )
    .fetch_one(connection)
    .await?;
    Ok(known)
}

/// Takes a prompt that a hook has told of out of the backfill that told of it first.
pub(super) async fn claim(connection: &mut PgConnection, prompt: Prompt<'_>) -> Result<(), StoreError> {
    if prompt.origin != Origin::Hook {
        return Ok(());
    }
    sqlx::query!(
        "update mem_user_prompts set backfill_run_id = null
         where session_id = $1 and prompt_id = $2 and backfill_run_id is not null",
        prompt.session as SessionId,
        row_key(prompt.key).0,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives the agent's id to the oldest prompt of the same text that a hook without one left, unless a row has that id.
async fn claim_for_transcript(connection: &mut PgConnection, prompt: Prompt<'_>, id: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "update mem_user_prompts set prompt_id = $2
         where id = (select id from mem_user_prompts
                     where session_id = $1 and live_event_id is not null and prompt_id = 'event:' || live_event_id
                       and prompt = $3
                     order by occurred_at, id limit 1)
           and not exists (select from mem_user_prompts where session_id = $1 and prompt_id = $2)",
        prompt.session as SessionId,
        id,
        prompt.text.text,
    )
    .execute(connection)
    .await?;
    Ok(())
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
    // Calls that name no prompt served the latest one before them, and which that is may have changed.
    sqlx::query!(
        "update mem_tool_calls call set prev_user_prompt_id = served.id
         from (select call.id as call_id, prompt.id
               from mem_tool_calls call
               cross join lateral (
                   select id from mem_user_prompts
                   where session_id = $1 and prompt is not null and occurred_at <= call.occurred_at
                   order by occurred_at desc, id desc limit 1) prompt
               where call.session_id = $1 and call.prompt_id is null and call.occurred_at >= $2) served
         where call.id = served.call_id and call.prev_user_prompt_id is distinct from served.id",
        session as SessionId,
        arrived,
    )
    .execute(&mut *connection)
    .await?;
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

/// Whether a transcript has told of that text as a further message of the turn, under a key of its own.
pub(super) async fn is_told_in_turn(
    connection: &mut PgConnection,
    session: SessionId,
    turn: &str,
    text: &str,
) -> Result<bool, StoreError> {
    let told = sqlx::query_scalar!(
        r#"with told as (
               update mem_user_prompts set backfill_run_id = null
               where session_id = $1 and origin = 'transcript' and prompt = $3 and starts_with(prompt_id, $2 || ':')
               returning id
           )
           select exists (select from told) as "told!""#,
        session as SessionId,
        turn,
        text,
    )
    .fetch_one(connection)
    .await?;
    Ok(told)
}

/// The session's latest prompt at that time: what an answer without a prompt's id belongs to.
pub(super) async fn latest(
    connection: &mut PgConnection,
    session: SessionId,
    at: DateTime<Utc>,
) -> Result<Option<String>, StoreError> {
    let id = sqlx::query_scalar!(
        "select prompt_id from mem_user_prompts where session_id = $1 and occurred_at <= $2 and prompt is not null
         order by occurred_at desc, id desc limit 1",
        session as SessionId,
        at,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}

/// Stores the assistant's closing answer; the newest wins, for a turn may be closed more than once. `None`: nothing changed.
pub(super) async fn answer(
    connection: &mut PgConnection,
    session: SessionId,
    prompt_id: &str,
    answer: &Capped,
    (at, origin): (DateTime<Utc>, Origin),
) -> Result<Option<PromptId>, StoreError> {
    let id = sqlx::query_scalar!(
        r#"insert into mem_user_prompts (session_id, prompt_id, turn_index, answer, answered_at, occurred_at, origin,
                                         backfill_run_id)
           values ($1, $2, (select coalesce(max(turn_index) + 1, 0) from mem_user_prompts where session_id = $1),
                   $3, $4, $4, $5, $6)
           on conflict on constraint mem_user_prompts_session_prompt_unique do update set
               answer = excluded.answer, answered_at = excluded.answered_at,
               backfill_run_id = case when excluded.origin = 'transcript' then mem_user_prompts.backfill_run_id end
           where mem_user_prompts.answered_at is null or mem_user_prompts.answered_at < excluded.answered_at
           returning id as "id: PromptId""#,
        session as SessionId,
        prompt_id,
        answer.text,
        at,
        origin.as_str(),
        origin.run() as Option<BackfillRunId>,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}
