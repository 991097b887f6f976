//! The way of an event into the journal: project, session, row, document, job, in the caller's transaction.

use std::collections::HashMap;

use sqlx::PgConnection;

use super::{StoreError, documents, projects, prompts, sessions, tool_calls};
use crate::analyze;
use crate::event::{Event, EventKind, Outcome, ToolCall};
use crate::ids::{DocumentId, DocumentKind, ProjectId};
use crate::project::ProjectIdentity;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Stored,
    /// The journal held it already, or something newer.
    Known,
}

/// Projects by identity, so that not every event asks for its own again. Clear it when a transaction fails: a project that
/// was made in it is gone.
#[derive(Debug, Default)]
pub struct ProjectCache(HashMap<ProjectIdentity, ProjectId>);

impl ProjectCache {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    async fn resolve(
        &mut self,
        connection: &mut PgConnection,
        identity: ProjectIdentity,
    ) -> Result<ProjectId, StoreError> {
        if let Some(id) = self.0.get(&identity) {
            return Ok(*id);
        }
        let id = projects::resolve(connection, &identity).await?;
        self.0.insert(identity, id);
        Ok(id)
    }
}

/// Records one event. Recording it again changes nothing.
pub async fn record(
    connection: &mut PgConnection,
    projects: &mut ProjectCache,
    event: Event,
) -> Result<Recorded, StoreError> {
    let project = projects.resolve(connection, event.checkout.project()).await?;
    let session = sessions::touch(connection, &event, project).await?;
    let entry = |kind, row| documents::Entry {
        id: DocumentId { kind, row },
        project: Some(session.project_id),
        session: Some(session.id),
        occurred_at: event.occurred_at,
    };
    let at = event.occurred_at;
    match &event.kind {
        EventKind::SessionStarted { source, model } => {
            sessions::start(connection, session.id, at, source.as_deref(), model.as_deref()).await?;
            Ok(Recorded::Stored)
        }
        EventKind::SessionEnded { reason } => {
            sessions::end(connection, session.id, at, reason.as_deref()).await?;
            Ok(Recorded::Stored)
        }
        EventKind::PromptSubmitted { prompt_id, prompt, source } => {
            let mut row = prompts::Prompt {
                session: session.id,
                prompt_id,
                text: prompt,
                source: source.as_deref(),
                occurred_at: at,
            };
            let own_id;
            if prompts::is_another_text(connection, session.id, prompt_id, &prompt.text).await? {
                own_id = format!("{prompt_id}:{}", event.id);
                row.prompt_id = &own_id;
            }
            let Some(id) = prompts::submit(connection, row).await? else { return Ok(Recorded::Known) };
            prompts::renumber(connection, session.id, at).await?;
            index_prompt(connection, &entry(DocumentKind::Prompt, id.0)).await?;
            Ok(Recorded::Stored)
        }
        EventKind::TurnEnded { prompt_id, answer } => {
            let Some(id) = prompts::answer(connection, session.id, prompt_id, answer, at).await? else {
                return Ok(Recorded::Known);
            };
            index_prompt(connection, &entry(DocumentKind::Prompt, id.0)).await?;
            Ok(Recorded::Stored)
        }
        EventKind::ToolCalled(call) => {
            let new = tool_calls::Call {
                session: session.id,
                call,
                working_folder: event.checkout.folder.as_deref(),
                occurred_at: at,
            };
            let Some(id) = tool_calls::insert(connection, new).await? else { return Ok(Recorded::Known) };
            prompts::renumber(connection, session.id, at).await?;
            if !is_recall(&call.tool_name) {
                documents::index(connection, &entry(DocumentKind::Call, id.0), &text_of(call)).await?;
            }
            Ok(Recorded::Stored)
        }
    }
}

/// A call of our own tools. It is kept like any other, but what it found must not be found again as if it were news.
fn is_recall(tool_name: &str) -> bool {
    tool_name.starts_with("mcp__") && tool_name.contains("agent-memory__")
}

/// A prompt's document holds its answer too, and either may come first: the row is read back.
async fn index_prompt(connection: &mut PgConnection, entry: &documents::Entry) -> Result<(), StoreError> {
    for document in documents::document_texts(connection, &[entry.id]).await? {
        documents::index(connection, entry, &document.text).await?;
    }
    Ok(())
}

pub(super) fn text_of(call: &ToolCall) -> String {
    let error = match &call.outcome {
        Outcome::Succeeded => None,
        Outcome::Failed { error } => Some(error.as_str()),
    };
    analyze::call_text(&call.tool_name, &call.input, call.output_preview.as_deref(), error)
}
