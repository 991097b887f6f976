//! A journal with rows in every table, as many as somebody has after a year: made by Postgres itself, in seconds, the same each time.
//! With edits, deletions, merges and every relation that the schema has.

use anyhow::{Context, Result};
use sqlx::PgPool;

/// How many calls. All tables together have about twice as many rows.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub calls: i64,
    /// Documents with a vector; an index over them is what takes longest to build again.
    pub vectors: i64,
}

/// A text of several words for a number: not one that compresses to nothing, and not one that does not compress.
const TEXT: &str = "create function pg_temp.prose(seed bigint, words integer) returns text language sql immutable as $$
    select string_agg((array['build','fails','because','the','migration','ünïcode','src/main.rs','日本語','cargo','\"quoted\"','back\\slash',
        'retry','lease','token','it''s','<b>','test']) [1 + (abs(hashint8(seed * 31 + word)) % 17)]
        || case when word % 3 = 0 then ' ' || left(md5((seed + word)::text), 9) else '' end, ' ')
    from generate_series(1, words) word $$";

/// Fills the empty tables of a migrated database.
pub async fn fill(pool: &PgPool, size: Size) -> Result<()> {
    let mut connection = pool.acquire().await?;
    let Size { calls, vectors } = size;
    let statements = [
        TEXT.to_owned(),
        "insert into mem_people (name) values ('ada'), ('bob')".to_owned(),
        "insert into mem_projects (identity_key, name, root, remote_url)
         select 'remote:h/p' || n, 'p' || n, '/home/dev/p' || n, null from generate_series(1, 20) n".to_owned(),
        "update mem_projects set merged_into = 1 where id = 20".to_owned(),
        "update mem_projects set person_id = 1 + id % 2, is_shared = id = 3 where id in (3, 4)".to_owned(),
        "insert into mem_project_aliases (identity_key, project_id, is_chosen, repository_inode, repository_created_at_us)
         select 'folder:/old/p' || id, id, id % 2 = 0, id, id * 1000 from mem_projects".to_owned(),
        "insert into mem_project_merges (from_project_id, into_project_id, session_ids, observation_ids, lesson_ids, alias_keys, follower_ids)
         values (20, 1, '{3,4}', '{}', '{1}', '{\"folder:/a, b\", \"c\"}', '{}')".to_owned(),
        "insert into mem_backfill_runs (agent, source_path, status, counts) values ('claude-code', '/p', 'done', '{\"calls\": 1.50}')".to_owned(),
        format!("insert into mem_sessions (agent, external_id, project_id, branch, started_at, last_event_at, backfill_run_id)
         select 'claude-code', 's' || n, 1 + n % 19, 'main', timestamptz '2026-01-01' + n * interval '7 minutes 1 microsecond',
             timestamptz '2026-01-02' + n * interval '7 minutes', case when n % 9 = 0 then 1 end
         from generate_series(1, {}) n", calls / 60 + 1),
        format!("insert into mem_user_prompts (session_id, prompt_id, turn_index, prompt, answer, occurred_at)
         select 1 + n % {0}, 'prompt-' || n, n / {0}, pg_temp.prose(n, 25), pg_temp.prose(-n, 60), timestamptz '2026-01-01' + n * interval '1 second'
         from generate_series(1, {1}) n", calls / 60, calls / 8),
        "insert into mem_outputs (content_hash, body, size_bytes)
         select sha256(n::text::bytea), pg_temp.prose(n, 2500), 20000 from generate_series(1, 500) n".to_owned(),
        format!("insert into mem_tool_calls (session_id, tool_use_id, prompt_id, prev_user_prompt_id, tool_name, input, output_preview,
             success, error, content_hash, occurred_at, output_hash)
         select session_id, 'use-' || n, prompt_id, prompt.id, 'Bash', jsonb_build_object('command', pg_temp.prose(n, 12), 'timeout', n + 0.5),
             pg_temp.prose(n * 7, 40), n % 11 <> 0, case when n % 11 = 0 then pg_temp.prose(n, 8) end, sha256(n::text::bytea),
             prompt.occurred_at + n * interval '1 millisecond', case when n <= 500 then sha256(n::text::bytea) end
         from generate_series(1, {calls}) n join mem_user_prompts prompt on prompt.id = 1 + n % {}", calls / 8),
        "insert into mem_session_events (session_id, event_key, kind, body, occurred_at)
         select id, 'compacted:' || id, 'compacted', pg_temp.prose(id, 30), now() from mem_sessions".to_owned(),
        "insert into mem_observations (project_id, session_id, kind, title, body, source, import_key)
         select 1 + n % 19, n, 'note', 'Note ' || n, pg_temp.prose(n, 50), 'agent', case when n % 2 = 0 then 'key-' || n end
         from generate_series(1, least(500, (select count(*) from mem_sessions))) n".to_owned(),
        "update mem_observations set superseded_by = id + 1 where id % 5 = 0 and id + 1 <= (select max(id) from mem_observations)".to_owned(),
        "insert into mem_lessons (project_id, title, rule, severity, source, status, evidence, trigger_threshold)
         select n, 'Lesson ' || n, pg_temp.prose(n, 20), 'warning', 'person', 'active', array['call-' || n, 'a, \"b\"'], n / 7.0
         from generate_series(1, 19) n".to_owned(),
        "insert into mem_observations (kind, title, body, source, lesson_id)
         select 'lesson', title, rule, 'person', id from mem_lessons".to_owned(),
        "insert into mem_lesson_events (lesson_id, session_id, outcome, occurred_at, agent, session, once_key)
         select id, 1 + id % 10, 'fired', now(), 'claude-code', 's' || id, 'k' from mem_lessons".to_owned(),
        "insert into mem_lesson_events (lesson_id, session_id, outcome, occurred_at, fired_id)
         select lesson_id, session_id, 'obeyed', now(), id from mem_lesson_events".to_owned(),
        "delete from mem_tool_calls where id % 1000 = 0".to_owned(),
        "update mem_sessions set person_id = 1 where id % 19 = 2".to_owned(),
        "update mem_observations set person_id = 2 where id % 19 = 3".to_owned(),
        "update mem_lessons set project_id = null, person_id = 1 where id = 5".to_owned(),
        "insert into mem_forgotten (session_id, kind, key, digest)
         select 1 + n % 10, 'call', 'use-' || n * 1000, mem_digest(n::text) from generate_series(1, 20) n".to_owned(),
        "insert into mem_injections (session_id, occasion, content_hash, document_kind, document_id)
         select id, 'brief', sha256(id::text::bytea), 'note', id from mem_sessions".to_owned(),
        "insert into mem_injection_counts values ('brief', 'spoke', 3)".to_owned(),
        "insert into mem_audit_log (actor, action, details) values ('operator', 'retention', '{\"rows\": [1, {\"a\": null}]}')".to_owned(),
        "insert into mem_api_tokens (name, token_hash, scopes, person_id) values ('t', '\\x00ff', '{ingest,recall}', 1)".to_owned(),
        "insert into mem_observation_queue (kind, payload) values ('embed_document', '{\"document\": \"call-1\"}')".to_owned(),
        "insert into mem_embedding_models (name, dimensions) values ('mini@1', 384)".to_owned(),
        format!("insert into mem_search_index (document_kind, document_id, project_id, session_id, occurred_at, lexemes, length, analysis,
             embedding, embedding_model_id)
         select 'call', call.id, session.project_id, session_id, occurred_at, to_tsvector('simple', output_preview), 40, 1,
             case when call.id <= {vectors} then (select array_agg(sin(call.id * dimension)) from generate_series(1, 768) dimension)::vector::halfvec end,
             case when call.id <= {vectors} then 1 end
         from mem_tool_calls call join mem_sessions session on session.id = session_id"),
        "insert into mem_lexemes select word, ndoc from ts_stat('select lexemes from mem_search_index limit 2000') where ndoc > 1".to_owned(),
        "update mem_search_statistics set documents = 7, average_length = 40.125".to_owned(),
        "drop function pg_temp.prose".to_owned(),
    ];
    for statement in statements {
        let beginning: String = statement.chars().take(60).collect();
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut *connection).await.context(beginning)?;
    }
    Ok(())
}
