//! The way of an event into the journal: project, session, row, document, job, in the caller's transaction.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection};

use super::tool_calls::Stored;
use super::{StoreError, digests, documents, lesson_mining, projects, prompts, session_events, sessions, tool_calls};
use crate::analyze;
use crate::event::{Event, EventKind, Key, Origin, Outcome, ToolCall};
use crate::ids::{DocumentId, DocumentKind, ProjectId, SessionId};
use crate::project::{ProjectIdentity, ProjectPolicy};
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
            return self.resolve(connection, event).await;
        }
        let name = format!("{}:{}", event.agent, event.session);
        if let Some((_, project)) = self.told.as_ref().filter(|(told, _)| *told == name) {
            return Ok(project.clone());
        }
        let project = match sessions::project_of(connection, event.agent.as_str(), &event.session).await? {
            Some(project) => project,
            None => self.resolve(connection, event).await?,
        };
        self.told = Some((name, project.clone()));
        Ok(project)
    }

    async fn resolve(
        &mut self,
        connection: &mut PgConnection,
        event: &Event,
    ) -> Result<projects::Resolved, StoreError> {
        let identity = event.checkout.project(&self.policy).of(event.who);
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

/// Records events in a transaction of their own; see [`record`]. Its statements are planned once, not for each event's values: that
/// took longer than carrying them out.
pub async fn commit(
    connection: &mut PgConnection,
    projects: &mut ProjectCache,
    events: &[Event],
) -> Result<Vec<Recorded>, StoreError> {
    let mut tx = connection.begin_with("begin; set local plan_cache_mode = force_generic_plan").await?;
    let recorded = record(&mut tx, projects, events).await?;
    tx.commit().await?;
    Ok(recorded)
}

/// Records events in the order given, and tells what became of each. Recording them again changes nothing.
///
/// What goes into one table goes there in one statement, as far as the order of a session's events allows: a round trip for each
/// row would cost several times what its row does.
pub async fn record(
    connection: &mut PgConnection,
    projects: &mut ProjectCache,
    events: &[Event],
) -> Result<Vec<Recorded>, StoreError> {
    // A folder that one event calls a repository is one for those of the same moment that do not say.
    for event in events.iter().filter(|event| event.checkout.git.is_some()) {
        projects.of_event(connection, event).await?;
    }
    let mut recorded = Vec::with_capacity(events.len());
    // A session's end looks at when its last event was, which later events must not have moved yet.
    for events in events.split_inclusive(|event| matches!(event.kind, EventKind::SessionEnded { .. })) {
        let sessions = touch(connection, projects, events).await?;
        let mut batch = Batch { events, sessions, ..Batch::default() };
        batch.record(connection).await?;
        recorded.append(&mut batch.recorded);
    }
    Ok(recorded)
}

/// The session of each event.
async fn touch(
    connection: &mut PgConnection,
    projects: &mut ProjectCache,
    events: &[Event],
) -> Result<Vec<sessions::Session>, StoreError> {
    let mut touches: BTreeMap<(&str, &str), sessions::Touch<'_>> = BTreeMap::new();
    for event in events {
        let project = projects.of_event(connection, event).await?;
        touches
            .entry((event.agent.as_str(), &event.session))
            .and_modify(|touch| touch.add(event))
            .or_insert_with(|| sessions::Touch::of(event, project));
    }
    let rows = sessions::touch(connection, touches.values().collect()).await?;
    let of: HashMap<_, _> = touches.into_keys().zip(rows).collect();
    Ok(events.iter().map(|event| of[&(event.agent.as_str(), event.session.as_str())]).collect())
}

/// Events on their way, each with its session, and what waits until it can be written together.
#[derive(Default)]
struct Batch<'a> {
    events: &'a [Event],
    sessions: Vec<sessions::Session>,
    recorded: Vec<Recorded>,
    /// Calls to be inserted, by their place among the events.
    calls: Vec<usize>,
    documents: Vec<Document>,
}

/// A document to be indexed, and its text, where it is known without asking.
struct Document {
    entry: documents::Entry,
    text: Option<String>,
}

impl Batch<'_> {
    async fn record(&mut self, connection: &mut PgConnection) -> Result<(), StoreError> {
        self.recorded = vec![Recorded::Known; self.events.len()];
        let late = self.late();
        for (at, event) in self.events.iter().enumerate() {
            if let EventKind::ToolCalled(call) = &event.kind
                && tool_calls::is_known_by_its_key_alone(event.origin, call)
            {
                self.calls.push(at);
                continue;
            }
            // The calls before it are part of what it may look at.
            if self.calls.iter().any(|call| self.sessions[*call].id == self.sessions[at].id) {
                self.insert_calls(connection).await?;
            }
            self.recorded[at] = self.record_alone(connection, at).await?;
        }
        self.insert_calls(connection).await?;
        for (session, since) in late {
            prompts::renumber(connection, session, since).await?;
        }
        self.index(connection).await
    }

    /// Sessions of which something later is known than the earliest of these prompts and calls that are not the newest.
    fn late(&self) -> BTreeMap<SessionId, DateTime<Utc>> {
        let mut late = BTreeMap::new();
        let mut newest = HashMap::new();
        for (event, session) in self.events.iter().zip(&self.sessions) {
            let at = event.occurred_at;
            let newest = newest.entry(session.id).or_insert(session.last_event_before);
            let is_numbered = matches!(event.kind, EventKind::PromptSubmitted { .. } | EventKind::ToolCalled(_));
            if is_numbered && newest.is_some_and(|newest| newest > at) {
                late.entry(session.id).and_modify(|since: &mut DateTime<Utc>| *since = at.min(*since)).or_insert(at);
            }
            *newest = (*newest).max(Some(at));
        }
        late
    }

    fn call(&self, at: usize) -> Option<tool_calls::Call<'_>> {
        let event = &self.events[at];
        let EventKind::ToolCalled(call) = &event.kind else { return None };
        Some(tool_calls::Call {
            session: self.sessions[at].id,
            call,
            working_folder: event.checkout.folder.as_deref(),
            occurred_at: event.occurred_at,
            origin: event.origin,
        })
    }

    /// Inserts the calls that wait.
    async fn insert_calls(&mut self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let waiting = std::mem::take(&mut self.calls);
        let calls: Vec<_> = waiting.iter().filter_map(|at| self.call(*at)).collect();
        if calls.is_empty() {
            return Ok(());
        }
        let inserted = tool_calls::insert(connection, &calls).await?;
        for (at, id) in waiting.into_iter().zip(inserted) {
            let (Some(new), EventKind::ToolCalled(call)) = (self.call(at), &self.events[at].kind) else { continue };
            let Some(id) = id else {
                // A transcript told of it first, and did not know all.
                if let Some(id) = tool_calls::amend(connection, new).await? {
                    self.recorded[at] = Recorded::Amended;
                    if !is_recall(&call.tool_name) {
                        self.reindex(at, DocumentKind::Call, id.0);
                    }
                }
                continue;
            };
            self.recorded[at] = Recorded::Stored;
            if !is_recall(&call.tool_name) {
                let entry = self.entry(at, DocumentKind::Call, id.0);
                self.documents.push(Document { entry, text: Some(text_of(call)) });
            }
        }
        Ok(())
    }

    fn entry(&self, at: usize, kind: DocumentKind, row: i64) -> documents::Entry {
        documents::Entry {
            id: DocumentId { kind, row },
            project: Some(self.sessions[at].project_id),
            session: Some(self.sessions[at].id),
            occurred_at: self.events[at].occurred_at,
        }
    }

    /// Has the row indexed, with what it holds by then: a prompt's document holds its answer too, and either may come first.
    fn reindex(&mut self, at: usize, kind: DocumentKind, row: i64) {
        let entry = self.entry(at, kind, row);
        self.documents.push(Document { entry, text: None });
    }

    async fn record_alone(&mut self, connection: &mut PgConnection, at: usize) -> Result<Recorded, StoreError> {
        let (event, session) = (&self.events[at], self.sessions[at].id);
        let when = event.occurred_at;
        match &event.kind {
            EventKind::SessionStarted { source } => {
                sessions::start(connection, session, when, source.as_deref()).await?;
                Ok(Recorded::Stored)
            }
            EventKind::SessionEnded { reason } => {
                sessions::end(connection, session, when, reason.as_deref()).await?;
                enqueue_transcript(connection, event).await?;
                digests::enqueue_digest(connection, event.agent.as_str(), &event.session).await?;
                lesson_mining::enqueue_learning(connection, event.agent.as_str(), &event.session).await?;
                Ok(Recorded::Stored)
            }
            EventKind::PromptSubmitted { key, prompt, source } => {
                let mut row = prompts::Prompt {
                    session,
                    key,
                    text: prompt,
                    source: source.as_deref(),
                    occurred_at: when,
                    origin: event.origin,
                };
                let own_key;
                if let (Origin::Hook, Key::Given(id)) = (event.origin, key)
                    && prompts::is_another_text(connection, session, id, &prompt.text).await?
                {
                    if prompts::is_told_in_turn(connection, session, id, &prompt.text).await? {
                        return Ok(Recorded::Known);
                    }
                    own_key = Key::Given(format!("{id}:{}", event.id));
                    row.key = &own_key;
                }
                let Some(new) = prompts::submit(connection, row).await? else {
                    prompts::claim(connection, row).await?;
                    return Ok(Recorded::Known);
                };
                let entry = self.entry(at, DocumentKind::Prompt, new.id.0);
                let text = analyze::prompt_text(Some(&prompt.text), new.answer.as_deref());
                self.documents.push(Document { entry, text: Some(text) });
                Ok(Recorded::Stored)
            }
            EventKind::TurnEnded { prompt_id, answer } => {
                let prompt_id = match prompt_id {
                    Some(id) => Some(id.clone()),
                    None => prompts::latest(connection, session, when).await?,
                };
                let Some(prompt_id) = prompt_id else { return Ok(Recorded::Known) };
                let Some(id) = prompts::answer(connection, session, &prompt_id, answer, (when, event.origin)).await?
                else {
                    return Ok(Recorded::Known);
                };
                self.reindex(at, DocumentKind::Prompt, id.0);
                Ok(Recorded::Stored)
            }
            EventKind::ToolCalled(call) => {
                let Some(new) = self.call(at) else { return Ok(Recorded::Known) };
                let (id, recorded) = match tool_calls::store(connection, new).await? {
                    Stored::New(id) => (id, Recorded::Stored),
                    Stored::Amended(id) => (id, Recorded::Amended),
                    Stored::Known => return Ok(Recorded::Known),
                };
                if !is_recall(&call.tool_name) {
                    self.reindex(at, DocumentKind::Call, id.0);
                }
                Ok(recorded)
            }
            EventKind::Happened(happening) => {
                let is_new = session_events::insert(connection, session, happening, when, event.origin).await?;
                Ok(if is_new { Recorded::Stored } else { Recorded::Known })
            }
        }
    }

    async fn index(&mut self, connection: &mut PgConnection) -> Result<(), StoreError> {
        // A document that was written twice is indexed once, and then with all it holds.
        let mut documents: BTreeMap<DocumentId, Document> = BTreeMap::new();
        for document in self.documents.drain(..) {
            match documents.entry(document.entry.id) {
                Entry::Vacant(empty) => drop(empty.insert(document)),
                Entry::Occupied(mut known) => known.get_mut().text = None,
            }
        }
        let unread: Vec<_> =
            documents.values().filter(|document| document.text.is_none()).map(|document| document.entry.id).collect();
        if !unread.is_empty() {
            for read in documents::document_texts(connection, &unread).await? {
                documents.entry(read.id).and_modify(|document| document.text = Some(read.text));
            }
        }
        let texts: Vec<_> =
            documents.into_values().filter_map(|Document { entry, text }| Some((entry, text?))).collect();
        documents::index(connection, texts).await
    }
}

/// Has the session's own transcript read when it has ended: it knows what the hooks do not say, the model and what became of
/// each call. Only where the server can see the file; a backfill does the same from anywhere else.
async fn enqueue_transcript(connection: &mut PgConnection, event: &Event) -> Result<(), StoreError> {
    let (Origin::Hook, Some(path)) = (event.origin, &event.transcript_path) else { return Ok(()) };
    let payload = serde_json::json!({ "agent": event.agent.as_str(), "session": event.session, "path": path });
    let key = format!("{}:{}", event.agent, event.session);
    queue::enqueue(connection, &[NewJob::once(READ_TRANSCRIPT, payload, key).after(TRANSCRIPT_DELAY)]).await?;
    Ok(())
}

/// A call of our own tools. It is kept like any other, but what it found must not be found again as if it were news.
fn is_recall(tool_name: &str) -> bool {
    tool_name.starts_with("mcp__") && tool_name.contains("agent-memory__")
}

pub(super) fn text_of(call: &ToolCall) -> String {
    let error = match &call.outcome {
        Outcome::Succeeded | Outcome::Assumed => None,
        Outcome::Failed { error } => Some(error.as_str()),
    };
    analyze::call_text(&call.tool_name, &call.input, call.output_preview.as_deref(), error)
}
