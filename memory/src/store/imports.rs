//! Notes of another memory, kept with their dates and under the name that they have there.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{StoreError, documents, project_names, projects};
use crate::access::Who;
use crate::event::{Agent, Capped, MAX_PROMPT_BYTES, bounded_id};
use crate::ids::{BackfillRunId, DocumentId, DocumentKind, ObservationId, ProjectId, SessionId};

/// What kind of note it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    Note,
    /// The summary of a session.
    Digest,
}

/// A note as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedNote {
    /// The same wherever this note is found again.
    pub key: String,
    pub kind: NoteKind,
    pub project: Option<String>,
    /// Claude Code's id of the session that it was made in.
    pub session: Option<String>,
    pub title: String,
    pub body: String,
    /// Whether it is the text of a prompt, which the journal may have as one.
    pub is_prompt: bool,
    pub occurred_at: DateTime<Utc>,
}

/// A title is one line.
const MAX_TITLE_BYTES: usize = 480;

/// Keeps a note and has it embedded; `false`: it is there already, or it is a prompt that the journal has.
pub async fn import_note(
    connection: &mut PgConnection,
    run: BackfillRunId,
    note: &ImportedNote,
) -> Result<bool, StoreError> {
    let title = Capped::new(note.title.trim(), MAX_TITLE_BYTES).text;
    let body = Capped::new(note.body.trim(), MAX_PROMPT_BYTES).text;
    if body.is_empty() && title.is_empty() {
        return Ok(false);
    }
    let session = match &note.session {
        Some(session) => find_session(connection, session).await?,
        None => None,
    };
    if let Some(session) = session.filter(|_| note.is_prompt)
        && has_prompt(connection, session, &body).await?
    {
        return Ok(false);
    }
    let project = match note.project.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => Some(project_called(connection, name).await?),
        None => None,
    };
    let kind = match note.kind {
        NoteKind::Note => "note",
        NoteKind::Digest => "digest",
    };
    let id = sqlx::query_scalar!(
        r#"insert into mem_observations (project_id, session_id, kind, title, body, source, occurred_at, import_key,
                                         backfill_run_id)
           values ($1, $2, $3, $4, $5, 'import', $6, $7, $8)
           on conflict on constraint mem_observations_import_key_unique do nothing
           returning id as "id: ObservationId""#,
        project as Option<ProjectId>,
        session as Option<SessionId>,
        kind,
        title,
        body,
        note.occurred_at,
        bounded_id(note.key.clone()),
        run as BackfillRunId,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(id) = id else { return Ok(false) };
    let id = DocumentId { kind: DocumentKind::Note, row: id.0 };
    let entry = documents::Entry { id, project, session, occurred_at: note.occurred_at };
    documents::index(connection, vec![(entry, format!("{title}\n{body}"))]).await?;
    Ok(true)
}

async fn find_session(connection: &mut PgConnection, external_id: &str) -> Result<Option<SessionId>, StoreError> {
    let id = sqlx::query_scalar!(
        r#"select id as "id: SessionId" from mem_sessions where agent = $1 and external_id = $2"#,
        Agent::ClaudeCode.as_str(),
        external_id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}

async fn has_prompt(connection: &mut PgConnection, session: SessionId, text: &str) -> Result<bool, StoreError> {
    let has = sqlx::query_scalar!(
        r#"select exists (
               select from mem_user_prompts where session_id = $1 and btrim(prompt, E' \n\t\r') = $2
           ) as "has!""#,
        session as SessionId,
        text,
    )
    .fetch_one(connection)
    .await?;
    Ok(has)
}

/// The project of that name. Where several have it, nobody can tell which was meant, so the name stands for itself.
async fn project_called(connection: &mut PgConnection, name: &str) -> Result<ProjectId, StoreError> {
    match project_names::find_one(connection, Who::Operator, name).await {
        Ok(id) => Ok(id),
        Err(StoreError::UnknownProject { .. } | StoreError::AmbiguousProject { .. }) => {
            projects::resolve(connection, &projects::named(name)).await
        }
        Err(error) => Err(error),
    }
}
