//! `mem_api_tokens` and `mem_people`: tokens beside the home's own, each with its scopes, for a person or for a program. Only a token's
//! hash is kept, so whoever makes one sees it once.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use super::audit::{self, Act};
use super::{Db, StoreError};
use crate::access::{Scope, Who};
use crate::ids::{PersonId, TokenId};

/// How every token of ours begins: what does not is not looked up.
const PREFIX: &str = "am_";
/// A use is noted when the last one that was is so old.
const NOTED_EVERY_SECONDS: f64 = 60.0;

/// A token that is to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'a> {
    /// By which it is revoked and the audit log names it.
    pub name: &'a str,
    pub scopes: &'a [Scope],
    /// Whose it is; made where there is none of that name. Without one it sees everything.
    pub person: Option<&'a str>,
}

/// A token that was found, and what it allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownToken {
    pub name: String,
    pub scopes: Vec<Scope>,
    pub who: Who,
}

/// A token as an operator sees it. The token itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenOverview {
    pub name: String,
    pub scopes: Vec<String>,
    pub person: Option<String>,
    pub created_at: DateTime<Utc>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// Why tokens could not be changed as a person wished.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a token is called `{0}` already")]
    NameTaken(String),
    #[error("there is no token `{name}` that is in use; there are {known}")]
    Unknown { name: String, known: String },
    #[error("a token without a scope would allow nothing")]
    NoScope,
    #[error("`{0}` is no name: letters, digits, `-`, `_` and `.`, at most 64")]
    BadName(String),
}

impl TokenError {
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Store(_) => "`cargo xtask doctor` says whether the database is as it should be",
            Self::NameTaken(_) => "choose another name: a revoked token keeps its own, for the audit log names it",
            Self::Unknown { .. } => "`cargo xtask token list` shows them",
            Self::NoScope => "give at least one of ingest, recall and admin",
            Self::BadName(_) => "choose a name such as `ada-laptop`",
        }
    }
}

impl From<sqlx::Error> for TokenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Makes a token, and the person whose it is; gives its text, which is told once.
pub async fn create(db: &Db, new: NewToken<'_>, actor: &str) -> Result<String, TokenError> {
    let NewToken { name, scopes, person } = new;
    check_name(name)?;
    person.map_or(Ok(()), check_name)?;
    let mut scopes: Vec<String> = scopes.iter().map(Scope::to_string).collect();
    scopes.sort();
    scopes.dedup();
    if scopes.is_empty() {
        return Err(TokenError::NoScope);
    }
    let token = format!("{PREFIX}{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let mut tx = db.begin().await?;
    let person_id = match person {
        Some(person) => Some(person_of(&mut tx, person).await?),
        None => None,
    };
    let made = sqlx::query_scalar!(
        r#"insert into mem_api_tokens (name, token_hash, scopes, person_id) values ($1, $2, $3, $4)
           on conflict on constraint mem_api_tokens_name_unique do nothing
           returning id as "id: TokenId""#,
        name,
        hash(&token),
        &scopes,
        person_id as Option<PersonId>,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if made.is_none() {
        return Err(TokenError::NameTaken(name.to_owned()));
    }
    let details = serde_json::json!({ "scopes": scopes, "person": person });
    audit::note(&mut *tx, Act { actor, action: "token_created", subject: Some(name), details }).await?;
    tx.commit().await?;
    Ok(token)
}

/// What a token allows, unless it is unknown or revoked; notes its use.
pub async fn find(db: &Db, token: &str) -> Result<Option<KnownToken>, StoreError> {
    if !token.starts_with(PREFIX) {
        return Ok(None);
    }
    let row = sqlx::query!(
        r#"with known as (
               select id, name, scopes, person_id, last_used_at from mem_api_tokens where token_hash = $1 and revoked_at is null
           ), used as (
               update mem_api_tokens token set last_used_at = now() from known
               where token.id = known.id
                 and (known.last_used_at is null or known.last_used_at < now() - make_interval(secs => $2))
           )
           select name as "name!", scopes as "scopes!", person_id as "person_id: PersonId" from known"#,
        hash(token),
        NOTED_EVERY_SECONDS,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| KnownToken {
        name: row.name,
        // A scope of a newer program allows nothing here.
        scopes: row.scopes.iter().filter_map(|scope| scope.parse().ok()).collect(),
        who: Who::of_person(row.person_id),
    }))
}

/// All tokens, also those that were revoked, the newest first.
pub async fn list(db: &Db) -> Result<Vec<TokenOverview>, StoreError> {
    let tokens = sqlx::query_as!(
        TokenOverview,
        r#"select token.name, token.scopes, person.name as "person?", token.created_at, token.last_used_at, token.revoked_at
           from mem_api_tokens token left join mem_people person on person.id = token.person_id
           order by token.created_at desc, token.id desc"#,
    )
    .fetch_all(db)
    .await?;
    Ok(tokens)
}

/// From now on the token of that name allows nothing.
pub async fn revoke(db: &Db, name: &str, actor: &str) -> Result<(), TokenError> {
    let mut tx = db.begin().await?;
    let revoked =
        sqlx::query!("update mem_api_tokens set revoked_at = now() where name = $1 and revoked_at is null", name)
            .execute(&mut *tx)
            .await?;
    if revoked.rows_affected() == 0 {
        let in_use = sqlx::query_scalar!("select name from mem_api_tokens where revoked_at is null order by name");
        let known = in_use.fetch_all(&mut *tx).await?;
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(TokenError::Unknown { name: name.to_owned(), known });
    }
    let details = serde_json::json!({});
    audit::note(&mut *tx, Act { actor, action: "token_revoked", subject: Some(name), details }).await?;
    Ok(tx.commit().await?)
}

/// Whether there is one in use.
pub async fn any(db: &Db) -> Result<bool, StoreError> {
    let any = sqlx::query_scalar!(r#"select exists (select from mem_api_tokens where revoked_at is null) as "any!""#);
    Ok(any.fetch_one(db).await?)
}

async fn person_of(connection: &mut PgConnection, name: &str) -> Result<PersonId, StoreError> {
    let id = sqlx::query_scalar!(
        r#"insert into mem_people (name) values ($1)
           on conflict on constraint mem_people_name_unique do update set name = excluded.name
           returning id as "id: PersonId""#,
        name,
    )
    .fetch_one(connection)
    .await?;
    Ok(id)
}

/// Names stand in log lines, in paths of requests and on command lines.
fn check_name(name: &str) -> Result<(), TokenError> {
    let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if fits && !name.is_empty() && name.len() <= 64 { Ok(()) } else { Err(TokenError::BadName(name.to_owned())) }
}

/// A token is random through and through: one round of a hash is enough to keep it from being read out of the table.
fn hash(token: &str) -> Vec<u8> {
    Sha256::digest(token).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in ["ada-laptop", "ci.2", "A_b"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "ada laptop", "a/b", "ä", &"x".repeat(65)] {
            assert!(matches!(check_name(name), Err(TokenError::BadName(_))), "{name}");
        }
    }
}
