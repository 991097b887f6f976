//! Lessons over plain HTTP: the MCP tools' arguments as a JSON body, their replies as the answer, and which lesson a call would fire.

use axum::extract::State;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::{Method, StatusCode};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Json};
use mcp::{Question, Tools};
use memory::access::{Projects, Scope, Who};
use memory::lessons::{Action, Found, Lesson};
use memory::store::{self, Db, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::App;
use crate::auth::Needs;
use crate::error::ApiError;
use crate::observations::{ask, query, whole};
use crate::router::{Form, Route};

pub(crate) fn routes(tools: &Tools) -> Vec<Route> {
    let with = |handler: MethodRouter<Tools>| handler.with_state(tools.clone());
    vec![
        Route::tool("/api/lessons", Question::CreateLesson, with(post(create))),
        Route::tool_query("/api/lessons", Question::SearchLessons, with(get(list))),
        Route::tool("/api/lessons/search", Question::SearchLessons, with(post(search))),
        Route::tool("/api/lessons/propose", Question::ProposeLessons, with(post(propose))),
        Route {
            method: Method::POST,
            path: "/api/lessons/match",
            needs: Needs::Scope(Scope::Recall),
            about: "Which lessons a call of `{\"tool_name\", \"tool_input\"}` would fire",
            form: Form::Json,
            handler: post(matching),
        },
    ]
}

/// What a search of lessons takes, behind the question mark; without a `query`, the newest.
async fn list(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Result<axum::extract::Query<Map<String, Value>>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::SearchLessons, query(arguments)?).await
}

async fn create(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Result<Json<Map<String, Value>>, JsonRejection>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    Ok((StatusCode::CREATED, ask(&tools.of(*who), Question::CreateLesson, whole(arguments)?).await?))
}

async fn search(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Result<Json<Map<String, Value>>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::SearchLessons, whole(arguments)?).await
}

async fn propose(
    State(tools): State<Tools>,
    who: Extension<Who>,
    arguments: Result<Json<Map<String, Value>>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    ask(&tools.of(*who), Question::ProposeLessons, whole(arguments)?).await
}

/// A call as its agent would name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool_name: String,
    tool_input: Value,
}

#[derive(Serialize)]
struct Matching {
    /// The call as patterns see it.
    commands: Vec<String>,
    paths: Vec<String>,
    /// The lessons that it fires, the one that would be said first; those of other projects too, as far as whoever asks may see them.
    lessons: Vec<MatchedLesson>,
}

#[derive(Serialize)]
struct MatchedLesson {
    id: i64,
    title: String,
    severity: &'static str,
    stops: bool,
    project: Option<String>,
    /// In what the pattern was found.
    field: Option<&'static str>,
    text: Option<String>,
}

/// What somebody may see.
async fn visible_projects(db: &Db, who: Who) -> Result<Projects, ApiError> {
    if who == Who::Operator {
        return Ok(Projects::All);
    }
    let seen = async { store::visible_projects(&mut *db.acquire().await?, who).await };
    seen.await.map_err(|error: StoreError| {
        tracing::warn!(error = &error as &dyn std::error::Error, "the projects could not be read");
        ApiError::DatabaseAway
    })
}

async fn matching(
    State(app): State<App>,
    Extension(who): Extension<Who>,
    call: Result<Json<Call>, JsonRejection>,
) -> Result<Json<Matching>, ApiError> {
    let Json(call) = call.map_err(|rejection| ApiError::BadRequest(rejection.body_text()))?;
    let action = Action::of(&call.tool_name, &call.tool_input, None);
    let set = app.gate.held().current();
    let projects = visible_projects(&app.db, who).await?;
    let is_seen = |lesson: &Lesson| match lesson.project {
        None => who == Who::Operator || lesson.holds_for(who, None),
        project => projects.holds(project),
    };
    let lessons = set.matching(&action).into_iter().filter(|found| is_seen(found.lesson)).map(|found| {
        let (field, text) = match found.found {
            Found::Pattern { field, text } => (Some(field.as_str()), Some(text.to_owned())),
            Found::Meaning { .. } => (None, None),
        };
        let lesson = found.lesson;
        MatchedLesson {
            id: lesson.id.0,
            title: lesson.title.clone(),
            severity: lesson.severity.as_str(),
            stops: lesson.stops(),
            project: lesson.project_name.clone(),
            field,
            text,
        }
    });
    let lessons = lessons.collect();
    let mut commands = action.spelt;
    commands.dedup();
    Ok(Json(Matching { commands, paths: action.paths, lessons }))
}
