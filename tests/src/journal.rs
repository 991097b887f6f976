//! Reads the journal's tables, past all our own code, so that the tests see what really lies there.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgPool, Postgres, Row, Transaction};

use crate::wait;

/// The journal of one test's database.
#[derive(Debug, Clone, Copy)]
pub struct Journal<'a> {
    pool: &'a PgPool,
}

#[derive(Debug, PartialEq, FromRow)]
pub struct Session {
    pub id: i64,
    pub agent: String,
    pub external_id: String,
    pub project: String,
    pub status: String,
    pub end_reason: Option<String>,
    pub source: Option<String>,
    pub branch: Option<String>,
    pub model: Option<String>,
}

#[derive(Debug, PartialEq, FromRow)]
pub struct Prompt {
    pub id: i64,
    pub session_id: i64,
    pub prompt_id: String,
    pub turn_index: i32,
    pub prompt: Option<String>,
    pub answer: Option<String>,
}

#[derive(Debug, PartialEq, FromRow)]
pub struct ToolCall {
    pub id: i64,
    pub session: String,
    pub tool_use_id: String,
    pub tool_name: String,
    pub input: Value,
    pub output_preview: Option<String>,
    pub success: bool,
    pub error: Option<String>,
    pub duration_ms: Option<i64>,
    pub subagent_type: Option<String>,
    pub turn_index: Option<i32>,
    pub turn_subindex: Option<i32>,
    /// The prompt that the call is joined to.
    pub prompt: Option<String>,
}

impl<'a> Journal<'a> {
    pub fn of(pool: &'a PgPool) -> Self {
        Self { pool }
    }

    pub async fn sessions(self) -> Result<Vec<Session>> {
        let query = "select s.id, agent, external_id, p.name as project, status, end_reason, source, branch, model
                     from mem_sessions s join mem_projects p on p.id = s.project_id order by s.id";
        sqlx::query_as(query).fetch_all(self.pool).await.context("reading the sessions")
    }

    pub async fn prompts(self) -> Result<Vec<Prompt>> {
        let query = "select id, session_id, prompt_id, turn_index, prompt, answer
                     from mem_user_prompts order by occurred_at, id";
        sqlx::query_as(query).fetch_all(self.pool).await.context("reading the prompts")
    }

    /// All tool calls in the order in which they happened.
    pub async fn tool_calls(self) -> Result<Vec<ToolCall>> {
        let query =
            "select c.id, s.external_id as session, tool_use_id, tool_name, input, output_preview, success, error,
                            duration_ms, subagent_type, c.turn_index, turn_subindex, p.prompt
                     from mem_tool_calls c
                     join mem_sessions s on s.id = c.session_id
                     left join mem_user_prompts p on p.id = c.prev_user_prompt_id
                     order by c.occurred_at, c.id";
        sqlx::query_as(query).fetch_all(self.pool).await.context("reading the tool calls")
    }

    /// The ids of all tool calls in the order in which they were written.
    pub async fn recorded_order(self) -> Result<Vec<String>> {
        let query = "select tool_use_id from mem_tool_calls order by id";
        sqlx::query_scalar(query).fetch_all(self.pool).await.context("reading the order of the tool calls")
    }

    /// The share of tool calls that are joined to their prompt; nothing without any call.
    pub async fn linkage_ratio(self) -> Result<Option<f64>> {
        let query = "select avg((prev_user_prompt_id is not null)::int)::float8 from mem_tool_calls";
        sqlx::query_scalar(query).fetch_one(self.pool).await.context("reading the linkage ratio")
    }

    /// Every row that events make, as text, table by table: two equal dumps mean that nothing changed. Left out are the
    /// queue, the vectors and the digests, which the worker changes in its own time.
    pub async fn dump(self) -> Result<Vec<String>> {
        let mut rows = Vec::new();
        for table in [
            "mem_projects",
            "mem_project_aliases",
            "mem_sessions",
            "mem_user_prompts",
            "mem_tool_calls",
            "mem_session_events",
            "mem_observations",
            "mem_search_index",
        ] {
            let query = format!(
                "select '{table} ' || (to_jsonb(t) - 'embedding' - 'embedding_model_id')::text from {table} t
                 where not ('{table}' = 'mem_observations' and to_jsonb(t) ->> 'kind' = 'digest')
                   and not ('{table}' = 'mem_search_index' and to_jsonb(t) ->> 'document_kind' = 'note'
                            and exists (select from mem_observations note
                                        where note.kind = 'digest' and note.id = (to_jsonb(t) ->> 'document_id')::bigint))
                 order by 1"
            );
            let read = sqlx::query_scalar::<_, String>(AssertSqlSafe(query)).fetch_all(self.pool).await;
            rows.extend(read.with_context(|| format!("reading {table}"))?);
        }
        Ok(rows)
    }

    /// How many rows the tables of the journal hold in all, queue included.
    pub async fn row_count(self) -> Result<i64> {
        Ok(row_counts(&mut *self.one_moment().await?).await?.values().sum())
    }

    /// How many rows of what was remembered each table holds. Left out are the queue, whose jobs come and go, the runs of backfills,
    /// the digests and the counts of lexemes that the server makes in its own time, and what agents were told.
    pub async fn remembered(self) -> Result<BTreeMap<String, i64>> {
        const OTHER: [&str; 5] =
            ["mem_observation_queue", "mem_backfill_runs", "mem_lexemes", "mem_injections", "mem_injection_counts"];
        // All counts are of one moment: a digest that the worker writes between two of them would count in one alone.
        let mut moment = self.one_moment().await?;
        let mut counts = row_counts(&mut moment).await?;
        counts.retain(|table, _| !OTHER.contains(&table.as_str()));
        let digests = "select count(*), count(document_id) from mem_observations note
                       left join mem_search_index on document_kind = 'note' and document_id = note.id
                       where note.kind = 'digest'";
        let (notes, documents): (i64, i64) =
            sqlx::query_as(digests).fetch_one(&mut *moment).await.context("counting the digests")?;
        for (table, digests) in [("mem_observations", notes), ("mem_search_index", documents)] {
            counts.entry(table.to_owned()).and_modify(|count| *count -= digests);
        }
        Ok(counts)
    }

    /// Waits until the server has read the transcripts of all sessions that have ended.
    pub async fn transcripts_read(self) -> Result<()> {
        let query = "select count(*) from mem_observation_queue where kind = 'read_transcript'";
        wait::until("reading the transcripts", async || {
            let waiting: i64 = sqlx::query_scalar(query).fetch_one(self.pool).await.context("reading the queue")?;
            Ok((waiting == 0).then_some(()))
        })
        .await
    }

    /// A transaction in which every query sees the journal as it is now.
    async fn one_moment(self) -> Result<Transaction<'static, Postgres>> {
        const SNAPSHOT: &str = "begin isolation level repeatable read read only";
        self.pool.begin_with(SNAPSHOT).await.context("opening a snapshot of the journal")
    }
}

async fn row_counts(connection: &mut PgConnection) -> Result<BTreeMap<String, i64>> {
    let tables = sqlx::query(
        "select tablename from pg_tables where schemaname = 'public' and tablename like 'mem\\_%'
         and tablename not in ('mem_schema_migrations', 'mem_search_statistics')",
    )
    .fetch_all(&mut *connection)
    .await
    .context("listing the journal's tables")?;
    let mut counts = BTreeMap::new();
    for row in tables {
        let table: String = row.try_get(0)?;
        let query = AssertSqlSafe(format!("select count(*) from {table}"));
        counts.insert(table, sqlx::query_scalar::<_, i64>(query).fetch_one(&mut *connection).await?);
    }
    Ok(counts)
}
