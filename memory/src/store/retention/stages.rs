//! The SQL of the policy's four stages: how much goes, before when enough would go, and the removal itself, some rows of one
//! session in a transaction.
//!
//! A size is that of the columns as they lie on disk (`pg_column_size` reads no value for that), with the document's row in the
//! search index and [`ROW_BYTES`] for what every row costs besides.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

use super::Stage;
use super::project::just_after;
use crate::store::{Db, StoreError};

/// Row headers, ids, times, and the entries in the indexes: an estimate, the same for every row.
const ROW_BYTES: i32 = 400;
/// Rows in one transaction: some milliseconds.
const BATCH: i64 = 500;

/// How much of something there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub rows: i64,
    pub bytes: i64,
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

/// A project, and before when of each kind has gone or is about to go.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scope {
    pub(super) project: i64,
    outputs: Option<DateTime<Utc>>,
    previews: Option<DateTime<Utc>>,
    calls: Option<DateTime<Utc>>,
    prompts: Option<DateTime<Utc>>,
}

impl Scope {
    pub(super) fn of(project: i64) -> Self {
        Self { project, ..Self::default() }
    }

    pub(super) fn set(&mut self, stage: Stage, before: DateTime<Utc>) {
        match stage {
            Stage::Outputs => self.outputs = Some(before),
            Stage::Previews => self.previews = Some(before),
            Stage::Calls => self.calls = Some(before),
            Stage::Prompts => self.prompts = Some(before),
        }
    }

    fn before(self, stage: Stage) -> DateTime<Utc> {
        let before = match stage {
            Stage::Outputs => self.outputs,
            Stage::Previews => self.previews,
            Stage::Calls => self.calls,
            Stage::Prompts => self.prompts,
        };
        before.unwrap_or(DateTime::UNIX_EPOCH)
    }
}

/// What a project takes, outputs that it shares with others included.
pub(super) async fn project_bytes(db: &Db, project: i64) -> Result<i64, StoreError> {
    let bytes = sqlx::query_scalar!(
        r#"with session as (select id from mem_sessions where project_id = $1)
           select ((select coalesce(sum($2 + pg_column_size(input) + coalesce(pg_column_size(output_preview), 0)
                                        + coalesce(pg_column_size(error), 0)), 0)
                    from mem_tool_calls where session_id in (select id from session))
                 + (select coalesce(sum($2 + coalesce(pg_column_size(prompt), 0) + coalesce(pg_column_size(answer), 0)), 0)
                    from mem_user_prompts where session_id in (select id from session))
                 + (select coalesce(sum($2 + coalesce(pg_column_size(body), 0) + pg_column_size(details)), 0)
                    from mem_session_events where session_id in (select id from session))
                 + (select coalesce(sum(pg_column_size(lexemes) + coalesce(pg_column_size(embedding), 0)), 0)
                    from mem_search_index where session_id in (select id from session))
                 + (select coalesce(sum(pg_column_size(body)), 0) from mem_outputs where content_hash in (
                        select output_hash from mem_tool_calls where session_id in (select id from session)))
                 )::bigint as "bytes!""#,
        project,
        ROW_BYTES,
    )
    .fetch_one(&mut *patient(db).await?)
    .await?;
    Ok(bytes)
}

/// How much goes at a stage.
pub(super) async fn count(db: &Db, stage: Stage, scope: Scope) -> Result<Amount, StoreError> {
    let mut connection = patient(db).await?;
    let before = scope.before(stage);
    let amount = match stage {
        Stage::Outputs => {
            sqlx::query_as!(
                Amount,
                r#"with doomed as (
                       select distinct output_hash from mem_tool_calls call
                       join mem_sessions session on session.id = call.session_id
                       where session.project_id = $1 and call.occurred_at < $2 and output_hash is not null
                   )
                   select count(*) as "rows!", coalesce(sum(pg_column_size(body)), 0)::bigint as "bytes!"
                   from mem_outputs output join doomed on doomed.output_hash = output.content_hash
                   where not exists (
                       select from mem_tool_calls call join mem_sessions session on session.id = call.session_id
                       where call.output_hash = output.content_hash
                         and (session.project_id <> $1 or call.occurred_at >= $2))"#,
                scope.project,
                before,
            )
            .fetch_one(&mut *connection)
            .await?
        }
        Stage::Previews => {
            sqlx::query_as!(
                Amount,
                r#"select count(*) as "rows!", coalesce(sum(pg_column_size(output_preview)), 0)::bigint as "bytes!"
                   from mem_tool_calls call join mem_sessions session on session.id = call.session_id
                   where session.project_id = $1 and call.occurred_at < $2 and output_preview is not null"#,
                scope.project,
                before,
            )
            .fetch_one(&mut *connection)
            .await?
        }
        Stage::Calls => {
            sqlx::query_as!(
                Amount,
                r#"select count(*) as "rows!",
                          coalesce(sum($4 + pg_column_size(input) + coalesce(pg_column_size(error), 0)
                              + case when call.occurred_at < $3 then 0 else coalesce(pg_column_size(output_preview), 0) end
                              + coalesce(pg_column_size(lexemes) + coalesce(pg_column_size(embedding), 0), 0)), 0)::bigint
                          as "bytes!"
                   from mem_tool_calls call join mem_sessions session on session.id = call.session_id
                   left join mem_search_index document
                       on document.document_kind = 'call' and document.document_id = call.id
                   where session.project_id = $1 and call.occurred_at < $2"#,
                scope.project,
                before,
                scope.before(Stage::Previews),
                ROW_BYTES,
            )
            .fetch_one(&mut *connection)
            .await?
        }
        Stage::Prompts => {
            sqlx::query_as!(
                Amount,
                r#"with prompt as (
                       select $4 + coalesce(pg_column_size(prompt), 0) + coalesce(pg_column_size(answer), 0)
                                + coalesce(pg_column_size(lexemes) + coalesce(pg_column_size(embedding), 0), 0) as bytes
                       from mem_user_prompts prompt join mem_sessions session on session.id = prompt.session_id
                       left join mem_search_index document
                           on document.document_kind = 'prompt' and document.document_id = prompt.id
                       where session.project_id = $1 and prompt.occurred_at < $2
                         and not exists (select from mem_tool_calls
                                         where prev_user_prompt_id = prompt.id and occurred_at >= $3)
                       union all
                       select $4 + coalesce(pg_column_size(body), 0) + pg_column_size(details)
                       from mem_session_events event join mem_sessions session on session.id = event.session_id
                       where session.project_id = $1 and event.occurred_at < $2
                   )
                   select count(*) as "rows!", coalesce(sum(bytes), 0)::bigint as "bytes!" from prompt"#,
                scope.project,
                before,
                scope.before(Stage::Calls),
                ROW_BYTES,
            )
            .fetch_one(&mut *connection)
            .await?
        }
    };
    Ok(amount)
}

/// Before when enough of a stage would go to free so many bytes; `None` where all of it is not enough.
pub(super) async fn time_that_frees(
    db: &Db,
    stage: Stage,
    scope: Scope,
    bytes: i64,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let mut connection = patient(db).await?;
    let last = match stage {
        Stage::Outputs => {
            sqlx::query_scalar!(
                r#"with candidate as (
                       select max(call.occurred_at) as at, min(pg_column_size(body)) as bytes
                       from mem_tool_calls call join mem_sessions session on session.id = call.session_id
                       join mem_outputs output on output.content_hash = call.output_hash
                       where session.project_id = $1 group by output.content_hash
                   ), freed as (select at, sum(bytes) over (order by at) as bytes from candidate)
                   select min(at) from freed where bytes >= $2"#,
                scope.project,
                bytes,
            )
            .fetch_one(&mut *connection)
            .await?
        }
        Stage::Previews => {
            sqlx::query_scalar!(
                r#"with freed as (
                       select call.occurred_at as at, sum(pg_column_size(output_preview)) over (order by call.occurred_at) as bytes
                       from mem_tool_calls call join mem_sessions session on session.id = call.session_id
                       where session.project_id = $1 and output_preview is not null)
                   select min(at) from freed where bytes >= $2"#,
                scope.project,
                bytes,
            )
            .fetch_one(&mut *connection)
            .await?
        }
        Stage::Calls => {
            sqlx::query_scalar!(
                r#"with freed as (
                       select call.occurred_at as at,
                              sum($3 + pg_column_size(input) + coalesce(pg_column_size(error), 0)
                                  + case when call.occurred_at < $4 then 0 else coalesce(pg_column_size(output_preview), 0) end
                                  + coalesce(pg_column_size(lexemes) + coalesce(pg_column_size(embedding), 0), 0))
                                  over (order by call.occurred_at) as bytes
                       from mem_tool_calls call join mem_sessions session on session.id = call.session_id
                       left join mem_search_index document
                           on document.document_kind = 'call' and document.document_id = call.id
                       where session.project_id = $1)
                   select min(at) from freed where bytes >= $2"#,
                scope.project,
                bytes,
                ROW_BYTES,
                scope.before(Stage::Previews),
            )
            .fetch_one(&mut *connection)
            .await?
        }
        Stage::Prompts => {
            sqlx::query_scalar!(
                r#"with freed as (
                       select prompt.occurred_at as at,
                              sum($3 + coalesce(pg_column_size(prompt), 0) + coalesce(pg_column_size(answer), 0))
                                  over (order by prompt.occurred_at) as bytes
                       from mem_user_prompts prompt join mem_sessions session on session.id = prompt.session_id
                       where session.project_id = $1)
                   select min(at) from freed where bytes >= $2"#,
                scope.project,
                bytes,
                ROW_BYTES,
            )
            .fetch_one(&mut *connection)
            .await?
        }
    };
    Ok(last.map(just_after))
}

/// Removes a stage's rows, session by session.
pub(super) async fn remove(db: &Db, stage: Stage, scope: Scope) -> Result<(), StoreError> {
    let before = scope.before(stage);
    // In the order in which the writer takes them.
    let sessions = sqlx::query_scalar!(
        "select id from mem_sessions where project_id = $1 and started_at < $2 order by agent, external_id",
        scope.project,
        before,
    )
    .fetch_all(db)
    .await?;
    for session in sessions {
        loop {
            let mut tx = db.begin().await?;
            sqlx::query_scalar!("select id from mem_sessions where id = $1 for update", session)
                .fetch_optional(&mut *tx)
                .await?;
            let rows = remove_some(&mut tx, stage, session, before).await?;
            tx.commit().await?;
            if rows < BATCH {
                break;
            }
        }
    }
    Ok(())
}

/// Removes up to [`BATCH`] rows of a session, oldest first; says how many.
async fn remove_some(
    connection: &mut PgConnection,
    stage: Stage,
    session: i64,
    before: DateTime<Utc>,
) -> Result<i64, StoreError> {
    let rows = match stage {
        Stage::Outputs => {
            sqlx::query!(
                "update mem_tool_calls set output_hash = null
                 where id in (select id from mem_tool_calls
                              where session_id = $1 and occurred_at < $2 and output_hash is not null
                              order by occurred_at limit $3)",
                session,
                before,
                BATCH,
            )
            .execute(connection)
            .await?
            .rows_affected() as i64
        }
        Stage::Previews => {
            sqlx::query!(
                "update mem_tool_calls
                 set output_preview = null, truncated_at_bytes = coalesce(truncated_at_bytes, octet_length(output_preview))
                 where id in (select id from mem_tool_calls
                              where session_id = $1 and occurred_at < $2 and output_preview is not null
                              order by occurred_at limit $3)",
                session,
                before,
                BATCH,
            )
            .execute(connection)
            .await?
            .rows_affected() as i64
        }
        Stage::Calls => {
            sqlx::query_scalar!(
                r#"with doomed as (
                       select id from mem_tool_calls where session_id = $1 and occurred_at < $2 order by occurred_at limit $3
                   ), documents as (
                       delete from mem_search_index
                       where document_kind = 'call' and document_id in (select id from doomed)
                   ), gone as (
                       delete from mem_tool_calls where id in (select id from doomed) returning id
                   )
                   select count(*) as "rows!" from gone"#,
                session,
                before,
                BATCH,
            )
            .fetch_one(connection)
            .await?
        }
        Stage::Prompts => remove_some_prompts(connection, session, before).await?,
    };
    Ok(rows)
}

/// Prompts that no call refers to any more, what else happened in the session, its digest, and the session itself when it is empty; not
/// one that a note, a lesson or the index of either speaks of, or of which something was forgotten, which must not come back.
async fn remove_some_prompts(db: &mut PgConnection, session: i64, before: DateTime<Utc>) -> Result<i64, StoreError> {
    let rows = sqlx::query_scalar!(
        r#"with doomed as (
               select id from mem_user_prompts prompt
               where session_id = $1 and occurred_at < $2
                 and not exists (select from mem_tool_calls where prev_user_prompt_id = prompt.id)
               order by occurred_at limit $3
           ), digests as (
               delete from mem_observations
               where session_id = $1 and kind = 'digest' and source = 'worker' and occurred_at < $2 returning id
           ), documents as (
               delete from mem_search_index where (document_kind, document_id) in
                   (select 'prompt', id from doomed union all select 'note', id from digests)
           ), gone as (
               delete from mem_user_prompts where id in (select id from doomed) returning id
           ), events as (
               delete from mem_session_events where session_id = $1 and occurred_at < $2
           )
           select count(*) as "rows!" from gone"#,
        session,
        before,
        BATCH,
    )
    .fetch_one(&mut *db)
    .await?;
    if rows < BATCH {
        sqlx::query!(
            "delete from mem_sessions session
             where id = $1 and last_event_at < $2
               and not exists (select from mem_user_prompts where session_id = session.id)
               and not exists (select from mem_tool_calls where session_id = session.id)
               and not exists (select from mem_session_events where session_id = session.id)
               and not exists (select from mem_observations where session_id = session.id)
               and not exists (select from mem_lesson_events where session_id = session.id)
               and not exists (select from mem_search_index where session_id = session.id)
               and not exists (select from mem_forgotten where session_id = session.id)",
            session,
            before,
        )
        .execute(db)
        .await?;
    }
    Ok(rows)
}

/// A transaction whose questions may take longer than others: they hold up nobody, and a large project takes its time.
async fn patient(db: &Db) -> Result<sqlx::PgTransaction<'static>, StoreError> {
    let mut tx = db.begin().await?;
    sqlx::query("set local statement_timeout = '10min'").execute(&mut *tx).await?;
    Ok(tx)
}
