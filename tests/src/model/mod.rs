//! A scripted stand-in for the messages API that Claude Code talks to: no model, no network, and a record of all that
//! the client really sent.
//!
//! A request that offers tools is a turn of the conversation and gets the script's next turn (the last one again when
//! the script is used up). Any other is one of the client's own small questions and gets "ok".

mod reply;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
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

/// Calls a tool.
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
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::BAD_REQUEST, format!("no JSON in a request to {uri}")).into_response();
    };
    let message = reply::message(&request["model"], &shared.answer(&request));
    if request["stream"] == Value::Bool(true) {
        ([(header::CONTENT_TYPE, "text/event-stream")], reply::stream(&message)).into_response()
    } else {
        axum::Json(message).into_response()
    }
}
