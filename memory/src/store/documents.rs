//! `mem_search_index`: what can be found. Each write enqueues the job that embeds it, in the same transaction.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use pgvector::HalfVector;
use sqlx::PgConnection;

use super::{Db, StoreError};
use crate::analyze::{self, Lexemes};
use crate::ids::{DocumentId, DocumentKind, ProjectId, SessionId};

/// The queue's name for embedding one document; its payload is the document's id.
pub const EMBED_DOCUMENT: &str = "embed_document";

/// Vectors are stored at this length; a shorter one is padded with zeros, which changes no cosine distance.
pub const STORED_DIMENSIONS: usize = 768;

/// Where a document belongs.
pub(super) struct Entry {
    pub(super) id: DocumentId,
    pub(super) project: Option<ProjectId>,
    pub(super) session: Option<SessionId>,
    pub(super) occurred_at: DateTime<Utc>,
}

/// Documents as columns of `mem_search_index`.
pub(super) struct Columns {
    pub(super) kinds: Vec<String>,
    pub(super) rows: Vec<i64>,
    pub(super) projects: Vec<Option<i64>>,
    pub(super) sessions: Vec<Option<i64>>,
    pub(super) times: Vec<DateTime<Utc>>,
    /// Each in the text form of a `tsvector`.
    pub(super) lexemes: Vec<String>,
    pub(super) lengths: Vec<i32>,
}

impl Columns {
    pub(super) fn of(documents: &[Entry], made: Vec<Lexemes>) -> Self {
        let (lexemes, lengths) = made.into_iter().map(|made| (made.tsvector, made.length)).unzip();
        Self {
            kinds: documents.iter().map(|entry| entry.id.kind.as_str().to_owned()).collect(),
            rows: documents.iter().map(|entry| entry.id.row).collect(),
            projects: documents.iter().map(|entry| entry.project.map(|project| project.0)).collect(),
            sessions: documents.iter().map(|entry| entry.session.map(|session| session.0)).collect(),
            times: documents.iter().map(|entry| entry.occurred_at).collect(),
            lexemes,
            lengths,
        }
    }
}

/// Makes documents findable by their words at once, and by their meaning when their jobs have run. No document is there twice.
pub(super) async fn index(connection: &mut PgConnection, documents: Vec<(Entry, String)>) -> Result<(), StoreError> {
    if documents.is_empty() {
        return Ok(());
    }
    let (documents, texts): (Vec<_>, Vec<_>) = documents.into_iter().unzip();
    let columns = Columns::of(&documents, analysed(texts).await?);
    // Where a job for the document waits already, its row is locked until the transaction ends, as `queue::enqueue` does.
    sqlx::query!(
        "with indexed as (
             insert into mem_search_index (document_kind, document_id, project_id, session_id, occurred_at, lexemes, length, analysis)
             select kind, id, project_id, session_id, occurred_at, lexemes::tsvector, length, $8
             from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::text[], $7::integer[])
                  as new (kind, id, project_id, session_id, occurred_at, lexemes, length)
             on conflict on constraint mem_search_index_pkey do update set
                 lexemes = excluded.lexemes, length = excluded.length, analysis = excluded.analysis,
                 revision = mem_search_index.revision + 1, embedding = null, embedding_model_id = null,
                 occurred_at = least(mem_search_index.occurred_at, excluded.occurred_at)
             returning document_kind || '-' || document_id as document
         )
         insert into mem_observation_queue (kind, payload, dedupe_key)
         select $9, jsonb_build_object('document', document), document from indexed
         on conflict (kind, dedupe_key) where status = 'pending' do update set payload = excluded.payload",
        &columns.kinds,
        &columns.rows,
        &columns.projects as &[Option<i64>],
        &columns.sessions as &[Option<i64>],
        &columns.times,
        &columns.lexemes,
        &columns.lengths,
        analyze::VERSION,
        EMBED_DOCUMENT,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes documents findable no more: their rows, the jobs that wait for them, and what only they are known to say.
pub(super) async fn remove(connection: &mut PgConnection, ids: &[DocumentId]) -> Result<(), StoreError> {
    /// A word that so many documents hold is nobody's own.
    const RARE: i64 = 20;
    let (kinds, rows): (Vec<_>, Vec<_>) = ids.iter().map(|id| (id.kind.as_str().to_owned(), id.row)).unzip();
    let lexemes = sqlx::query_scalar!(
        r#"with gone as (
               delete from mem_search_index using unnest($1::text[], $2::bigint[]) as doomed (kind, id)
               where document_kind = doomed.kind and document_id = doomed.id
               returning lexemes
           ), jobs as (
               delete from mem_observation_queue
               where kind = $3 and payload->>'document' in (
                   select doomed.kind || '-' || doomed.id from unnest($1::text[], $2::bigint[]) as doomed (kind, id))
           )
           select distinct counted.lexeme
           from gone cross join lateral unnest(tsvector_to_array(gone.lexemes)) as said (lexeme)
           join mem_lexemes counted on counted.lexeme = said.lexeme
           where counted.documents <= $4"#,
        &kinds,
        &rows,
        EMBED_DOCUMENT,
        RARE,
    )
    .fetch_all(&mut *connection)
    .await?;
    let queries: Vec<_> = lexemes.iter().map(|lexeme| analyze::quoted(lexeme)).collect();
    sqlx::query!(
        "delete from mem_lexemes using unnest($1::text[], $2::text[]) as said (word, query)
         where lexeme = said.word and not exists (select from mem_search_index where lexemes @@ said.query::tsquery)",
        &lexemes,
        &queries,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The lexemes of texts, made where that holds up nobody.
pub(super) async fn analysed(texts: Vec<String>) -> Result<Vec<Lexemes>, StoreError> {
    let made = tokio::task::spawn_blocking(move || texts.iter().map(|text| Lexemes::of(text)).collect());
    Ok(made.await.map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))?)
}

/// A document and the text it is found by.
#[derive(Debug, Clone)]
pub struct DocumentText {
    pub id: DocumentId,
    pub text: String,
}

/// Reads the texts of documents from the journal; one that is gone is left out.
pub async fn document_texts(
    connection: &mut PgConnection,
    ids: &[DocumentId],
) -> Result<Vec<DocumentText>, StoreError> {
    let rows_of = |kind| ids.iter().filter(|id| id.kind == kind).map(|id| id.row).collect::<Vec<_>>();
    let mut texts = Vec::with_capacity(ids.len());
    let prompts = rows_of(DocumentKind::Prompt);
    if !prompts.is_empty() {
        let rows = sqlx::query!("select id, prompt, answer from mem_user_prompts where id = any($1)", &prompts)
            .fetch_all(&mut *connection)
            .await?;
        texts.extend(rows.into_iter().map(|row| DocumentText {
            id: DocumentId { kind: DocumentKind::Prompt, row: row.id },
            text: analyze::prompt_text(row.prompt.as_deref(), row.answer.as_deref()),
        }));
    }
    let calls = rows_of(DocumentKind::Call);
    if !calls.is_empty() {
        let rows = sqlx::query!(
            "select id, tool_name, input, output_preview, error from mem_tool_calls where id = any($1)",
            &calls
        )
        .fetch_all(&mut *connection)
        .await?;
        texts.extend(rows.into_iter().map(|row| DocumentText {
            id: DocumentId { kind: DocumentKind::Call, row: row.id },
            text: analyze::call_text(&row.tool_name, &row.input, row.output_preview.as_deref(), row.error.as_deref()),
        }));
    }
    let notes = rows_of(DocumentKind::Note);
    if !notes.is_empty() {
        let rows = sqlx::query!("select id, title, body from mem_observations where id = any($1)", &notes)
            .fetch_all(connection)
            .await?;
        texts.extend(rows.into_iter().map(|row| DocumentText {
            id: DocumentId { kind: DocumentKind::Note, row: row.id },
            text: format!("{}\n{}", row.title, row.body),
        }));
    }
    Ok(texts)
}

/// The revision of each document. Read it before the text that is to be embedded.
pub async fn revisions(
    connection: &mut PgConnection,
    ids: &[DocumentId],
) -> Result<HashMap<DocumentId, i32>, StoreError> {
    let kinds: Vec<String> = ids.iter().map(|id| id.kind.as_str().to_owned()).collect();
    let rows: Vec<i64> = ids.iter().map(|id| id.row).collect();
    let found = sqlx::query!(
        "select document_kind, document_id, revision from mem_search_index
         where (document_kind, document_id) in (select * from unnest($1::text[], $2::bigint[]))",
        &kinds,
        &rows,
    )
    .fetch_all(connection)
    .await?;
    Ok(found
        .into_iter()
        .filter_map(|row| {
            let kind = row.document_kind.parse().ok()?;
            Some((DocumentId { kind, row: row.document_id }, row.revision))
        })
        .collect())
}

/// The model's row, made if it is new.
pub async fn embedding_model(db: &Db, name: &str, dimensions: usize) -> Result<i32, StoreError> {
    let id = sqlx::query_scalar!(
        "insert into mem_embedding_models (name, dimensions) values ($1, $2)
         on conflict on constraint mem_embedding_models_name_unique do update set name = excluded.name
         returning id",
        name,
        dimensions as i32,
    )
    .fetch_one(db)
    .await?;
    Ok(id)
}

/// A document's vector, and the revision of the text that it was made from.
#[derive(Debug, Clone)]
pub struct Embedded {
    pub id: DocumentId,
    pub revision: i32,
    pub vector: Vec<f32>,
}

/// Writes the vectors of documents, all made by one model; not where the text has changed since. One statement each, so that no
/// two rows are locked at once.
pub async fn set_embeddings(db: &Db, model_id: i32, embedded: Vec<Embedded>) -> Result<(), StoreError> {
    for document in embedded {
        sqlx::query!(
            "update mem_search_index set embedding = $1, embedding_model_id = $2
             where document_kind = $3 and document_id = $4 and revision = $5",
            padded(document.vector) as HalfVector,
            model_id,
            document.id.kind.as_str(),
            document.id.row,
            document.revision,
        )
        .execute(db)
        .await?;
    }
    Ok(())
}

/// A vector at the length and the precision at which it is stored.
pub(crate) fn padded(mut vector: Vec<f32>) -> HalfVector {
    vector.resize(STORED_DIMENSIONS, 0.0);
    HalfVector::from_f32_slice(&vector)
}
