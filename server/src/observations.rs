//! Recall over plain HTTP: the MCP tools' arguments as a JSON body, their replies as the answer.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Json};
use mcp::{Question, Tools};
use memory::access::Who;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::router::Route;

type Arguments = Result<Json<Map<String, Value>>, JsonRejection>;

pub(crate) fn routes(tools: &Tools) -> Vec<Route> {
    let with = |handler: MethodRouter<Tools>| handler.with_state(tools.clone());
    vec![
        Route::tool("/api/observations", Question::SaveMemory, with(post(save))),
        Route::tool("/api/observations/search", Question::Search, with(post(search))),
        Route::tool("/api/observations/timeline", Question::Timeline, with(post(timeline))),
        Route::tool("/api/observations/file_history", Question::FileHistory, with(post(file_history))),
        Route::tool("/api/observations/find_fix", Question::FindFix, with(post(find_fix))),
        Route::tool("/api/observations/how", Question::How, with(post(how))),
        Route::tool("/api/observations/update", Question::UpdateMemory, with(post(update))),
        Route::tool("/api/observations/forget", Question::Forget, with(post(forget))),
        Route::tool_query("/api/observations/{ids}", Question::GetObservations, with(get(details))),
    ]
}

async fn save(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Arguments,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    Ok((StatusCode::CREATED, ask(&tools.of(*who), Question::SaveMemory, whole(arguments)?).await?))
}

async fn search(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Arguments,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::Search, whole(arguments)?).await
}

async fn timeline(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Arguments,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::Timeline, whole(arguments)?).await
}

async fn file_history(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Arguments,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::FileHistory, whole(arguments)?).await
}

async fn find_fix(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Arguments,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::FindFix, whole(arguments)?).await
}

async fn how(State(tools): State<Tools>, who: Extension<Who>, arguments: Arguments) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::How, whole(arguments)?).await
}

async fn update(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Arguments,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::UpdateMemory, whole(arguments)?).await
}

async fn forget(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Arguments,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::Forget, whole(arguments)?).await
}

/// The ids stand in the path, separated by commas; the other arguments behind the question mark.
async fn details(
    State(tools): State<Tools>,
    who: Extension<Who>,
    Path(ids): Path<String>,
    arguments: Result<Query<Map<String, Value>>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let mut arguments = query(arguments)?;
    let ids: Vec<&str> = ids.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
    arguments.insert("ids".to_owned(), json!(ids));
    ask(&tools.of(*who), Question::GetObservations, arguments).await
}

/// Asks tools that are somebody's.
pub(crate) async fn ask(
    tools: &Tools,
    question: Question,
    arguments: Map<String, Value>,
) -> Result<Json<Value>, ApiError> {
    tools.ask(question, arguments).await.map(Json).map_err(ApiError::Refused)
}

pub(crate) fn whole(arguments: Arguments) -> Result<Map<String, Value>, ApiError> {
    arguments.map(|Json(arguments)| arguments).map_err(|rejection| ApiError::BadRequest(rejection.body_text()))
}

pub(crate) fn query(
    arguments: Result<Query<Map<String, Value>>, QueryRejection>,
) -> Result<Map<String, Value>, ApiError> {
    arguments.map(|Query(arguments)| arguments).map_err(|rejection| ApiError::BadRequest(rejection.body_text()))
}
