//! What the agent's hook prints at a session's start and with a prompt: composes it within a deadline, whatever the database does, and
//! counts how often it spoke. The event itself is recorded before and stays so.

mod notice;
mod reply;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use clap::ValueEnum;
use memory::access::Who;
use memory::embed::Embedder;
use memory::event::{Agent, Event, EventKind};
use memory::recall::RecallError;
use memory::recall::unasked::{Listener, Start, brief, is_worth_a_search, prompt_hits};
use memory::store::{Db, Occasion, Told, backup_news, count_injection, inform_at_start, lesson};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::storage::Folders;

/// The hook waits 240 ms from its own start; what is not composed so long after the event came in is not told.
const DEADLINE: Duration = Duration::from_millis(180);
/// A vector helps; it is not worth half of the deadline.
const VECTOR_DEADLINE: Duration = Duration::from_millis(60);
/// A database that takes long for one must not be asked by all.
const AT_ONCE: usize = 4;

/// A switch on the command line, over what settings.toml says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// Which of both are switched by the command line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Switches {
    pub brief: Option<Switch>,
    pub prompt_hits: Option<Switch>,
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Unasked {
    db: Db,
    embedder: Embedder,
    folders: Folders,
    switches: Switches,
    turns: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// An event to which something may be said.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    agent: Agent,
    who: Who,
    session: String,
    about: About,
}

#[derive(Debug, Clone)]
enum About {
    Start(Start),
    Prompt(String),
}

impl About {
    const fn occasion(&self) -> Occasion {
        match self {
            Self::Start(_) => Occasion::Brief,
            Self::Prompt(_) => Occasion::PromptHits,
        }
    }
}

impl Asked {
    /// `None` where the agent could not be told anything, or nobody is there who asked.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let about = match &event.kind {
            EventKind::SessionStarted { source } => About::Start(Start::named(source.as_deref())),
            EventKind::PromptSubmitted { prompt, source, .. } if is_a_persons(source.as_deref()) => {
                About::Prompt(prompt.text.clone())
            }
            _ => return None,
        };
        let can_be_told = reply::event_name(event.agent, about.occasion()).is_some();
        can_be_told.then(|| Self { agent: event.agent, who: event.who, session: event.session.clone(), about })
    }
}

/// Claude Code also submits prompts of its own: loops, schedules, events.
fn is_a_persons(source: Option<&str>) -> bool {
    matches!(source, None | Some("user" | "sdk"))
}

impl Unasked {
    pub(crate) fn new(db: Db, embedder: Embedder, folders: Folders, switches: Switches, tasks: TaskTracker) -> Self {
        Self { db, embedder, folders, switches, turns: Arc::new(Semaphore::new(AT_ONCE)), tasks }
    }

    /// What the hook prints, or nothing. Never an error: the event has been recorded.
    pub(crate) async fn answer(&self, asked: Asked, came_in: Instant) -> Response {
        let occasion = asked.about.occasion();
        let deadline = tokio::time::Instant::from_std(came_in + DEADLINE);
        if !self.is_on(occasion) {
            return printed(reply::with_notice(None, self.notice(&asked, deadline).await));
        }
        // Side by side: a slow answer to the one must not take the other's time.
        let composing = tokio::time::timeout_at(deadline, self.compose(&asked));
        let (composed, notice) = tokio::join!(composing, self.notice(&asked, deadline));
        let (told, reply) = match composed {
            Ok(Ok(Some(text))) => (Told::Spoke, reply::reply(asked.agent, occasion, text)),
            Ok(Ok(None)) => (Told::Silent, None),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    occasion = occasion.as_str(),
                    "nothing is told"
                );
                (Told::Failed, None)
            }
            Err(_) => {
                tracing::debug!(occasion = occasion.as_str(), "there was no time to tell anything");
                (Told::Late, None)
            }
        };
        // Counted after the answer: a count is not worth an agent's time.
        let db = self.db.clone();
        self.tasks.spawn(async move {
            if let Err(error) = count_injection(&db, occasion, told).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "what was told could not be counted");
            }
        });
        printed(reply::with_notice(reply, notice))
    }

    /// A line for the operator at a session's start, where one is due and the agent shows it: backups are theirs. What cannot be found out
    /// in time is not said.
    async fn notice(&self, asked: &Asked, deadline: tokio::time::Instant) -> Option<String> {
        if asked.who != Who::Operator || !matches!(asked.about, About::Start(_)) || !reply::shows_notices(asked.agent) {
            return None;
        }
        let news = tokio::time::timeout_at(deadline, backup_news(&self.db)).await.ok()?.ok()?;
        notice::late_backup(news, Utc::now())
    }

    async fn compose(&self, asked: &Asked) -> Result<Option<String>, RecallError> {
        // The semaphore is never closed; without a turn nothing is told.
        let Ok(_turn) = self.turns.acquire().await else { return Ok(None) };
        let listener =
            Listener { agent: asked.agent.as_str().to_owned(), session: asked.session.clone(), who: asked.who };
        match &asked.about {
            About::Start(start) => {
                let brief = brief(&self.db, &listener, *start).await?;
                let lessons = match asked.agent {
                    // Nobody can stop the calls of these.
                    Agent::Cursor | Agent::CopilotCli => self.lessons(&listener).await?,
                    _ => None,
                };
                let parts: Vec<_> = brief.into_iter().chain(lessons).collect();
                Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
            }
            About::Prompt(prompt) if is_worth_a_search(prompt) => {
                let vector = self.embedder.embed_query_within(VECTOR_DEADLINE, prompt).await;
                prompt_hits(&self.db, &listener, prompt, vector).await
            }
            About::Prompt(_) => Ok(None),
        }
    }

    /// What would stop a call of another agent.
    async fn lessons(&self, listener: &Listener) -> Result<Option<String>, RecallError> {
        /// A brief that lists every rule is read by nobody.
        const MOST: i64 = 5;
        if !self.folders.settings().lessons.gate {
            return Ok(None);
        }
        let ids = inform_at_start(&self.db, &listener.agent, &listener.session, MOST).await?;
        let mut lines = Vec::new();
        for id in ids {
            // One that was removed meanwhile is none.
            let Ok(lesson) = lesson(&self.db, id).await else { continue };
            lines.push(format!("- {} ({}): {}", lesson.title, lesson.severity, lesson.rule));
        }
        Ok((!lines.is_empty()).then(|| format!("Lessons that the user wants to be kept:\n{}", lines.join("\n"))))
    }

    /// The file is read each time, so that a change counts at once: people start sessions and type prompts, not programs.
    fn is_on(&self, occasion: Occasion) -> bool {
        let switch = match occasion {
            Occasion::Brief => self.switches.brief,
            Occasion::PromptHits => self.switches.prompt_hits,
        };
        if let Some(switch) = switch {
            return switch == Switch::On;
        }
        let recall = self.folders.settings().recall;
        match occasion {
            Occasion::Brief => recall.brief,
            Occasion::PromptHits => recall.prompt_hits,
        }
    }
}

fn printed(reply: Option<Value>) -> Response {
    match reply {
        Some(reply) => Json::<Value>(reply).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_people_and_not_the_clients_own_prompts() {
        assert!(is_a_persons(None) && is_a_persons(Some("user")));
        assert!(!is_a_persons(Some("loop_wakeup")) && !is_a_persons(Some("system")));
    }
}
