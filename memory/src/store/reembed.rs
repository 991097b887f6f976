//! A vector of the present model for every document: after a change of the model the vectors of the former are made again, in the order
//! of the documents' ids, while searches find them by their words.

use sqlx::PgConnection;

use super::{Db, EMBED_DOCUMENT, StoreError};
use crate::ids::DocumentId;

/// Where a walk through the index stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walk {
    /// Behind this document.
    At(DocumentId),
    Done,
}

/// Looks at the next `limit` documents behind `after`, and has those embedded whose vector another model made; gives their number.
pub async fn enqueue_of_other_models(
    db: &Db,
    model: &str,
    after: Option<DocumentId>,
    limit: i64,
) -> Result<(u64, Walk), StoreError> {
    let (kind, row) = after.map_or((String::new(), 0), |id| (id.kind.as_str().to_owned(), id.row));
    let mut tx = db.begin().await?;
    let looked_at = sqlx::query!(
        r#"select document_kind, document_id,
                  embedding_model_id is not null
                  and embedding_model_id is distinct from (select id from mem_embedding_models where name = $1) as "is_stale!"
           from mem_search_index
           where (document_kind, document_id) > ($2, $3)
           order by document_kind, document_id limit $4"#,
        model,
        kind,
        row,
        limit,
    )
    .fetch_all(&mut *tx)
    .await?;
    let documents: Vec<_> = looked_at
        .iter()
        .filter_map(|row| {
            Some((DocumentId { kind: row.document_kind.parse().ok()?, row: row.document_id }, row.is_stale))
        })
        .collect();
    let stale: Vec<_> = documents.iter().filter(|(_, is_stale)| *is_stale).map(|(id, _)| *id).collect();
    let enqueued = enqueue(&mut tx, &stale).await?;
    tx.commit().await?;
    let walk = match documents.last() {
        Some((last, _)) if looked_at.len() as i64 == limit => Walk::At(*last),
        _ => Walk::Done,
    };
    Ok((enqueued, walk))
}

/// One job each, but for those that wait for it already.
async fn enqueue(connection: &mut PgConnection, ids: &[DocumentId]) -> Result<u64, StoreError> {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let enqueued = sqlx::query!(
        "insert into mem_observation_queue (kind, payload, dedupe_key)
         select $1, jsonb_build_object('document', id), id from unnest($2::text[]) as stale (id)
         on conflict (kind, dedupe_key) where status = 'pending' do nothing",
        EMBED_DOCUMENT,
        &ids,
    )
    .execute(connection)
    .await?;
    Ok(enqueued.rows_affected())
}

/// Has every document embedded anew that has no vector of the model (its name, or its name before the `@`), or every one; gives their
/// number. Those that wait for it already are not counted.
pub async fn enqueue_without_vector(db: &Db, model: Option<&str>) -> Result<u64, StoreError> {
    // It looks at every document.
    let mut tx = db.begin_with("begin; set local statement_timeout = 0").await?;
    let enqueued = sqlx::query!(
        "insert into mem_observation_queue (kind, payload, dedupe_key)
         select $1, jsonb_build_object('document', document_kind || '-' || document_id), document_kind || '-' || document_id
         from mem_search_index document
         left join mem_embedding_models model on model.id = document.embedding_model_id
         where $2::text is null or model.name is null or model.name <> $2 and split_part(model.name, '@', 1) <> $2
         order by document_kind, document_id
         on conflict (kind, dedupe_key) where status = 'pending' do nothing",
        EMBED_DOCUMENT,
        model,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(enqueued.rows_affected())
}

/// Counts the documents that have no vector of the model, for searches to tell; gives their number.
pub async fn count_without_vector(db: &Db, model: &str) -> Result<i64, StoreError> {
    let count = sqlx::query_scalar!(
        r#"update mem_search_statistics
           set documents_without_vector = (
               select count(*) from mem_search_index
               where embedding is null
                  or embedding_model_id is distinct from (select id from mem_embedding_models where name = $1))
           returning documents_without_vector as "count!""#,
        model,
    )
    .fetch_one(db)
    .await?;
    Ok(count)
}
