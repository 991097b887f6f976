//! `mem_injections`: what agents were told without having asked, so that nothing is told twice in a session, and how often.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::{Db, StoreError};
use crate::ids::{DocumentId, SessionId};

/// When an agent is told something without having asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// At a session's start.
    Brief,
    /// With a prompt.
    PromptHits,
}

impl Occasion {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Brief => "brief",
            Self::PromptHits => "prompt_hits",
        }
    }
}

/// What came of such an occasion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Spoke,
    /// There was nothing that would have helped.
    Silent,
    /// Whoever composed it was not ready in time.
    Late,
    Failed,
}

impl Told {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Spoke => "spoke",
            Self::Silent => "silent",
            Self::Late => "late",
            Self::Failed => "failed",
        }
    }
}

/// How often something was told on one kind of occasion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct InjectionCounts {
    pub spoke: i64,
    pub silent: i64,
    pub late: i64,
    pub failed: i64,
}

/// One thing that may be told: a text, and the document that it tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Telling {
    pub(crate) document: Option<DocumentId>,
    /// Without id and date: the same words are the same, whichever document they stand in.
    pub(crate) text: String,
}

/// Claims what was not yet told in this session; the answer holds, for each, whether it may be told.
pub(crate) async fn claim(
    connection: &mut PgConnection,
    session: SessionId,
    occasion: Occasion,
    tellings: &[Telling],
) -> Result<Vec<bool>, StoreError> {
    let hashes: Vec<_> = tellings.iter().map(|telling| hash_of(&telling.text)).collect();
    let kinds: Vec<_> = tellings.iter().map(|telling| telling.document.map(|id| id.kind.as_str().to_owned())).collect();
    let rows: Vec<_> = tellings.iter().map(|telling| telling.document.map(|id| id.row)).collect();
    let claimed = sqlx::query_scalar!(
        "insert into mem_injections (session_id, occasion, document_kind, document_id, content_hash)
         select $1, $2, kind, id, hash
         from unnest($3::text[], $4::bigint[], $5::bytea[]) as new (kind, id, hash)
         on conflict do nothing
         returning content_hash",
        session as SessionId,
        occasion.as_str(),
        &kinds as &[Option<String>],
        &rows as &[Option<i64>],
        &hashes,
    )
    .fetch_all(connection)
    .await?;
    let mut claimed: HashSet<Vec<u8>> = claimed.into_iter().collect();
    // Of two that say the same the first is told.
    Ok(hashes.into_iter().map(|hash| claimed.remove(&hash)).collect())
}

/// Counts an occasion.
pub async fn count_injection(db: &Db, occasion: Occasion, told: Told) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into mem_injection_counts (occasion, outcome, times) values ($1, $2, 1)
         on conflict on constraint mem_injection_counts_pkey do update set times = mem_injection_counts.times + 1",
        occasion.as_str(),
        told.as_str(),
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The counts of each occasion, by its name.
pub async fn injection_counts(db: &Db) -> Result<BTreeMap<String, InjectionCounts>, StoreError> {
    let rows = sqlx::query!("select occasion, outcome, times from mem_injection_counts").fetch_all(db).await?;
    let mut counts: BTreeMap<String, InjectionCounts> = [Occasion::Brief, Occasion::PromptHits]
        .map(|each| (each.as_str().to_owned(), InjectionCounts::default()))
        .into();
    for row in rows {
        let of = counts.entry(row.occasion).or_default();
        match row.outcome.as_str() {
            "spoke" => of.spoke = row.times,
            "late" => of.late = row.times,
            "failed" => of.failed = row.times,
            _ => of.silent = row.times,
        }
    }
    Ok(counts)
}

fn hash_of(text: &str) -> Vec<u8> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Sha256::digest(words.to_lowercase()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_the_same() {
        assert_eq!(hash_of("Take  any\nport"), hash_of("take any port"));
        assert_ne!(hash_of("take any port"), hash_of("take any port 0"));
    }
}
