//! The rows of the journal as one would insert them by hand: everything known beforehand, no row looked up and none met twice, one
//! commit a batch: of a few hundred rows, or of one, as someone has to who is told of one event at a time. Lexemes are made when their
//! rows are inserted, as the server makes them. How fast the server is, is measured against this.
//!
//! The rows are those that the server makes of the same events: prompts, calls, documents with their lexemes, jobs.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection};

use super::super::documents::analysed;
use super::super::sessions::{self, Touch};
use super::super::{Db, EMBED_DOCUMENT, StoreError, journal, projects, tool_calls};
use crate::analyze;
use crate::event::{Event, EventKind, Outcome};
use crate::ids::{DocumentId, DocumentKind};
use crate::project::ProjectPolicy;

/// Events in one commit, where they are many.
pub const BATCH: usize = 500;

/// Events made into columns.
#[derive(Debug, Default)]
pub struct Reference {
    /// Any event of each session: what makes its row.
    sessions: Vec<Event>,
    batches: Vec<Batch>,
}

#[derive(Debug, Default)]
struct Batch {
    prompts: Prompts,
    calls: Calls,
}

#[derive(Debug, Default)]
struct Prompts {
    session: Vec<String>,
    prompt_id: Vec<String>,
    turn_index: Vec<i32>,
    prompt: Vec<String>,
    occurred_at: Vec<DateTime<Utc>>,
    /// What each is found by.
    text: Vec<String>,
}

#[derive(Debug, Default)]
struct Calls {
    session: Vec<String>,
    tool_use_id: Vec<String>,
    prompt_id: Vec<String>,
    turn_index: Vec<i32>,
    turn_subindex: Vec<i32>,
    tool_name: Vec<String>,
    input: Vec<Value>,
    output_preview: Vec<Option<String>>,
    duration_ms: Vec<Option<i64>>,
    working_folder: Vec<Option<String>>,
    content_hash: Vec<Vec<u8>>,
    occurred_at: Vec<DateTime<Utc>>,
    /// What each is found by.
    text: Vec<String>,
}

/// Where a session stands: its turns so far, the id of the last, and that turn's calls so far.
#[derive(Debug, Default)]
struct Turn {
    count: i32,
    prompt_id: String,
    calls: i32,
}

impl Reference {
    /// Prepares prompts and successful calls, in their order, so many a commit. Other events have no place in the comparison and
    /// are left out.
    pub fn of(events: &[Event], batch: usize) -> Self {
        let mut reference = Self::default();
        let mut turns: HashMap<String, Turn> = HashMap::new();
        for chunk in events.chunks(batch) {
            let mut batch = Batch::default();
            for event in chunk {
                if !turns.contains_key(&event.session) {
                    reference.sessions.push(event.clone());
                }
                batch.push(event, turns.entry(event.session.clone()).or_default());
            }
            reference.batches.push(batch);
        }
        reference
    }
}

impl Batch {
    fn push(&mut self, event: &Event, turn: &mut Turn) {
        match &event.kind {
            EventKind::PromptSubmitted { key, prompt, .. } => {
                let prompt_id = tool_calls::row_key(key).0;
                *turn = Turn { count: turn.count + 1, prompt_id: prompt_id.clone(), calls: 0 };
                let prompts = &mut self.prompts;
                prompts.session.push(event.session.clone());
                prompts.prompt_id.push(prompt_id);
                prompts.turn_index.push(turn.count - 1);
                prompts.prompt.push(prompt.text.clone());
                prompts.occurred_at.push(event.occurred_at);
                prompts.text.push(analyze::prompt_text(Some(&prompt.text), None));
            }
            EventKind::ToolCalled(call) if call.outcome == Outcome::Succeeded => {
                let calls = &mut self.calls;
                calls.session.push(event.session.clone());
                calls.tool_use_id.push(tool_calls::row_key(&call.key).0);
                calls.prompt_id.push(turn.prompt_id.clone());
                calls.turn_index.push(turn.count - 1);
                calls.turn_subindex.push(turn.calls);
                turn.calls += 1;
                calls.tool_name.push(call.tool_name.clone());
                calls.input.push(call.input.clone());
                calls.output_preview.push(call.output_preview.clone());
                calls.duration_ms.push(call.duration_ms);
                calls.working_folder.push(event.checkout.folder.clone());
                calls.content_hash.push(tool_calls::content_hash(call));
                calls.occurred_at.push(event.occurred_at);
                calls.text.push(journal::text_of(call));
            }
            _ => {}
        }
    }
}

/// A pool of so many connections, each open already.
pub async fn connections(url: &str, count: u32) -> Result<Db, StoreError> {
    let db = PgPoolOptions::new().max_connections(count).connect(url).await?;
    let mut opened = Vec::new();
    for _ in 0..count {
        opened.push(db.acquire().await?);
    }
    drop(opened);
    Ok(db)
}

/// Inserts all of it over one connection. The journal must not hold any of it yet.
pub async fn insert(db: &Db, reference: &Reference) -> Result<(), StoreError> {
    let mut connection = db.acquire().await?;
    let mut tx = connection.begin().await?;
    let mut session_ids = HashMap::new();
    for event in &reference.sessions {
        let identity = event.checkout.project(&ProjectPolicy::default());
        let id = projects::resolve(&mut tx, &identity).await?;
        let project = projects::Resolved { id, key: identity.key };
        for session in sessions::touch(&mut tx, vec![&Touch::of(event, project)]).await? {
            session_ids.insert(event.session.clone(), (session.id.0, session.project_id.0));
        }
    }
    tx.commit().await?;
    let mut prompt_ids = HashMap::new();
    for batch in &reference.batches {
        let mut tx = connection.begin().await?;
        if !batch.prompts.session.is_empty() {
            insert_prompts(&mut tx, &batch.prompts, &session_ids, &mut prompt_ids).await?;
        }
        if !batch.calls.session.is_empty() {
            insert_calls(&mut tx, &batch.calls, &session_ids, &prompt_ids).await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

/// Session and project of each session by its agent's name for it.
type SessionIds = HashMap<String, (i64, i64)>;

async fn insert_prompts(
    connection: &mut PgConnection,
    prompts: &Prompts,
    session_ids: &SessionIds,
    prompt_ids: &mut HashMap<String, i64>,
) -> Result<(), StoreError> {
    let owners: Vec<_> = prompts.session.iter().map(|session| session_ids[session]).collect();
    let sessions: Vec<i64> = owners.iter().map(|(session, _)| *session).collect();
    let ids = sqlx::query_scalar!(
        "insert into mem_user_prompts (session_id, prompt_id, turn_index, prompt, occurred_at)
         select * from unnest($1::bigint[], $2::text[], $3::integer[], $4::text[], $5::timestamptz[])
         returning id",
        &sessions,
        &prompts.prompt_id,
        &prompts.turn_index,
        &prompts.prompt,
        &prompts.occurred_at,
    )
    .fetch_all(&mut *connection)
    .await?;
    prompt_ids.extend(prompts.prompt_id.iter().cloned().zip(ids.iter().copied()));
    let documents = Documents {
        kind: DocumentKind::Prompt,
        ids: &ids,
        owners: &owners,
        occurred_at: &prompts.occurred_at,
        texts: &prompts.text,
    };
    insert_documents(connection, &documents).await
}

async fn insert_calls(
    connection: &mut PgConnection,
    calls: &Calls,
    session_ids: &SessionIds,
    prompt_ids: &HashMap<String, i64>,
) -> Result<(), StoreError> {
    let owners: Vec<_> = calls.session.iter().map(|session| session_ids[session]).collect();
    let sessions: Vec<i64> = owners.iter().map(|(session, _)| *session).collect();
    let prompts: Vec<Option<i64>> = calls.prompt_id.iter().map(|id| prompt_ids.get(id).copied()).collect();
    let ids = sqlx::query_scalar!(
        "insert into mem_tool_calls (
             session_id, tool_use_id, prompt_id, prev_user_prompt_id, turn_index, turn_subindex, tool_name, input,
             output_preview, success, duration_ms, working_folder, content_hash, occurred_at)
         select session_id, tool_use_id, prompt_id, prev_user_prompt_id, turn_index, turn_subindex, tool_name, input,
                output_preview, true, duration_ms, working_folder, content_hash, occurred_at
         from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::integer[], $6::integer[], $7::text[],
                     $8::jsonb[], $9::text[], $10::bigint[], $11::text[], $12::bytea[], $13::timestamptz[])
              as new (session_id, tool_use_id, prompt_id, prev_user_prompt_id, turn_index, turn_subindex, tool_name, input,
                      output_preview, duration_ms, working_folder, content_hash, occurred_at)
         returning id",
        &sessions,
        &calls.tool_use_id,
        &calls.prompt_id,
        &prompts as &[Option<i64>],
        &calls.turn_index,
        &calls.turn_subindex,
        &calls.tool_name,
        &calls.input,
        &calls.output_preview as &[Option<String>],
        &calls.duration_ms as &[Option<i64>],
        &calls.working_folder as &[Option<String>],
        &calls.content_hash,
        &calls.occurred_at,
    )
    .fetch_all(&mut *connection)
    .await?;
    let documents = Documents {
        kind: DocumentKind::Call,
        ids: &ids,
        owners: &owners,
        occurred_at: &calls.occurred_at,
        texts: &calls.text,
    };
    insert_documents(connection, &documents).await
}

/// What of a batch can be found. `owners` are session and project.
struct Documents<'a> {
    kind: DocumentKind,
    ids: &'a [i64],
    owners: &'a [(i64, i64)],
    occurred_at: &'a [DateTime<Utc>],
    texts: &'a [String],
}

async fn insert_documents(connection: &mut PgConnection, documents: &Documents<'_>) -> Result<(), StoreError> {
    let (sessions, projects): (Vec<i64>, Vec<i64>) = documents.owners.iter().copied().unzip();
    let made = analysed(documents.texts.to_vec()).await?;
    let (lexemes, lengths): (Vec<_>, Vec<_>) = made.into_iter().map(|made| (made.tsvector, made.length)).unzip();
    sqlx::query!(
        "insert into mem_search_index (document_kind, document_id, project_id, session_id, occurred_at, lexemes, length, analysis)
         select $1, id, project_id, session_id, occurred_at, lexemes::tsvector, length, $8
         from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::text[], $7::integer[])
              as new (id, project_id, session_id, occurred_at, lexemes, length)",
        documents.kind.as_str(),
        documents.ids,
        &projects,
        &sessions,
        documents.occurred_at,
        &lexemes,
        &lengths,
        analyze::VERSION,
    )
    .execute(&mut *connection)
    .await?;
    let keys: Vec<String> =
        documents.ids.iter().map(|row| DocumentId { kind: documents.kind, row: *row }.to_string()).collect();
    let payloads: Vec<Value> = keys.iter().map(|key| serde_json::json!({ "document": key })).collect();
    sqlx::query!(
        "insert into mem_observation_queue (kind, payload, dedupe_key)
         select $1, payload, dedupe_key from unnest($2::jsonb[], $3::text[]) as new (payload, dedupe_key)",
        EMBED_DOCUMENT,
        &payloads,
        &keys,
    )
    .execute(connection)
    .await?;
    Ok(())
}
