//! What an operator does from afar: tokens, and the log of what was done.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use memory::access::Scope;
use memory::store::StoreError;
use memory::store::audit::{self, AuditEntry};
use memory::store::tokens::{self, NewToken, TokenError, TokenOverview};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// So many entries of the log at once, unless more are asked for.
const ENTRIES: i64 = 100;
const MOST_ENTRIES: i64 = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    name: String,
    scopes: Vec<String>,
    person: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    limit: Option<i64>,
}

/// `GET /api/admin/tokens`
pub(crate) async fn list_tokens(State(app): State<App>) -> Result<Json<Vec<TokenOverview>>, ApiError> {
    tokens::list(&app.db).await.map(Json).map_err(|error| away(&error))
}

/// `POST /api/admin/tokens`: 201 with the token's text, which nobody can read again.
pub(crate) async fn create_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let Json(wanted) = wanted.map_err(|rejection| ApiError::BadRequest(rejection.body_text()))?;
    let scopes = wanted.scopes.iter().map(|scope| scope.parse()).collect::<Result<Vec<Scope>, _>>();
    let scopes = scopes.map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let new = NewToken { name: &wanted.name, scopes: &scopes, person: wanted.person.as_deref() };
    let token = tokens::create(&app.db, new, caller.name()).await.map_err(refused)?;
    Ok((StatusCode::CREATED, Json(json!({ "name": wanted.name, "token": token }))))
}

/// `DELETE /api/admin/tokens/{name}`: 204.
pub(crate) async fn revoke_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    tokens::revoke(&app.db, &name, caller.name()).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/admin/audit?limit=`
pub(crate) async fn audit_log(
    State(app): State<App>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Vec<AuditEntry>>, ApiError> {
    let Query(page) = page.map_err(|rejection| ApiError::BadRequest(rejection.body_text()))?;
    let most = page.limit.unwrap_or(ENTRIES).clamp(1, MOST_ENTRIES);
    audit::list(&app.db, most).await.map(Json).map_err(|error| away(&error))
}

fn refused(error: TokenError) -> ApiError {
    match error {
        TokenError::Store(error) => away(&error),
        TokenError::Unknown { .. } => ApiError::NoSuchToken(error.to_string()),
        TokenError::NameTaken(_) | TokenError::NoScope | TokenError::BadName(_) => {
            ApiError::BadRequest(error.to_string())
        }
    }
}

fn away(error: &StoreError) -> ApiError {
    tracing::warn!(error = error as &dyn std::error::Error, "the database did not answer the operator");
    ApiError::DatabaseAway
}
