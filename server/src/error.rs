//! What a client is told when a request fails: a status, a stable code, a message, and what to do about it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use memory::access::Scope;
use memory::event::EnvelopeError;
use serde::Serialize;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// 401
    #[error("the request carries no valid token")]
    Unauthorized,
    /// 403
    #[error("the token does not have the scope `{0}`")]
    Forbidden(Scope),
    /// 403
    #[error("the host `{0}` is not this machine's own")]
    ForeignHost(String),
    /// 403
    #[error("the origin `{0}` is not this machine's own")]
    ForeignOrigin(String),
    /// 404
    #[error("there is nothing at `{0}`")]
    NotFound(String),
    /// 404
    #[error("{0}")]
    NoSuchToken(String),
    /// 404
    #[error(transparent)]
    UnknownAgent(#[from] memory::event::UnknownAgent),
    /// 405
    #[error("`{0}` cannot be done there")]
    MethodNotAllowed(String),
    /// 413
    #[error("the body is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    /// 400
    #[error("the body broke off")]
    BodyBroken,
    /// 400
    #[error(transparent)]
    Malformed(#[from] EnvelopeError),
    /// 400
    #[error("the body is not what this route takes: {0}")]
    BadRequest(String),
    /// 503
    #[error("the database is not reachable")]
    DatabaseAway,
    /// 503
    #[error(transparent)]
    NoVectors(#[from] memory::embed::EmbedError),
    /// 400, 404, 503 or 500, as the fault is
    #[error("{}", .0.message)]
    Refused(mcp::Refusal),
    /// 500
    #[error("the server failed")]
    Internal,
}

#[derive(Serialize)]
struct Body {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl ApiError {
    const fn parts(&self) -> (StatusCode, &'static str, Option<&'static str>) {
        match self {
            Self::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                Some("send `Authorization: Bearer <token>` with the token from the `token` file in the home folder"),
            ),
            Self::Forbidden(_) => (
                StatusCode::FORBIDDEN,
                "forbidden",
                Some("`cargo xtask token create NAME --scope ...` makes a token with the scopes that are needed"),
            ),
            Self::ForeignHost(_) => (
                StatusCode::FORBIDDEN,
                "foreign_host",
                Some("use 127.0.0.1 or localhost, or from another machine a name that the server's `hosts` lists"),
            ),
            Self::ForeignOrigin(_) => {
                (StatusCode::FORBIDDEN, "foreign_origin", Some("pages of other sites may not use this server"))
            }
            Self::NotFound(_) => (StatusCode::NOT_FOUND, "not_found", None),
            Self::NoSuchToken(_) => (StatusCode::NOT_FOUND, "not_found", Some("`cargo xtask token list` shows them")),
            Self::UnknownAgent(_) => (StatusCode::NOT_FOUND, "unknown_agent", None),
            Self::MethodNotAllowed(_) => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", None),
            Self::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", Some("send a smaller event")),
            Self::BodyBroken => (StatusCode::BAD_REQUEST, "body_broken", None),
            Self::Malformed(_) => {
                (StatusCode::BAD_REQUEST, "malformed_event", Some("docs/architecture.md has the form"))
            }
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "bad_request", None),
            Self::DatabaseAway => {
                (StatusCode::SERVICE_UNAVAILABLE, "database_away", Some("`cargo xtask status` says what is wrong"))
            }
            Self::NoVectors(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "no_vectors",
                Some("search by words still works; `cargo xtask up` brings the model"),
            ),
            Self::Refused(refusal) => {
                let (status, code) = match refusal.fault {
                    mcp::Fault::Asker => (StatusCode::BAD_REQUEST, "bad_request"),
                    mcp::Fault::Absent => (StatusCode::NOT_FOUND, "not_found"),
                    mcp::Fault::Database => (StatusCode::SERVICE_UNAVAILABLE, "database_away"),
                    mcp::Fault::Ours => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
                };
                (status, code, Some(refusal.hint))
            }
            Self::Internal => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal", Some("`cargo xtask logs server` says what happened"))
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code, hint) = self.parts();
        (status, Json(Body { code, message: self.to_string(), hint })).into_response()
    }
}
