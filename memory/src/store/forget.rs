//! Removing documents for good, because a person wants them gone: the row with all it holds, its place in the index, what waits to be
//! done with it, and whole outputs that nothing else refers to. What was removed is kept from coming back (`mem_forgotten`) and
//! stands, by its ids alone, in the audit log.
//!
//! As in `retention` a transaction holds one session at a time. The agent's own transcript files are not ours to change.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use super::audit::{self, Act};
use super::{Db, StoreError, documents, lesson_events, outputs};
use crate::ids::{DocumentId, DocumentKind};

/// What the audit log calls it.
const ACTION: &str = "forget";

/// What removing these documents takes with it: them, and the earlier versions of notes.
pub async fn forgettable(connection: &mut PgConnection, ids: &[DocumentId]) -> Result<Vec<DocumentId>, StoreError> {
    let notes = rows_of(ids, DocumentKind::Note);
    let earlier = sqlx::query_scalar!(
        r#"with recursive version as (
               select id from mem_observations where superseded_by = any($1)
               union
               select earlier.id from mem_observations earlier join version on earlier.superseded_by = version.id
           )
           select id as "id!" from version order by id"#,
        &notes,
    )
    .fetch_all(connection)
    .await?;
    let mut all = ids.to_vec();
    for row in earlier {
        let id = DocumentId { kind: DocumentKind::Note, row };
        if !all.contains(&id) {
            all.push(id);
        }
    }
    Ok(all)
}

/// Removes documents; gives those that were there, with the earlier versions of notes.
pub async fn forget(db: &Db, ids: &[DocumentId], actor: &str) -> Result<Vec<DocumentId>, StoreError> {
    let mut connection = db.acquire().await?;
    let ids = forgettable(&mut connection, ids).await?;
    let sessions = by_session(&mut connection, &ids).await?;
    drop(connection);
    let mut gone = Vec::new();
    let mut hashes = Vec::new();
    for (session, ids) in sessions {
        let mut tx = db.begin().await?;
        sqlx::query_scalar!("select id from mem_sessions where id = $1 for update", session)
            .fetch_optional(&mut *tx)
            .await?;
        documents::remove(&mut tx, &ids).await?;
        hashes.extend(forget_calls(&mut tx, &rows_of(&ids, DocumentKind::Call)).await?);
        forget_prompts(&mut tx, &rows_of(&ids, DocumentKind::Prompt)).await?;
        note(&mut tx, &ids, actor).await?;
        tx.commit().await?;
        gone.extend(ids);
    }
    lesson_events::forget(db, &gone).await?;
    let notes: Vec<_> = ids.into_iter().filter(|id| id.kind == DocumentKind::Note).collect();
    if !notes.is_empty() {
        let mut tx = db.begin().await?;
        documents::remove(&mut tx, &notes).await?;
        let removed = sqlx::query_scalar!(
            "delete from mem_observations where id = any($1) returning id",
            &rows_of(&notes, DocumentKind::Note)
        )
        .fetch_all(&mut *tx)
        .await?;
        let notes: Vec<_> = notes.into_iter().filter(|id| removed.contains(&id.row)).collect();
        note(&mut tx, &notes, actor).await?;
        tx.commit().await?;
        gone.extend(notes);
    }
    outputs::remove_orphans_among(db, &hashes).await?;
    Ok(gone)
}

fn rows_of(ids: &[DocumentId], kind: DocumentKind) -> Vec<i64> {
    ids.iter().filter(|id| id.kind == kind).map(|id| id.row).collect()
}

/// Prompts and calls that are there, by the session that they belong to.
async fn by_session(
    connection: &mut PgConnection,
    ids: &[DocumentId],
) -> Result<BTreeMap<i64, Vec<DocumentId>>, StoreError> {
    let rows = sqlx::query!(
        r#"select session_id as "session_id!", 'prompt' as "kind!", id as "id!" from mem_user_prompts where id = any($1)
           union all select session_id, 'call', id from mem_tool_calls where id = any($2)"#,
        &rows_of(ids, DocumentKind::Prompt),
        &rows_of(ids, DocumentKind::Call),
    )
    .fetch_all(connection)
    .await?;
    let mut sessions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in rows {
        if let Ok(kind) = row.kind.parse() {
            sessions.entry(row.session_id).or_default().push(DocumentId { kind, row: row.id });
        }
    }
    Ok(sessions)
}

/// Removes calls; gives the hashes of their whole outputs.
async fn forget_calls(connection: &mut PgConnection, rows: &[i64]) -> Result<Vec<Vec<u8>>, StoreError> {
    let hashes = sqlx::query_scalar!(
        r#"with gone as (
               delete from mem_tool_calls where id = any($1)
               returning session_id, tool_use_id, live_event_id, output_hash, tool_name || ' ' || input::text as said
           ), kept as (
               insert into mem_forgotten (session_id, kind, key, digest)
               select session_id, 'call', key, case when live_event_id is not null then mem_digest(said) end
               from gone cross join lateral (values (tool_use_id), ('event:' || live_event_id)) as known (key)
               where key is not null
               on conflict on constraint mem_forgotten_pkey do nothing
           )
           select output_hash as "output_hash!" from gone where output_hash is not null"#,
        rows,
    )
    .fetch_all(connection)
    .await?;
    Ok(hashes)
}

/// Removes prompts with their answers, and what a slash command became one by.
async fn forget_prompts(connection: &mut PgConnection, rows: &[i64]) -> Result<(), StoreError> {
    sqlx::query!(
        r#"with gone as (
               delete from mem_user_prompts where id = any($1) returning session_id, prompt_id, live_event_id, prompt
           ), expansions as (
               delete from mem_session_events event using gone
               where event.session_id = gone.session_id and event.prompt_id = gone.prompt_id and event.kind = 'prompt_expanded'
           )
           insert into mem_forgotten (session_id, kind, key, digest)
           select session_id, 'prompt', key, case when live_event_id is not null then mem_digest(prompt) end
           from gone cross join lateral (values (prompt_id), ('event:' || live_event_id)) as known (key)
           where key is not null
           on conflict on constraint mem_forgotten_pkey do nothing"#,
        rows,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Says who removed what; of what it said nothing.
async fn note(connection: &mut PgConnection, ids: &[DocumentId], actor: &str) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    let details = serde_json::json!({ "documents": ids });
    audit::note(connection, Act { actor, action: ACTION, subject: None, details }).await
}
