//! Recall over plain HTTP: the MCP tools' arguments as a JSON body, their replies as the answer.

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use mcp::{Question, Tools};
use serde_json::{Map, Value, json};

use crate::App;
use crate::error::ApiError;

type Arguments = Result<Json<Map<String, Value>>, JsonRejection>;

pub(crate) fn routes(tools: Tools) -> Router<App> {
    Router::new()
        .route("/api/observations", post(save))
        .route("/api/observations/search", post(search))
        .route("/api/observations/timeline", post(timeline))
        .route("/api/observations/{ids}", get(details))
        .with_state(tools)
}

async fn save(State(tools): State<Tools>, arguments: Arguments) -> Result<(StatusCode, Json<Value>), ApiError> {
    Ok((StatusCode::CREATED, ask(&tools, Question::SaveMemory, whole(arguments)?).await?))
}

async fn search(State(tools): State<Tools>, arguments: Arguments) -> Result<Json<Value>, ApiError> {
    ask(&tools, Question::Search, whole(arguments)?).await
}

async fn timeline(State(tools): State<Tools>, arguments: Arguments) -> Result<Json<Value>, ApiError> {
    ask(&tools, Question::Timeline, whole(arguments)?).await
}

/// The ids stand in the path, separated by commas.
async fn details(State(tools): State<Tools>, Path(ids): Path<String>) -> Result<Json<Value>, ApiError> {
    let ids: Vec<&str> = ids.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
    let arguments = Map::from_iter([("ids".to_owned(), json!(ids))]);
    ask(&tools, Question::GetObservations, arguments).await
}

async fn ask(tools: &Tools, question: Question, arguments: Map<String, Value>) -> Result<Json<Value>, ApiError> {
    tools.ask(question, arguments).await.map(Json).map_err(ApiError::Refused)
}

fn whole(arguments: Arguments) -> Result<Map<String, Value>, ApiError> {
    arguments.map(|Json(arguments)| arguments).map_err(|rejection| ApiError::BadRequest(rejection.body_text()))
}
