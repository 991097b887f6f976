//! The way of an event into the journal: project, session, row, document, job, in the caller's transaction.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sqlx::PgConnection;

use super::tool_calls::Stored;
use super::{StoreError, documents, projects, prompts, session_events, sessions, tool_calls};
use crate::analyze;
use crate::event::{Event, EventKind, Key, Origin, Outcome, ToolCall};
use crate::ids::{DocumentId, DocumentKind, ProjectId};
use crate::project::{Checkout, ProjectIdentity, ProjectPolicy};
use crate::queue::{self, NewJob};

/// The queue's name for reading the transcript of a session that has ended.
pub const READ_TRANSCRIPT: &str = "read_transcript";

/// An agent writes its last lines after the hook of its end.
const TRANSCRIPT_DELAY: Duration = Duration::from_secs(2);

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Stored,
    /// The journal held it, and now knows more of it.
    Amended,
    /// The journal held it already, or something newer.
    Known,
}

/// Projects by identity, so that not every event asks for its own again. Clear it when a transaction fails: a project that
/// was made in it is gone.
#[derive(Debug, Default)]
pub struct ProjectCache {
    policy: ProjectPolicy,
    known: HashMap<ProjectIdentity, (ProjectId, Instant)>,
    /// The session that a transcript told of last, and its project.
    told: Option<(String, projects::Resolved)>,
}

/// A person may merge or split projects while this process runs: what it knows of them is asked for again after this long.
const PROJECT_FRESHNESS: Duration = Duration::from_secs(1);

impl ProjectCache {
    pub fn new(policy: ProjectPolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    pub fn clear(&mut self) {
        self.known.clear();
        self.told = None;
    }

    /// A session stays with the project in which it was first seen. A transcript is read when its folder may be gone or somebody
    /// else's, so the session's own project comes first.
    async fn of_event(
        &mut self,
        connection: &mut PgConnection,
        event: &Event,
    ) -> Result<projects::Resolved, StoreError> {
        if event.origin == Origin::Hook {
            return self.resolve(connection, &event.checkout).await;
        }
        let name = format!("{}:{}", event.agent, event.session);
        if let Some((_, project)) = self.told.as_ref().filter(|(told, _)| *told == name) {
            return Ok(project.clone());
        }
        let project = match sessions::project_of(connection, event.agent.as_str(), &event.session).await? {
            Some(project) => project,
            None => self.resolve(connection, &event.checkout).await?,
        };
        self.told = Some((name, project.clone()));
        Ok(project)
    }

    async fn resolve(
        &mut self,
        connection: &mut PgConnection,
        checkout: &Checkout,
    ) -> Result<projects::Resolved, StoreError> {
        let identity = checkout.project(&self.policy);
        let key = identity.key.clone();
        if let Some((id, since)) = self.known.get(&identity)
            && since.elapsed() < PROJECT_FRESHNESS
        {
            return Ok(projects::Resolved { id: *id, key });
        }
        let id = projects::resolve(connection, &identity).await?;
        self.known.insert(identity, (id, Instant::now()));
        Ok(projects::Resolved { id, key })
    }
}

/// Records one event. Recording it again changes nothing.
pub async fn record(
    connection: &mut PgConnection,
    projects: &mut ProjectCache,
    event: Event,
) -> Result<Recorded, StoreError> {
    let project = projects.of_event(connection, &event).await?;
    let session = sessions::touch(connection, &event, &project).await?;
    let entry = |kind, row| documents::Entry {
        id: DocumentId { kind, row },
        project: Some(session.project_id),
        session: Some(session.id),
        occurred_at: event.occurred_at,
    };
    let at = event.occurred_at;
    match &event.kind {
        EventKind::SessionStarted { source } => {
            sessions::start(connection, session.id, at, source.as_deref()).await?;
            Ok(Recorded::Stored)
        }
        EventKind::SessionEnded { reason } => {
            sessions::end(connection, session.id, at, reason.as_deref()).await?;
            enqueue_transcript(connection, &event).await?;
            Ok(Recorded::Stored)
        }
        EventKind::PromptSubmitted { key, prompt, source } => {
            let mut row = prompts::Prompt {
                session: session.id,
                key,
                text: prompt,
                source: source.as_deref(),
                occurred_at: at,
                origin: event.origin,
            };
            let own_key;
            if let (Origin::Hook, Key::Given(id)) = (event.origin, key)
                && prompts::is_another_text(connection, session.id, id, &prompt.text).await?
            {
                if prompts::is_told_in_turn(connection, session.id, id, &prompt.text).await? {
                    return Ok(Recorded::Known);
                }
                own_key = Key::Given(format!("{id}:{}", event.id));
                row.key = &own_key;
            }
            let Some(id) = prompts::submit(connection, row).await? else { return Ok(Recorded::Known) };
            prompts::renumber(connection, session.id, at).await?;
            index_row(connection, &entry(DocumentKind::Prompt, id.0)).await?;
            Ok(Recorded::Stored)
        }
        EventKind::TurnEnded { prompt_id, answer } => {
            let prompt_id = match prompt_id {
                Some(id) => Some(id.clone()),
                None => prompts::latest(connection, session.id, at).await?,
            };
            let Some(prompt_id) = prompt_id else { return Ok(Recorded::Known) };
            let Some(id) = prompts::answer(connection, session.id, &prompt_id, answer, (at, event.origin)).await?
            else {
                return Ok(Recorded::Known);
            };
            index_row(connection, &entry(DocumentKind::Prompt, id.0)).await?;
            Ok(Recorded::Stored)
        }
        EventKind::ToolCalled(call) => {
            let new = tool_calls::Call {
                session: session.id,
                call,
                working_folder: event.checkout.folder.as_deref(),
                occurred_at: at,
                origin: event.origin,
            };
            let is_findable = !is_recall(&call.tool_name);
            match tool_calls::store(connection, new).await? {
                Stored::New(id) => {
                    prompts::renumber(connection, session.id, at).await?;
                    if is_findable {
                        documents::index(connection, &entry(DocumentKind::Call, id.0), &text_of(call)).await?;
                    }
                    Ok(Recorded::Stored)
                }
                Stored::Amended(id) => {
                    if is_findable {
                        index_row(connection, &entry(DocumentKind::Call, id.0)).await?;
                    }
                    Ok(Recorded::Amended)
                }
                Stored::Known => Ok(Recorded::Known),
            }
        }
        EventKind::Happened(happening) => {
            let is_new = session_events::insert(connection, session.id, happening, at, event.origin).await?;
            Ok(if is_new { Recorded::Stored } else { Recorded::Known })
        }
    }
}

/// Has the session's own transcript read when it has ended: it knows what the hooks do not say, the model and what became of
/// each call. Only where the server can see the file; a backfill does the same from anywhere else.
async fn enqueue_transcript(connection: &mut PgConnection, event: &Event) -> Result<(), StoreError> {
    let (Origin::Hook, Some(path)) = (event.origin, &event.transcript_path) else { return Ok(()) };
    let payload = serde_json::json!({ "agent": event.agent.as_str(), "session": event.session, "path": path });
    let key = format!("{}:{}", event.agent, event.session);
    queue::enqueue(connection, &NewJob::once(READ_TRANSCRIPT, payload, key).after(TRANSCRIPT_DELAY)).await?;
    Ok(())
}

/// A call of our own tools. It is kept like any other, but what it found must not be found again as if it were news.
fn is_recall(tool_name: &str) -> bool {
    tool_name.starts_with("mcp__") && tool_name.contains("agent-memory__")
}

/// Indexes what the row holds by now: a prompt's document holds its answer too, and either may come first.
async fn index_row(connection: &mut PgConnection, entry: &documents::Entry) -> Result<(), StoreError> {
    for document in documents::document_texts(connection, &[entry.id]).await? {
        documents::index(connection, entry, &document.text).await?;
    }
    Ok(())
}

pub(super) fn text_of(call: &ToolCall) -> String {
    let error = match &call.outcome {
        Outcome::Succeeded | Outcome::Assumed => None,
        Outcome::Failed { error } => Some(error.as_str()),
    };
    analyze::call_text(&call.tool_name, &call.input, call.output_preview.as_deref(), error)
}
