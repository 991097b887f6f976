//! The two scans that no search can do without, alone: with these a search is compared.

use pgvector::HalfVector;

use super::super::documents::padded;
use super::super::{Db, StoreError};
use crate::embed::QueryVector;

/// As many as come in by their meaning in a search.
const NEAREST: i64 = 30;
/// As many as come in by their words at most.
const MATCHING: i64 = 4_000;

/// One scan of the HNSW index: the ids of the nearest documents. Gives how many there are.
pub async fn by_hnsw(db: &Db, vector: &QueryVector) -> Result<usize, StoreError> {
    let found = sqlx::query!(
        "select document_kind, document_id from mem_search_index order by embedding <=> $1 limit $2",
        padded(vector.vector.clone()) as HalfVector,
        NEAREST,
    )
    .fetch_all(db)
    .await?;
    Ok(found.len())
}

/// One scan of the GIN index: the ids of the documents that match a `tsquery`. Gives how many there are.
pub async fn by_gin(db: &Db, tsquery: &str) -> Result<usize, StoreError> {
    let found = sqlx::query!(
        "select document_kind, document_id from mem_search_index where lexemes @@ $1::text::tsquery limit $2",
        tsquery,
        MATCHING,
    )
    .fetch_all(db)
    .await?;
    Ok(found.len())
}
