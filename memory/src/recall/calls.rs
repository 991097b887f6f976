//! Tool calls as the questions about code read them: without what they gave back, and where many are looked at, without the texts of
//! files in their inputs.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use super::{Line, RecallError, touches};
use crate::access::plain_name;
use crate::analyze;
use crate::ids::{DocumentId, DocumentKind};

/// A call, with where it worked and what it served.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub line: Line,
    /// The agent's name, and its own id of the session.
    pub agent: String,
    pub session: String,
    pub branch: Option<String>,
    pub tool_name: String,
    pub input: Value,
    pub error: Option<String>,
    /// The prompt that it served.
    pub prompt: Option<String>,
    /// Where it was made.
    pub working_folder: Option<String>,
    pub(super) session_row: i64,
    pub(super) root: Option<String>,
}

impl Call {
    pub(super) fn failed(&self) -> bool {
        self.line.failed == Some(true)
    }

    /// What orders the calls of a session.
    pub(super) fn place(&self) -> (DateTime<Utc>, i64) {
        (self.line.occurred_at, self.line.id.row)
    }
}

/// How much of the inputs is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inputs {
    Whole,
    /// Enough to tell what was run and which files were named.
    WithoutTexts,
}

/// Calls by the rows of their ids, in no order; one that is gone is left out.
pub(super) async fn read(
    connection: &mut PgConnection,
    rows: &[i64],
    inputs: Inputs,
) -> Result<Vec<Call>, RecallError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let left_out: Vec<String> = match inputs {
        Inputs::Whole => Vec::new(),
        Inputs::WithoutTexts => touches::TEXTS.map(str::to_owned).to_vec(),
    };
    let rows = sqlx::query!(
        r#"select call.id, call.tool_name, call.success, call.error, call.occurred_at, call.working_folder, call.session_id,
                  case jsonb_typeof(call.input) when 'object' then call.input - $2::text[] else call.input end as "input!",
                  session.agent, session.external_id, session.branch, project.name as project, project.root,
                  prompt.prompt as "prompt?"
           from mem_tool_calls call
           join mem_sessions session on session.id = call.session_id
           join mem_projects project on project.id = session.project_id
           left join mem_user_prompts prompt on prompt.id = call.prev_user_prompt_id
           where call.id = any($1)"#,
        rows,
        &left_out,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Call {
            line: Line {
                id: DocumentId { kind: DocumentKind::Call, row: row.id },
                occurred_at: row.occurred_at,
                project: Some(row.project),
                headline: analyze::call_headline(&row.tool_name, &row.input),
                failed: Some(!row.success),
            },
            agent: row.agent,
            session: plain_name(&row.external_id).to_owned(),
            branch: row.branch,
            tool_name: row.tool_name,
            input: row.input,
            error: row.error,
            prompt: row.prompt,
            session_row: row.session_id,
            working_folder: row.working_folder,
            root: row.root,
        })
        .collect())
}
