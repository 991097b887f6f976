//! What hooks and MCP processes ask for.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use chrono::Utc;
use memory::access::Who;
use memory::embed::QueryVector;
use memory::event::{Agent, Envelope, Reading};
use memory::store::Recorded;
use serde::Deserialize;

use crate::App;
use crate::counters::Way;
use crate::error::ApiError;
use crate::exclusion::Exclusion;
use crate::router::MAX_BODY_BYTES;
use crate::spool::named;
use crate::unasked::Asked;
use crate::writer::WriteError;

/// A larger event is read on a thread of its own and answered after its commit.
const MAX_HELD_BYTES: usize = 256 * 1024;

/// For how many events the hook has not waited until its deadline, since it last could say so.
const MISSED_DEADLINES: &str = "agent-memory-missed-deadlines";
/// What is more is no number that a hook could have come to.
const MAX_MISSED_DEADLINES: u64 = 1_000_000;

/// Takes one event in, and what its hook tells of deadlines that were missed before: that counts once the hook is told that it is known.
pub(crate) async fn record_event(
    State(app): State<App>,
    (Extension(who), Path(agent)): (Extension<Who>, Path<String>),
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let missed = headers.get(MISSED_DEADLINES).and_then(|value| value.to_str().ok()?.parse().ok());
    let counters = Arc::clone(&app.counters);
    let answer = take_in(app, (who, &agent), Wish::of(&headers), body).await?;
    counters.count_missed_deadlines(missed.unwrap_or(0).min(MAX_MISSED_DEADLINES));
    Ok(answer)
}

/// 204 comes after its commit; 202, for who prefers not to wait for that (RFC 7240), when the event lies in
/// the spool and has its place in the queue for the commit. 200 comes after the commit too, with what the hook is to print.
async fn take_in(
    app: App,
    (who, agent): (Who, &str),
    wish: Wish,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let came_in = Instant::now();
    let agent: Agent = agent.parse()?;
    let body = whole(body)?;
    let parsed = parse(&app.exclusion, agent, wish, body.clone()).await;
    let Arrived { reading, holdable } = parsed.inspect_err(|error| {
        app.counters.count_malformed();
        // What our own hook sent came from an agent; it may be told apart one day.
        let kept = body.starts_with(b"{\"envelope\"") && app.spool.set_aside(who, &body, &error.to_string()).is_ok();
        tracing::warn!(reason = %error, body_bytes = body.len(), kept, "a body is no event");
    })?;
    let event = match reading.of(who) {
        Reading::Kept(event) => *event,
        Reading::AboutToRun(upcoming) => {
            app.counters.count_asked();
            return Ok(app.gate.answer(*upcoming, came_in).await);
        }
        Reading::Ignored { event, reason } => {
            app.counters.count_ignored(&event);
            tracing::debug!(event.name = event, reason, "ignored an event");
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    };
    // Without a schema nothing can be stored, and waiting for it would hold up the agent.
    if !app.database.is_prepared() {
        return Err(ApiError::DatabaseAway);
    }
    // A spool that takes nothing is no reason to refuse: the commit is waited for instead.
    if let Some(held) = holdable.and_then(|name| app.spool.hold(named(&name, who), &body).ok()) {
        let enqueued = app.writer.enqueue(event).await.map_err(|error| refused(&error))?;
        app.tasks.spawn(async move {
            if let Ok(recorded) = enqueued.committed().await {
                app.counters.count_recorded(recorded, body.len());
                held.committed();
            }
        });
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let asked = Asked::of(&event).filter(|_| wish == Wish::Commit);
    let recorded = app.writer.write(event).await.map_err(|error| refused(&error))?;
    app.counters.count_recorded(recorded, body.len());
    match asked {
        // What is known already was answered when it came first.
        Some(asked) if recorded != Recorded::Known => {
            let started = Instant::now();
            let answer = app.unasked.answer(asked, came_in).await;
            app.counters.time_recall(Way::Unasked, started.elapsed());
            Ok(answer)
        }
        _ => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// An event as it came, and the name under which the spool may hold it until its commit.
struct Arrived {
    reading: Reading,
    holdable: Option<String>,
}

/// Reads a body; a large one on a thread where that holds up nobody.
async fn parse(exclusion: &Exclusion, agent: Agent, wish: Wish, body: Bytes) -> Result<Arrived, ApiError> {
    if body.len() <= MAX_HELD_BYTES {
        return parse_now(exclusion, agent, wish, &body);
    }
    let exclusion = exclusion.clone();
    // Writing it twice would take longer than waiting.
    tokio::task::spawn_blocking(move || parse_now(&exclusion, agent, Wish::Commit, &body))
        .await
        .map_err(|_| ApiError::Internal)?
}

fn parse_now(exclusion: &Exclusion, agent: Agent, wish: Wish, body: &[u8]) -> Result<Arrived, ApiError> {
    let envelope = Envelope::parse(body, Some(agent), Utc::now())?;
    // A bare event has no envelope that the spool could keep.
    let holdable = (wish == Wish::Safety && envelope.event.is_some()).then(|| envelope.spool_name());
    Ok(Arrived { reading: exclusion.read(envelope), holdable })
}

/// What a sender waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Commit,
    Safety,
}

impl Wish {
    fn of(headers: &HeaderMap) -> Self {
        let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let no_wait = preferences.flat_map(|value| value.split(',')).any(|value| value.trim() == "respond-async");
        if no_wait { Self::Safety } else { Self::Commit }
    }
}

fn refused(error: &WriteError) -> ApiError {
    match error {
        WriteError::Away => ApiError::DatabaseAway,
        WriteError::Refused(_) => ApiError::Internal,
    }
}

#[derive(Deserialize)]
pub(crate) struct EmbedRequest {
    text: String,
}

/// Embeds one text with the server's model, so that a dozen MCP processes need not hold a dozen models.
pub(crate) async fn embed_text(
    State(app): State<App>,
    headers: HeaderMap,
    request: Result<Json<EmbedRequest>, JsonRejection>,
) -> Result<Json<QueryVector>, ApiError> {
    let Json(request) = request.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge { limit_bytes: MAX_BODY_BYTES },
        _ => ApiError::BadRequest(rejection.body_text()),
    })?;
    if let Some(told) = headers.get(mcp::RECALL_HEADER).and_then(|value| value.to_str().ok()) {
        app.counters.time_told(told);
    }
    Ok(Json(app.embedder.embed_query(&request.text).await?))
}

fn whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge { limit_bytes: MAX_BODY_BYTES },
        _ => ApiError::BodyBroken,
    })
}
