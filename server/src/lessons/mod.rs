//! Lessons while agents work: the active ones are held in memory, and each call that is about to run is held against them, within the
//! hook's deadline or not at all.

mod held;
mod reply;
mod routes;

use std::time::{Duration, Instant};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use memory::embed::{EmbedState, Embedder};
use memory::event::Upcoming;
use memory::lessons::{Action, Lesson, speak};
use memory::project::ProjectPolicy;
use memory::store::{self, Db, StoreError};
use serde_json::Value;

pub(crate) use held::Held;
pub(crate) use routes::routes;

use crate::storage::Folders;

/// The hook waits 240 ms from its own start; a lesson that is not found so long after the call came in is not told.
const DEADLINE: Duration = Duration::from_millis(180);
/// A meaning is compared only where the model answers so soon.
const VECTOR_DEADLINE: Duration = Duration::from_millis(60);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gate {
    db: Db,
    embedder: Embedder,
    folders: Folders,
    projects: ProjectPolicy,
    held: Held,
}

impl Gate {
    pub(crate) fn new(db: Db, embedder: Embedder, folders: Folders, projects: ProjectPolicy, held: Held) -> Self {
        Self { db, embedder, folders, projects, held }
    }

    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    /// What the hook prints about a call, or nothing: then it runs. Never an error: a gate that is broken stands open.
    pub(crate) async fn answer(&self, upcoming: Upcoming, came_in: Instant) -> Response {
        if self.held.current().is_empty() || !self.folders.settings().lessons.gate {
            return StatusCode::NO_CONTENT.into_response();
        }
        let deadline = tokio::time::Instant::from_std(came_in + DEADLINE);
        match tokio::time::timeout_at(deadline, self.judge(&upcoming)).await {
            Ok(Ok(Some(reply))) => Json(reply).into_response(),
            Ok(Ok(None)) => StatusCode::NO_CONTENT.into_response(),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a call was let through without a look at the lessons"
                );
                StatusCode::NO_CONTENT.into_response()
            }
            Err(_) => {
                tracing::debug!("there was no time to look at the lessons");
                StatusCode::NO_CONTENT.into_response()
            }
        }
    }

    async fn judge(&self, upcoming: &Upcoming) -> Result<Option<Value>, StoreError> {
        let (action, lessons) = self.fired_by(upcoming).await;
        if lessons.is_empty() {
            return Ok(None);
        }
        let at = store::whereabouts(&self.db, upcoming, &self.projects).await?;
        let holds_here = |lesson: &&Lesson| lesson.project.is_none() || lesson.project == at.project;
        let Some(lesson) = lessons.iter().find(holds_here) else { return Ok(None) };
        let speech = reply::adapted(speak(lesson, &action), upcoming.agent);
        let Some(reply) = reply::reply(upcoming.agent, &speech) else { return Ok(None) };
        let is_first = store::fire_lesson(&self.db, upcoming, at.session, lesson, &action, &speech).await?;
        // A person who is asked decides each time.
        let is_said = is_first || speech.decision == memory::lessons::Decision::Asked;
        Ok(is_said.then_some(reply))
    }

    /// The lessons that the call fires, the first to be said first.
    async fn fired_by(&self, upcoming: &Upcoming) -> (Action, Vec<Lesson>) {
        let set = self.held.current();
        let root = upcoming.checkout.git.as_ref().map(|git| git.root.as_str());
        let action = Action::of(&upcoming.tool_name, &upcoming.input, root);
        let mut lessons: Vec<_> = set.matching(&action).iter().map(|found| found.lesson.clone()).collect();
        if lessons.is_empty()
            && set.has_meanings()
            && let Some(vector) = self.vector(&action.meaning()).await
        {
            lessons = set.near(&action, &vector).iter().map(|found| found.lesson.clone()).collect();
        }
        (action, lessons)
    }

    /// Only where the model is loaded already, and is free.
    async fn vector(&self, text: &str) -> Option<Vec<f32>> {
        let EmbedState::Ready { .. } = self.embedder.state() else { return None };
        let vector = tokio::time::timeout(VECTOR_DEADLINE, self.embedder.embed_query(text)).await.ok()?.ok()?;
        Some(vector.vector)
    }
}
