//! What hooks and MCP processes ask for.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::Utc;
use memory::embed::QueryVector;
use memory::event::{Agent, Envelope, Reading, read};
use serde::Deserialize;

use crate::App;
use crate::error::ApiError;
use crate::router::MAX_BODY_BYTES;
use crate::writer::WriteError;

/// Takes one event in; answers after its commit. There is nothing to print yet for any event.
pub(crate) async fn record_event(
    State(app): State<App>,
    Path(agent): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, ApiError> {
    let agent: Agent = agent.parse()?;
    let body = whole(body)?;
    let envelope = Envelope::parse(&body, Some(agent), Utc::now()).inspect_err(|error| {
        app.counters.count_malformed();
        tracing::warn!(reason = %error, body_bytes = body.len(), "dropped a body that is no event");
    })?;
    match read(envelope) {
        Reading::Ignored { event, reason } => {
            app.counters.count_ignored(&event);
            tracing::debug!(event.name = event, reason, "ignored an event");
        }
        Reading::Kept(event) => {
            // Without a schema nothing can be stored, and waiting for it would hold up the agent.
            if !app.database.is_prepared() {
                return Err(ApiError::DatabaseAway);
            }
            let recorded = app.writer.write(*event).await.map_err(|error| match error {
                WriteError::Away => ApiError::DatabaseAway,
                WriteError::Refused(_) => ApiError::Internal,
            })?;
            app.counters.count_recorded(recorded);
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(crate) struct EmbedRequest {
    text: String,
}

/// Embeds one text with the server's model, so that a dozen MCP processes need not hold a dozen models.
pub(crate) async fn embed_text(
    State(app): State<App>,
    request: Result<Json<EmbedRequest>, JsonRejection>,
) -> Result<Json<QueryVector>, ApiError> {
    let Json(request) = request.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge { limit_bytes: MAX_BODY_BYTES },
        _ => ApiError::BadRequest(rejection.body_text()),
    })?;
    Ok(Json(app.embedder.embed_query(&request.text).await?))
}

fn whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge { limit_bytes: MAX_BODY_BYTES },
        _ => ApiError::BodyBroken,
    })
}
