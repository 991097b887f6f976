//! What of the journal could become training rows.

use serde::Serialize;

use super::{Db, StoreError};

/// One project and source model: prompts with at least one joined call, and those calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainableCount {
    pub project: String,
    /// The model that made the calls; unknown where the agent never said.
    pub source_model: Option<String>,
    pub prompts: i64,
    pub joined_calls: i64,
}

pub async fn count_trainable(db: &Db) -> Result<Vec<TrainableCount>, StoreError> {
    let counts = sqlx::query_as!(
        TrainableCount,
        r#"select project.name as project, session.model as source_model,
                  count(distinct prompt.id) as "prompts!", count(call.id) as "joined_calls!"
           from mem_user_prompts prompt
           join mem_tool_calls call on call.prev_user_prompt_id = prompt.id and call.subagent_id is null
           join mem_sessions session on session.id = prompt.session_id
           join mem_projects project on project.id = session.project_id
           where prompt.prompt is not null
             -- What the agent said to itself is nobody's question.
             and coalesce(prompt.source, 'user') in ('user', 'sdk')
           group by project.id, project.name, session.model
           order by count(call.id) desc, project.name, session.model"#
    )
    .fetch_all(db)
    .await?;
    Ok(counts)
}
