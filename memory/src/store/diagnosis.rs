//! What `doctor` asks the journal: whether everything that happened also arrived, and whether it can be found.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Db, StoreError};

/// How many of an agent's calls are joined to their prompt, ever and in the last seven days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentLinkage {
    pub agent: String,
    pub calls: i64,
    pub linked: i64,
    pub recent_calls: i64,
    pub recent_linked: i64,
    pub last_event_at: Option<DateTime<Utc>>,
    /// Calls older than a day of which nobody has said yet whether they worked.
    pub assumed: i64,
}

pub async fn agents(db: &Db) -> Result<Vec<AgentLinkage>, StoreError> {
    let agents = sqlx::query_as!(
        AgentLinkage,
        r#"select session.agent, count(call.id) as "calls!", count(call.prev_user_prompt_id) as "linked!",
                  count(call.id) filter (where call.occurred_at > now() - interval '7 days') as "recent_calls!",
                  count(call.prev_user_prompt_id) filter (where call.occurred_at > now() - interval '7 days')
                      as "recent_linked!",
                  max(session.last_event_at) as last_event_at,
                  count(call.id) filter (where call.outcome_is_assumed and call.occurred_at < now() - interval '1 day')
                      as "assumed!"
           from mem_sessions session left join mem_tool_calls call on call.session_id = session.id
           group by session.agent order by session.agent"#
    )
    .fetch_all(db)
    .await?;
    Ok(agents)
}

/// Documents by the model that made their vectors; `model` is null for those without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelShare {
    pub model: Option<String>,
    pub documents: i64,
}

pub async fn models(db: &Db) -> Result<Vec<ModelShare>, StoreError> {
    let shares = sqlx::query_as!(
        ModelShare,
        r#"select model.name as "model?", count(*) as "documents!"
           from mem_search_index document
           left join mem_embedding_models model on model.id = document.embedding_model_id
           group by model.name order by count(*) desc"#
    )
    .fetch_all(db)
    .await?;
    Ok(shares)
}

/// The size of the whole database on disk, free space inside its files included.
pub async fn database_bytes(db: &Db) -> Result<i64, StoreError> {
    let bytes = sqlx::query_scalar!(r#"select pg_database_size(current_database()) as "bytes!""#).fetch_one(db).await?;
    Ok(bytes)
}
