//! Every route on one screen, by who calls it.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::HeaderValue;
use axum::http::header::SERVER;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;
use crate::{App, auth, lessons, observations, observe, routes};

/// A hook takes up to 32 MiB from its agent and adds its envelope.
pub(crate) const MAX_BODY_BYTES: usize = 40 * 1024 * 1024;

pub(crate) fn router(app: App, shutdown: CancellationToken) -> Router {
    let tools = mcp::Tools::new(app.db.clone(), app.embedder.clone()).timed_by(app.counters.clone());
    let with_token = Router::new()
        // Hooks.
        .route("/api/hooks/{agent}", post(routes::record_event))
        // MCP processes and agents.
        .route("/api/embed", post(routes::embed_text))
        .nest_service("/mcp", mcp::http_service(tools.clone(), shutdown))
        // The same for whoever speaks no MCP.
        .merge(observations::routes(tools.clone()))
        .merge(lessons::routes(tools))
        // The operator.
        .route("/api/admin/stats", get(observe::stats))
        .route("/metrics", get(crate::metrics::metrics))
        .layer(from_fn_with_state(app.clone(), auth::only_with_token));
    Router::new()
        .route("/api/health", get(observe::health))
        .merge(with_token)
        .fallback(nothing_there)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(app.clone(), auth::only_this_machine))
        .layer(map_response(name_itself))
        .with_state(app)
}

/// Every answer says whose it is: a hook must not take that of another program on this port for ours.
async fn name_itself(mut response: Response) -> Response {
    const NAME: HeaderValue = HeaderValue::from_static(concat!("agent-memory/", env!("CARGO_PKG_VERSION")));
    response.headers_mut().insert(SERVER, NAME);
    response
}

async fn nothing_there(request: Request) -> impl IntoResponse {
    ApiError::NotFound(request.uri().path().to_owned())
}

async fn method_not_allowed(request: Request) -> impl IntoResponse {
    ApiError::MethodNotAllowed(request.method().to_string())
}
