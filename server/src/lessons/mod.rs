//! Lessons while agents work: the active ones are held in memory, and each call that is about to run is held against them, within the
//! hook's deadline or not at all.

mod held;
mod reply;
mod routes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use memory::embed::Embedder;
use memory::event::Upcoming;
use memory::lessons::{Action, Decision, Lesson, LessonSet, speak};
use memory::project::ProjectPolicy;
use memory::store::{self, Db, Firing, StoreError};
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
        if self.held.current().is_empty() {
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
        let set = self.held.current();
        let (action, mut lessons) = matching(Arc::clone(&set), upcoming).await;
        // Most calls: neither the settings are read nor the database is asked.
        if lessons.is_empty() && !set.has_meanings() || !self.folders.settings().lessons.gate {
            return Ok(None);
        }
        let at = store::whereabouts(&self.db, upcoming, &self.projects).await?;
        let holds_here = |lesson: &Lesson| lesson.holds_for(upcoming.who, at.project);
        lessons.retain(holds_here);
        if lessons.is_empty()
            && set.has_meanings()
            && let Some(vector) = self.embedder.embed_query_within(VECTOR_DEADLINE, &action.meaning()).await
        {
            lessons = set.near(&action, &vector.vector).iter().map(|found| found.lesson.clone()).collect();
            lessons.retain(holds_here);
        }
        for lesson in &lessons {
            let speech = reply::adapted(speak(lesson, &action), upcoming.agent);
            let Some(reply) = reply::reply(upcoming.agent, &speech) else { continue };
            match store::fire_lesson(&self.db, upcoming, at.session, lesson, &action, &speech).await? {
                Firing::Now => return Ok(Some(reply)),
                // A person who is asked decides each time.
                _ if speech.decision == Decision::Asked => return Ok(Some(reply)),
                Firing::Repeated => return Ok(None),
                Firing::Said => {}
            }
        }
        Ok(None)
    }
}

/// What the call is about to do, and the lessons whose pattern it fires, the first to be said first. On a thread of its own: a call may be a
/// long script.
async fn matching(set: Arc<LessonSet>, upcoming: &Upcoming) -> (Action, Vec<Lesson>) {
    let (tool, input) = (upcoming.tool_name.clone(), upcoming.input.clone());
    let root = upcoming.checkout.git.as_ref().map(|git| git.root.clone());
    let found = tokio::task::spawn_blocking(move || {
        let action = Action::of(&tool, &input, root.as_deref());
        let lessons = set.matching(&action).iter().map(|found| found.lesson.clone()).collect();
        (action, lessons)
    });
    found.await.unwrap_or_else(|_| (Action::of("", &Value::Null, None), Vec::new()))
}
