//! `mem_outputs`: outputs larger than their preview, each stored once by its content.

use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::retention::Amount;
use super::{Db, StoreError};

/// Stores the output unless it is there; returns its SHA-256. Either way its row is locked until the transaction ends, so that
/// nobody takes it for an orphan before the call that refers to it is there.
pub(super) async fn keep(connection: &mut PgConnection, output: &str) -> Result<Vec<u8>, StoreError> {
    let hash = Sha256::digest(output).to_vec();
    sqlx::query!(
        "insert into mem_outputs (content_hash, body, size_bytes) values ($1, $2, $3)
         on conflict on constraint mem_outputs_pkey do update set recorded_at = now()",
        hash,
        output,
        output.len() as i64,
    )
    .execute(connection)
    .await?;
    Ok(hash)
}

/// Outputs that no call refers to, and what they take on disk.
pub(super) async fn count_orphans(connection: &mut PgConnection) -> Result<Amount, StoreError> {
    let orphans = sqlx::query_as!(
        Amount,
        r#"select count(*) as "rows!", coalesce(sum(pg_column_size(body)), 0)::bigint as "bytes!"
           from mem_outputs output
           where not exists (select from mem_tool_calls where output_hash = output.content_hash)"#
    )
    .fetch_one(connection)
    .await?;
    Ok(orphans)
}

/// Deletes outputs that no call refers to, some at a time: first locked, then looked at again, for a call may have come to refer
/// to one in between, and whoever stores such a call holds the row's lock until it is there.
pub(super) async fn remove_orphans(db: &Db) -> Result<Amount, StoreError> {
    const BATCH: i64 = 200;
    let mut removed = Amount::default();
    loop {
        let mut tx = db.begin().await?;
        let orphans = sqlx::query_scalar!(
            "select content_hash from mem_outputs output
             where not exists (select from mem_tool_calls where output_hash = output.content_hash)
             order by content_hash limit $1
             for update skip locked",
            BATCH,
        )
        .fetch_all(&mut *tx)
        .await?;
        let gone = sqlx::query_as!(
            Amount,
            r#"with gone as (
                   delete from mem_outputs output
                   where content_hash = any($1)
                     and not exists (select from mem_tool_calls where output_hash = output.content_hash)
                   returning pg_column_size(body) as bytes
               )
               select count(*) as "rows!", coalesce(sum(bytes), 0)::bigint as "bytes!" from gone"#,
            &orphans,
        )
        .fetch_one(&mut *tx)
        .await?;
        tx.commit().await?;
        removed += gone;
        if gone.rows == 0 {
            return Ok(removed);
        }
    }
}

/// Deletes those of these outputs that no call refers to any more.
pub(super) async fn remove_orphans_among(db: &Db, hashes: &[Vec<u8>]) -> Result<(), StoreError> {
    if hashes.is_empty() {
        return Ok(());
    }
    let mut tx = db.begin().await?;
    // Whoever stores a call that refers to one holds its lock until that call is there.
    sqlx::query_scalar!(
        "select content_hash from mem_outputs where content_hash = any($1) order by content_hash for update",
        hashes,
    )
    .fetch_all(&mut *tx)
    .await?;
    drop_unused(&mut tx, hashes).await?;
    tx.commit().await?;
    Ok(())
}

/// The same for outputs whose locks this transaction holds, as it does when it has kept them.
pub(super) async fn drop_unused(connection: &mut PgConnection, hashes: &[Vec<u8>]) -> Result<(), StoreError> {
    if hashes.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "delete from mem_outputs output
         where content_hash = any($1)
           and not exists (select from mem_tool_calls where output_hash = output.content_hash)",
        hashes,
    )
    .execute(connection)
    .await?;
    Ok(())
}
