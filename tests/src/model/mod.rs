//! A scripted stand-in for the models that the agents talk to: no model, no network, and a record of all that the client
//! really sent. One address speaks all their dialects, one file each.
//!
//! A request that offers tools is a turn of the conversation and gets the script's next turn (the last one again when
//! the script is used up). Any other is one of the client's own small questions and gets "ok".

mod anthropic;
mod gemini;
mod responses;

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One piece of an assistant's turn.
#[derive(Debug, Clone)]
pub enum Block {
    Text(String),
    Call { tool: String, input: Value },
}

/// Says something.
pub fn say(text: &str) -> Block {
    Block::Text(text.to_owned())
}

/// Calls a tool, by the name under which the client offers it. Its input is an object, or a text where the tool is one that
/// takes free text (Codex's `apply_patch`).
pub fn call(tool: &str, input: Value) -> Block {
    Block::Call { tool: tool.to_owned(), input }
}

/// The running stand-in; it ends when dropped.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Model {
    /// Starts it on a free port of this machine, with the assistant's turns in their order.
    pub async fn start(turns: Vec<Vec<Block>>) -> Result<Self> {
        let shared = Arc::new(Shared { turns, progress: Mutex::default() });
        let routes = Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1/messages/count_tokens", post(async || axum::Json(json!({"input_tokens": 10}))))
            .route("/v1/responses", post(responses))
            .route("/v1beta/models/{call}", post(generate))
            .fallback(async || axum::Json(json!({})))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.context("binding the scripted model")?;
        let address = listener.local_addr().context("asking for the scripted model's port")?;
        let task = tokio::spawn(async move {
            // Ends only with the task itself.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, shared, task })
    }

    /// What the client takes as its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies of all requests that were turns, in order.
    pub fn turns(&self) -> Vec<Value> {
        self.shared.progress().turns.clone()
    }

    /// All that tools have answered by the last turn, as text.
    pub fn tool_results(&self) -> String {
        let turns = self.turns();
        let Some(last) = turns.last() else { return String::new() };
        anthropic::tool_results(last) + &responses::tool_results(last) + &gemini::tool_results(last)
    }

    /// The bodies of the client's own small questions.
    pub fn asides(&self) -> Vec<Value> {
        self.shared.progress().asides.clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct Shared {
    turns: Vec<Vec<Block>>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    turns: Vec<Value>,
    asides: Vec<Value>,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request and picks its answer.
    fn answer(&self, request: &Value) -> Vec<Block> {
        let mut progress = self.progress();
        let offers_tools = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        if !offers_tools {
            progress.asides.push(request.clone());
            return vec![say("ok")];
        }
        progress.turns.push(request.clone());
        let index = (progress.turns.len() - 1).min(self.turns.len().saturating_sub(1));
        self.turns.get(index).cloned().unwrap_or_else(|| vec![say("ok")])
    }
}

async fn messages(State(shared): State<Arc<Shared>>, uri: Uri, body: Bytes) -> Response {
    answer(&shared, &uri, &body, anthropic::answer)
}

async fn responses(State(shared): State<Arc<Shared>>, uri: Uri, body: Bytes) -> Response {
    answer(&shared, &uri, &body, |_, blocks| responses::answer(blocks))
}

/// The model and what is asked of it are one part of the path: `gemini-2.5-pro:streamGenerateContent`.
async fn generate(State(shared): State<Arc<Shared>>, Path(call): Path<String>, uri: Uri, body: Bytes) -> Response {
    match call.rsplit(':').next() {
        Some("streamGenerateContent") => answer(&shared, &uri, &body, |_, blocks| gemini::stream(blocks)),
        Some("generateContent") => answer(&shared, &uri, &body, |_, blocks| gemini::whole(blocks)),
        _ => axum::Json(json!({"totalTokens": 10})).into_response(),
    }
}

fn answer(shared: &Shared, uri: &Uri, body: &[u8], write: impl FnOnce(&Value, &[Block]) -> Response) -> Response {
    match serde_json::from_slice::<Value>(body) {
        Ok(request) => write(&request, &shared.answer(&request)),
        Err(_) => (StatusCode::BAD_REQUEST, format!("no JSON in a request to {uri}")).into_response(),
    }
}

fn event_stream(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
}

/// Server-sent events that are named by their `type`.
fn named_events(events: &[Value]) -> String {
    events.iter().fold(String::new(), |mut text, event| {
        let name = event["type"].as_str().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(text, "event: {name}\ndata: {event}\n\n");
        text
    })
}

/// The text of a value that is one, or is a list of parts with a text each.
fn text_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    content.as_str().into_iter().chain(parts.filter_map(|part| part["text"].as_str())).collect()
}
