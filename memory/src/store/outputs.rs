//! `mem_outputs`: outputs larger than their preview, each stored once by its content.

use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::StoreError;

/// Stores the output unless it is there; returns its SHA-256.
pub(super) async fn keep(connection: &mut PgConnection, output: &str) -> Result<Vec<u8>, StoreError> {
    let hash = Sha256::digest(output).to_vec();
    sqlx::query!(
        "insert into mem_outputs (content_hash, body, size_bytes) values ($1, $2, $3)
         on conflict on constraint mem_outputs_pkey do nothing",
        hash,
        output,
        output.len() as i64,
    )
    .execute(connection)
    .await?;
    Ok(hash)
}
