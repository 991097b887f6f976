//! Every route: who may call it, and what it takes and gives. The document at `/api/openapi.json` is made of the same table.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::header::SERVER;
use axum::http::{HeaderValue, Method};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any_service, get, post};
use axum::{Extension, Router};
use mcp::{Question, Tools};
use memory::access::Scope;
use tokio_util::sync::CancellationToken;

use crate::auth::{AtDoor, Doorkeeper, Needs};
use crate::error::ApiError;
use crate::{App, admin, auth, lessons, metrics, observations, observe, openapi, routes};

/// A hook takes up to 32 MiB from its agent and adds its envelope.
pub(crate) const MAX_BODY_BYTES: usize = 40 * 1024 * 1024;

/// A route with its handler.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// As the router has it: `{name}` stands for a part.
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// One line for who reads the document.
    pub(crate) about: &'static str,
    pub(crate) form: Form,
    pub(crate) handler: MethodRouter<App>,
}

/// What a route takes and gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A tool's arguments as a JSON body, its reply as JSON.
    Tool(Question),
    /// The same with the arguments in the path and behind the question mark.
    ToolQuery(Question),
    /// A JSON body of any shape; the answer is JSON, or nothing.
    Json,
    /// No body; the answer is JSON, or nothing.
    Nothing,
    /// No body; the answer is text.
    Text,
}

impl Route {
    pub(crate) fn tool(path: &'static str, question: Question, handler: MethodRouter<App>) -> Self {
        let (needs, form) = (Needs::Scope(Scope::Recall), Form::Tool(question));
        Self { method: Method::POST, path, needs, about: "", form, handler }
    }

    pub(crate) fn tool_query(path: &'static str, question: Question, handler: MethodRouter<App>) -> Self {
        Self { method: Method::GET, form: Form::ToolQuery(question), ..Self::tool(path, question, handler) }
    }

    /// A tool's route is described by its tool, any other in a line of its own.
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }
}

fn table(tools: &Tools, keeper: &Doorkeeper, shutdown: CancellationToken) -> Vec<Route> {
    let plain = |method, path, needs, handler| {
        let form = if method == Method::GET { Form::Nothing } else { Form::Json };
        Route { method, path, needs, about: "", form, handler }
    };
    let mcp = any_service(mcp::http_service(tools, keeper.hosts(), shutdown));
    let (ingest, recall, admin) = (Scope::Ingest, Scope::Recall, Scope::Admin);
    let mut table = vec![
        plain(Method::GET, "/api/health", Needs::NoToken, get(observe::health)).about("How the server is"),
        plain(Method::GET, "/api/openapi.json", Needs::AnyToken, get(openapi::give)).about("This document"),
        // Hooks.
        plain(Method::POST, "/api/hooks/{agent}", Needs::Scope(ingest), post(routes::record_event)).about(
            "Take in an agent's event: an envelope, or the agent's bare JSON; 200 answers with what the hook prints",
        ),
        // MCP processes and agents.
        plain(Method::POST, "/api/embed", Needs::Scope(recall), post(routes::embed_text))
            .about("Embed `{\"text\"}` with the server's model"),
        plain(Method::POST, "/mcp", Needs::Scope(recall), mcp).about("The tools over the Model Context Protocol"),
        // The operator.
        plain(Method::GET, "/api/admin/stats", Needs::Scope(admin), get(observe::stats)).about("The journal's counts"),
        Route { form: Form::Text, ..plain(Method::GET, "/metrics", Needs::AnyToken, get(metrics::metrics)) }
            .about("What happened and how things stand, for Prometheus"),
        plain(Method::GET, "/api/admin/tokens", Needs::Scope(admin), get(admin::list_tokens))
            .about("All tokens, without their text"),
        plain(Method::POST, "/api/admin/tokens", Needs::Scope(admin), post(admin::create_token))
            .about("Make a token of `{\"name\", \"scopes\", \"person\"}`; its text is told once"),
        plain(
            Method::DELETE,
            "/api/admin/tokens/{name}",
            Needs::Scope(admin),
            axum::routing::delete(admin::revoke_token),
        )
        .about("Revoke a token"),
        plain(Method::GET, "/api/admin/audit", Needs::Scope(admin), get(admin::audit_log))
            .about("What was done that lets others do something or cannot be undone, the newest first"),
    ];
    // The same tools for whoever speaks no MCP.
    table.extend(observations::routes(tools));
    table.extend(lessons::routes(tools));
    table
}

/// The routes as they are at one door.
pub(crate) fn router(app: App, keeper: Doorkeeper, shutdown: CancellationToken) -> Router {
    let tools = Tools::new(app.db.clone(), app.embedder.clone()).timed_by(app.counters.clone());
    let table = table(&tools, &keeper, shutdown);
    let document = Arc::new(openapi::document(&table, &tools));
    let door = AtDoor { app: app.clone(), keeper };
    let (mut open, mut with_token) = (Router::new(), Router::new());
    for Route { path, needs, handler, .. } in table {
        match needs {
            Needs::NoToken => open = open.route(path, handler),
            Needs::AnyToken => with_token = with_token.route(path, handler),
            Needs::Scope(scope) => {
                let only = from_fn_with_state((app.clone(), scope), auth::only_with_scope);
                with_token = with_token.route(path, handler.layer(only));
            }
        }
    }
    with_token
        .layer(Extension(document))
        .layer(from_fn_with_state(door.clone(), auth::only_with_token))
        .merge(open)
        .fallback(nothing_there)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(door, auth::only_known_hosts))
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
