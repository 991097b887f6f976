//! Documents by id: as a line, and whole.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;
use sqlx::PgConnection;

use super::{Line, RecallError};
use crate::access::{Projects, plain_name};
use crate::analyze;
use crate::ids::{DocumentId, DocumentKind};
use crate::store::Db;

/// A document as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    pub line: Line,
    /// The agent that worked, for what an agent's session recorded.
    pub agent: Option<String>,
    /// The agent's own name of the session.
    pub session: Option<String>,
    pub branch: Option<String>,
    /// The prompt, the note's text, or what a call gave back.
    pub text: Option<String>,
    /// The answer to a prompt.
    pub answer: Option<String>,
    /// The prompt that a call served.
    pub prompt: Option<String>,
    /// A call's whole input.
    pub input: Option<Value>,
    pub error: Option<String>,
    pub duration_ms: Option<i64>,
    /// The length of the longest text that had to be cut, in bytes.
    pub truncated_at_bytes: Option<i64>,
    /// The note that says it now.
    pub superseded_by: Option<DocumentId>,
    /// Whether it is a note that tells a session, which nobody thought worth writing.
    pub is_digest: bool,
}

/// What of a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Enough for a line: of what a call gave back only the beginning.
    Line,
    Whole,
}

/// Reads documents in the order asked for; an unknown id is an error, so that nobody takes absence for emptiness. One of another
/// project than those is not known.
pub async fn details(db: &Db, ids: &[DocumentId], projects: &Projects) -> Result<Vec<Details>, RecallError> {
    let mut connection = db.acquire().await?;
    let found = read(&mut connection, ids, Extent::Whole, projects).await?;
    let by_id = |id: &DocumentId| found.iter().find(|details| details.line.id == *id);
    ids.iter().map(|id| by_id(id).cloned().ok_or(RecallError::UnknownDocument(*id))).collect()
}

/// The lines of documents, in no order; one that is gone is left out.
pub(super) async fn lines(connection: &mut PgConnection, ids: &[DocumentId]) -> Result<Vec<Line>, RecallError> {
    Ok(read(connection, ids, Extent::Line, &Projects::All).await?.into_iter().map(|details| details.line).collect())
}

/// A line, and what decides beside its rank where it stands among others.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    pub(super) line: Line,
    /// The same for all that say the same: a prompt with its answer, a note with its text, a call with what was asked and whether it failed, whatever
    /// it gave back.
    pub(super) content: u64,
    /// The same for all of one session; a note may have none.
    pub(super) session: Option<u64>,
    pub(super) is_digest: bool,
}

/// Documents as lines, in no order; one that is gone is left out.
pub(super) async fn looked_at(connection: &mut PgConnection, ids: &[DocumentId]) -> Result<Vec<Looked>, RecallError> {
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    let content = |details: &Details, hasher: &mut DefaultHasher| {
        let Line { id, project, headline, failed, .. } = &details.line;
        (id.kind.as_str(), project, headline, failed).hash(hasher);
        match &details.input {
            Some(input) => input.to_string().hash(hasher),
            None => (&details.text, &details.answer).hash(hasher),
        }
    };
    let read = read(connection, ids, Extent::Line, &Projects::All).await?;
    Ok(read
        .into_iter()
        .map(|details| Looked {
            content: hash(&|hasher| content(&details, hasher)),
            session: details.session.as_ref().map(|session| hash(&|hasher| (&details.agent, session).hash(hasher))),
            is_digest: details.is_digest,
            line: details.line,
        })
        .collect())
}

async fn read(
    connection: &mut PgConnection,
    ids: &[DocumentId],
    extent: Extent,
    projects: &Projects,
) -> Result<Vec<Details>, RecallError> {
    let projects = projects.ids();
    let projects = projects.as_deref();
    let rows_of = |kind| ids.iter().filter(|id| id.kind == kind).map(|id| id.row).collect::<Vec<_>>();
    let mut found = prompts(connection, &rows_of(DocumentKind::Prompt), projects).await?;
    found.extend(calls(connection, &rows_of(DocumentKind::Call), extent, projects).await?);
    found.extend(notes(connection, &rows_of(DocumentKind::Note), projects).await?);
    Ok(found)
}

async fn prompts(
    connection: &mut PgConnection,
    rows: &[i64],
    projects: Option<&[i64]>,
) -> Result<Vec<Details>, RecallError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query!(
        r#"select prompt.id as "id!", prompt.prompt, prompt.answer, prompt.occurred_at as "occurred_at!",
                  prompt.truncated_at_bytes, session.agent as "agent!", session.external_id as "external_id!",
                  session.branch, project.name as "project!"
         from mem_user_prompts prompt
         join mem_sessions session on session.id = prompt.session_id
         join mem_projects project on project.id = session.project_id
         where prompt.id = any($1) and ($2::bigint[] is null or session.project_id = any($2))"#,
        rows,
        projects,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Details {
            branch: row.branch,
            text: row.prompt.clone(),
            answer: row.answer.clone(),
            truncated_at_bytes: row.truncated_at_bytes,
            agent: Some(row.agent),
            session: Some(plain_name(&row.external_id).to_owned()),
            ..Details::of(Line {
                id: DocumentId { kind: DocumentKind::Prompt, row: row.id },
                occurred_at: row.occurred_at,
                project: Some(row.project),
                headline: analyze::headline(row.prompt.as_deref().or(row.answer.as_deref()).unwrap_or_default()),
                failed: None,
            })
        })
        .collect())
}

async fn calls(
    connection: &mut PgConnection,
    rows: &[i64],
    extent: Extent,
    projects: Option<&[i64]>,
) -> Result<Vec<Details>, RecallError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query!(
        r#"select call.id as "id!", call.tool_name as "tool_name!", call.input as "input!", call.output_preview,
                  call.success as "success!", call.error, call.duration_ms, call.occurred_at as "occurred_at!",
                  call.truncated_at_bytes, output.body as "output?", prompt.prompt as "prompt?", session.agent as "agent!",
                  session.external_id as "external_id!", session.branch, project.name as "project!"
           from mem_tool_calls call
           join mem_sessions session on session.id = call.session_id
           join mem_projects project on project.id = session.project_id
           left join mem_user_prompts prompt on prompt.id = call.prev_user_prompt_id
           left join mem_outputs output on $2 and output.content_hash = call.output_hash
           where call.id = any($1) and ($3::bigint[] is null or session.project_id = any($3))"#,
        rows,
        extent == Extent::Whole,
        projects,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Details {
            agent: Some(row.agent),
            session: Some(plain_name(&row.external_id).to_owned()),
            branch: row.branch,
            // Nothing of what was cut is missing where the whole of it is here.
            truncated_at_bytes: row
                .truncated_at_bytes
                .filter(|cut| row.output.as_ref().is_none_or(|output| (output.len() as i64) < *cut)),
            text: row.output.or(row.output_preview),
            prompt: row.prompt,
            error: row.error,
            duration_ms: row.duration_ms,
            input: Some(row.input.clone()),
            ..Details::of(Line {
                id: DocumentId { kind: DocumentKind::Call, row: row.id },
                occurred_at: row.occurred_at,
                project: Some(row.project),
                headline: analyze::call_headline(&row.tool_name, &row.input),
                failed: Some(!row.success),
            })
        })
        .collect())
}

async fn notes(
    connection: &mut PgConnection,
    rows: &[i64],
    projects: Option<&[i64]>,
) -> Result<Vec<Details>, RecallError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query!(
        r#"select note.id as "id!", note.kind as "kind!", note.title as "title!", note.body as "body!", note.occurred_at as "occurred_at!",
                  note.superseded_by, project.name as "project?", session.agent as "agent?", session.external_id as "session?"
           from mem_observations note
           left join mem_projects project on project.id = note.project_id
           left join mem_sessions session on session.id = note.session_id
           where note.id = any($1) and ($2::bigint[] is null or note.project_id = any($2))"#,
        rows,
        projects,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Details {
            agent: row.agent,
            session: row.session.map(|session| plain_name(&session).to_owned()),
            text: Some(row.body),
            is_digest: row.kind == "digest",
            superseded_by: row.superseded_by.map(|row| DocumentId { kind: DocumentKind::Note, row }),
            ..Details::of(Line {
                id: DocumentId { kind: DocumentKind::Note, row: row.id },
                occurred_at: row.occurred_at,
                project: row.project,
                headline: analyze::headline(&row.title),
                failed: None,
            })
        })
        .collect())
}

impl Details {
    fn of(line: Line) -> Self {
        Self {
            line,
            agent: None,
            session: None,
            branch: None,
            text: None,
            answer: None,
            prompt: None,
            input: None,
            error: None,
            duration_ms: None,
            truncated_at_bytes: None,
            superseded_by: None,
            is_digest: false,
        }
    }
}
