//! Keeping the index in order, apart from the events that fill it: counting what ranking by words asks for, and making rows again
//! that an earlier version of the analysis made.

use sqlx::PgConnection;

use super::documents::analysed;
use super::{Db, StoreError, document_texts};
use crate::analyze;
use crate::ids::{DocumentId, DocumentKind};

/// Lexemes are counted again when the documents are so many times more or fewer than when they were counted.
const GROWTH: f64 = 1.1;
/// Beyond this many a sample of so many is counted: enough to tell a rare word from a common one. Counting them takes about a second.
const SAMPLE: f64 = 30_000.0;

/// Counts documents and lexemes if the index has changed enough since the last time, and not more often than is worth it: for each
/// million documents a quarter of an hour passes. Returns whether it counted.
pub async fn count_lexemes(db: &Db) -> Result<bool, StoreError> {
    let mut tx = db.begin().await?;
    // One server does it for all.
    let due = sqlx::query!(
        "select documents from mem_search_statistics
         where counted_at <= now() - least(documents, 1000000) * interval '0.9 millisecond'
         for update skip locked"
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(counted) = due else { return Ok(false) };
    let documents =
        sqlx::query_scalar!(r#"select count(*) as "count!" from mem_search_index"#).fetch_one(&mut *tx).await?;
    let (before, now) = (counted.documents as f64, documents as f64);
    let is_alike = now <= before * GROWTH && before <= now * GROWTH;
    if is_alike {
        sqlx::query!("update mem_search_statistics set counted_at = now()").execute(&mut *tx).await?;
    } else {
        count(&mut tx, documents).await?;
    }
    tx.commit().await?;
    Ok(!is_alike)
}

async fn count(connection: &mut PgConnection, documents: i64) -> Result<(), StoreError> {
    let share = (SAMPLE / documents as f64).min(1.0);
    let sample = if share < 1.0 { format!(" tablesample system ({})", share * 100.0) } else { String::new() };
    sqlx::query!("delete from mem_lexemes").execute(&mut *connection).await?;
    // What is not there counts as held by one document.
    sqlx::query!(
        "insert into mem_lexemes (lexeme, documents)
         select word, ceil(ndoc / $2::double precision) from ts_stat($1) where ndoc > 1",
        format!("select lexemes from mem_search_index{sample}"),
        share,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "update mem_search_statistics
         set documents = $1, counted_at = now(),
             average_length = (select coalesce(avg(length), 0) from mem_search_index)",
        documents,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes so many rows again that were made by another version of the analysis; returns how many, 0 when there are none left. Their
/// vectors stay: the text is the same.
pub async fn reindex(db: &Db, limit: i64) -> Result<usize, StoreError> {
    let mut tx = db.begin().await?;
    let rows = sqlx::query!(
        "select document_kind, document_id from mem_search_index where analysis <> $1
         limit $2 for no key update skip locked",
        analyze::VERSION,
        limit,
    )
    .fetch_all(&mut *tx)
    .await?;
    let ids: Vec<_> = rows
        .into_iter()
        .filter_map(|row| {
            Some(DocumentId { kind: row.document_kind.parse::<DocumentKind>().ok()?, row: row.document_id })
        })
        .collect();
    let documents = document_texts(&mut tx, &ids).await?;
    let (ids, texts): (Vec<_>, Vec<_>) = documents.into_iter().map(|document| (document.id, document.text)).unzip();
    let (kinds, rows): (Vec<_>, Vec<_>) = ids.iter().map(|id| (id.kind.as_str().to_owned(), id.row)).unzip();
    let (lexemes, lengths): (Vec<_>, Vec<_>) =
        analysed(texts).await?.into_iter().map(|made| (made.tsvector, made.length)).unzip();
    sqlx::query!(
        "update mem_search_index indexed
         set lexemes = made.lexemes::tsvector, length = made.length, analysis = $5
         from unnest($1::text[], $2::bigint[], $3::text[], $4::integer[]) as made (document_kind, document_id, lexemes, length)
         where indexed.document_kind = made.document_kind and indexed.document_id = made.document_id",
        &kinds,
        &rows,
        &lexemes,
        &lengths,
        analyze::VERSION,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(rows.len())
}
