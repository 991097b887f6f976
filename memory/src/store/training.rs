//! What of the journal could become training rows.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{Db, QUEUED, StoreError};
use crate::ids::SessionId;

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

/// A session of which rows can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingSession {
    pub id: SessionId,
    pub agent: String,
    /// The agent's own id.
    pub external_id: String,
    pub project: String,
    /// Names the repository wherever it lies.
    pub project_key: String,
    /// The model that made the calls; unknown where the agent never said.
    pub source_model: Option<String>,
    /// The folder of the checkout that the session worked in.
    pub folder: Option<String>,
    pub started_at: DateTime<Utc>,
}

/// What a person asked, what was done for it, and the closing answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrainingTurn {
    pub prompt_id: String,
    pub prompt: String,
    pub answer: Option<String>,
    pub calls: Vec<TrainingCall>,
    pub occurred_at: DateTime<Utc>,
    /// Its place in the session.
    pub turn_index: i32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrainingCall {
    pub tool_use_id: String,
    pub tool_name: String,
    pub input: Value,
    /// At most the preview of it.
    pub output: Option<String>,
    pub success: bool,
    pub error: Option<String>,
    /// The agent did not say whether it worked.
    pub outcome_is_assumed: bool,
    /// There was an output, and it was removed for its age.
    pub output_is_gone: bool,
    /// Its place in the turn.
    pub turn_subindex: Option<i32>,
    pub occurred_at: DateTime<Utc>,
}

/// All sessions with a prompt, in an order that does not depend on when they were recorded: by repository, then by time.
pub async fn training_sessions(db: &Db) -> Result<Vec<TrainingSession>, StoreError> {
    let mut sessions = sqlx::query_as!(
        TrainingSession,
        r#"select session.id as "id: SessionId", agent, external_id, project.name as project,
                  project.identity_key as project_key, model as source_model,
                  coalesce(session.worktree, session.working_folder) as folder, started_at
           from mem_sessions session
           join mem_projects project on project.id = session.project_id
           where exists (select from mem_user_prompts where session_id = session.id and prompt is not null)"#
    )
    .fetch_all(db)
    .await?;
    sessions.sort_by(|left, right| {
        let key = |session: &TrainingSession| {
            (session.project_key.clone(), session.started_at, session.agent.clone(), session.external_id.clone())
        };
        key(left).cmp(&key(right))
    });
    Ok(sessions)
}

/// The turns of a session that a person typed, in their order, each with the calls that are joined to it. What subagents did is
/// not among them: the person did not ask for that.
pub async fn training_turns(db: &Db, session: SessionId) -> Result<Vec<TrainingTurn>, StoreError> {
    let prompts = sqlx::query!(
        r#"select id, prompt_id, turn_index, prompt as "prompt!", answer, occurred_at
           from mem_user_prompts
           where session_id = $1 and prompt is not null
             and coalesce(source, 'user') in ('user', 'sdk', $2)"#,
        session.0,
        QUEUED,
    )
    .fetch_all(db)
    .await?;
    let calls = sqlx::query!(
        r#"select prev_user_prompt_id as "prompt!", tool_use_id, tool_name, input, output_preview as output, success, error,
                  outcome_is_assumed, (output_preview is null and truncated_at_bytes is not null) as "output_is_gone!",
                  turn_subindex, occurred_at
           from mem_tool_calls
           where session_id = $1 and prev_user_prompt_id is not null and subagent_id is null"#,
        session.0,
    )
    .fetch_all(db)
    .await?;
    let mut turns = BTreeMap::new();
    for row in prompts {
        let turn = TrainingTurn {
            prompt_id: row.prompt_id,
            prompt: row.prompt,
            answer: row.answer,
            calls: Vec::new(),
            occurred_at: row.occurred_at,
            turn_index: row.turn_index,
        };
        turns.insert(row.id, turn);
    }
    for row in calls {
        let Some(turn) = turns.get_mut(&row.prompt) else { continue };
        turn.calls.push(TrainingCall {
            tool_use_id: row.tool_use_id,
            tool_name: row.tool_name,
            input: row.input,
            output: row.output,
            success: row.success,
            error: row.error,
            outcome_is_assumed: row.outcome_is_assumed,
            output_is_gone: row.output_is_gone,
            turn_subindex: row.turn_subindex,
            occurred_at: row.occurred_at,
        });
    }
    let mut turns: Vec<_> = turns.into_values().collect();
    for turn in &mut turns {
        turn.calls.sort_by(|left, right| {
            let key = |call: &TrainingCall| (call.turn_subindex, call.occurred_at, call.tool_use_id.clone());
            key(left).cmp(&key(right))
        });
    }
    turns.sort_by(|left, right| {
        let key = |turn: &TrainingTurn| (turn.turn_index, turn.occurred_at, turn.prompt_id.clone());
        key(left).cmp(&key(right))
    });
    Ok(turns)
}
