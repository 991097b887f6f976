//! The index made again from the journal, from which all of it is derived: rows that are missing come back, others get the lexemes that
//! this version makes of their text, and what the journal no longer has goes. Vectors stay.

use sqlx::PgConnection;

use super::documents::{self, Entry, analysed};
use super::{Db, EMBED_DOCUMENT, StoreError, document_texts};
use crate::analyze;
use crate::ids::{DocumentId, DocumentKind, ProjectId, SessionId};
use crate::queue::{self, NewJob};

/// The order in which the kinds are made again.
const KINDS: [DocumentKind; 3] = [DocumentKind::Prompt, DocumentKind::Call, DocumentKind::Note];

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebuilt {
    /// Documents that were made again or for the first time.
    pub documents: usize,
    /// Those of them that had no row.
    pub missing: usize,
    /// The last of them; the next step goes on behind it. `None`: there are no more.
    pub last: Option<DocumentId>,
}

/// Makes up to `limit` documents behind `after` again, in a transaction of their own.
pub async fn rebuild(db: &Db, after: Option<DocumentId>, limit: i64) -> Result<Rebuilt, StoreError> {
    let (mut kind, mut row) = after.map_or((KINDS[0], 0), |id| (id.kind, id.row));
    let mut tx = db.begin().await?;
    loop {
        let entries = entries(&mut tx, kind, row, limit).await?;
        if !entries.is_empty() {
            let last = entries.last().map(|entry| entry.id);
            let documents = entries.len();
            let missing = write(&mut tx, entries).await?;
            tx.commit().await?;
            return Ok(Rebuilt { documents, missing, last });
        }
        match KINDS.iter().skip_while(|known| **known != kind).nth(1) {
            Some(next) => (kind, row) = (*next, 0),
            None => return Ok(Rebuilt { documents: 0, missing: 0, last: None }),
        }
    }
}

/// How many documents the journal holds.
pub async fn count_documents(db: &Db) -> Result<i64, StoreError> {
    let count = sqlx::query_scalar!(
        r#"select (select count(*) from mem_user_prompts) + (select count(*) from mem_tool_calls)
                  + (select count(*) from mem_observations) as "count!""#
    )
    .fetch_one(db)
    .await?;
    Ok(count)
}

/// Removes rows whose document the journal does not have; gives their number.
pub async fn remove_orphans(db: &Db) -> Result<u64, StoreError> {
    let removed = sqlx::query!(
        "delete from mem_search_index document
         where case document_kind
               when 'prompt' then not exists (select from mem_user_prompts where id = document.document_id)
               when 'call' then not exists (select from mem_tool_calls where id = document.document_id)
               else not exists (select from mem_observations where id = document.document_id and superseded_by is null)
               end"
    )
    .execute(db)
    .await?;
    Ok(removed.rows_affected())
}

/// What can be found, kind by kind: the same that the way in puts into the index.
async fn entries(
    connection: &mut PgConnection,
    kind: DocumentKind,
    after: i64,
    limit: i64,
) -> Result<Vec<Entry>, StoreError> {
    let rows = sqlx::query!(
        r#"select document.id as "id!", document.project_id as "project_id: ProjectId",
                  document.session_id as "session_id: SessionId", document.occurred_at as "occurred_at!"
           from (
               (select prompt.id, session.project_id, prompt.session_id, prompt.occurred_at
                from mem_user_prompts prompt join mem_sessions session on session.id = prompt.session_id
                where $1 = 'prompt' and prompt.id > $2 and coalesce(prompt.prompt, prompt.answer) is not null
                order by prompt.id limit $3)
               union all
               (select call.id, session.project_id, call.session_id, call.occurred_at
                from mem_tool_calls call join mem_sessions session on session.id = call.session_id
                where $1 = 'call' and call.id > $2 and tool_name not like 'mcp\_\_%agent-memory\_\_%'
                order by call.id limit $3)
               union all
               -- A digest stands at no place in its session's order (`digests`).
               (select id, project_id, case when kind = 'digest' and source = 'worker' then null else session_id end,
                       occurred_at
                from mem_observations
                where $1 = 'note' and id > $2 and superseded_by is null
                order by id limit $3)
           ) document
           order by document.id"#,
        kind.as_str(),
        after,
        limit,
    )
    .fetch_all(connection)
    .await?;
    let entry =
        |row: i64, project, session, occurred_at| Entry { id: DocumentId { kind, row }, project, session, occurred_at };
    Ok(rows.into_iter().map(|row| entry(row.id, row.project_id, row.session_id, row.occurred_at)).collect())
}

/// Writes the rows; gives how many were not there. Those that are there are locked before their texts are read, so that no later text is
/// overwritten with an earlier one's lexemes; where a row is made meanwhile, it stays as it was made.
async fn write(connection: &mut PgConnection, entries: Vec<Entry>) -> Result<usize, StoreError> {
    let Some(kind) = entries.first().map(|entry| entry.id.kind) else { return Ok(0) };
    let ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
    let locked = sqlx::query_scalar!(
        "select document_id from mem_search_index where document_kind = $1 and document_id = any($2)
         order by document_id for no key update",
        kind.as_str(),
        &ids.iter().map(|id| id.row).collect::<Vec<_>>(),
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut texts: std::collections::HashMap<_, _> =
        document_texts(connection, &ids).await?.into_iter().map(|document| (document.id, document.text)).collect();
    let (entries, texts): (Vec<_>, Vec<_>) =
        entries.into_iter().filter_map(|entry| texts.remove(&entry.id).map(|text| (entry, text))).unzip();
    let made = analysed(texts).await?;
    let columns = documents::Columns::of(&entries, made);
    let missing = sqlx::query!(
        r#"insert into mem_search_index (document_kind, document_id, project_id, session_id, occurred_at, lexemes, length, analysis)
           select kind, id, project_id, session_id, occurred_at, lexemes::tsvector, length, $8
           from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::text[], $7::integer[])
                as new (kind, id, project_id, session_id, occurred_at, lexemes, length)
           on conflict on constraint mem_search_index_pkey do update set
               lexemes = excluded.lexemes, length = excluded.length, analysis = excluded.analysis,
               project_id = excluded.project_id, session_id = excluded.session_id
           where mem_search_index.document_id = any($9)
           returning document_id, xmax = 0 as "is_new!""#,
        &columns.kinds,
        &columns.rows,
        &columns.projects as &[Option<i64>],
        &columns.sessions as &[Option<i64>],
        &columns.times,
        &columns.lexemes,
        &columns.lengths,
        analyze::VERSION,
        &locked,
    )
    .fetch_all(&mut *connection)
    .await?;
    let jobs: Vec<_> = missing
        .iter()
        .filter(|row| row.is_new)
        .map(|row| {
            let id = DocumentId { kind, row: row.document_id }.to_string();
            NewJob::once(EMBED_DOCUMENT, serde_json::json!({ "document": id }), id)
        })
        .collect();
    queue::enqueue(connection, &jobs).await?;
    Ok(jobs.len())
}
