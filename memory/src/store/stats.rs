//! The journal in numbers, for `status`, `doctor` and health.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Db, StoreError};

/// Counts over the whole journal. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    pub projects: i64,
    pub sessions: i64,
    pub prompts: i64,
    pub tool_calls: i64,
    /// Tool calls that are joined to their prompt.
    pub linked_tool_calls: i64,
    pub observations: i64,
    pub indexed_documents: i64,
    pub embedded_documents: i64,
    pub jobs_pending: i64,
    pub jobs_dead: i64,
    pub database_bytes: i64,
    pub last_event_at: Option<DateTime<Utc>>,
}

impl Stats {
    /// The share of tool calls that are joined to their prompt, 0 to 1; `None` while there are no calls.
    pub fn linkage_ratio(&self) -> Option<f64> {
        (self.tool_calls > 0).then(|| self.linked_tool_calls as f64 / self.tool_calls as f64)
    }
}

pub async fn stats(db: &Db) -> Result<Stats, StoreError> {
    let stats = sqlx::query_as!(
        Stats,
        r#"select
               (select count(*) from mem_projects) as "projects!",
               (select count(*) from mem_sessions) as "sessions!",
               (select count(*) from mem_user_prompts where prompt is not null) as "prompts!",
               (select count(*) from mem_tool_calls) as "tool_calls!",
               (select count(*) from mem_tool_calls where prev_user_prompt_id is not null) as "linked_tool_calls!",
               (select count(*) from mem_observations) as "observations!",
               (select count(*) from mem_search_index) as "indexed_documents!",
               (select count(*) from mem_search_index where embedding is not null) as "embedded_documents!",
               (select count(*) from mem_observation_queue where status = 'pending') as "jobs_pending!",
               (select count(*) from mem_observation_queue where status = 'dead') as "jobs_dead!",
               pg_database_size(current_database()) as "database_bytes!",
               (select max(last_event_at) from mem_sessions) as last_event_at"#
    )
    .fetch_one(db)
    .await?;
    Ok(stats)
}
