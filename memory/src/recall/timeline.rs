//! What was around a document: its neighbours in time, in the same session or project.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Line, RecallError, details};
use crate::access::Projects;
use crate::ids::{DocumentId, DocumentKind};
use crate::store::Db;

/// What a timeline is put around.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Document(DocumentId),
    Moment(DateTime<Utc>),
}

/// How far a timeline looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// Through all the projects in which it may look.
    Projects,
    /// The document's own session; for what has none, and around a moment, everything.
    Session,
}

#[derive(Debug, Clone)]
pub struct TimelineRequest {
    pub anchor: Anchor,
    /// How many documents before and after, each.
    pub before: usize,
    pub after: usize,
    pub around: Around,
    /// Where it may look.
    pub projects: Projects,
}

/// Documents in the order of time, the anchor among them.
pub async fn timeline(db: &Db, request: TimelineRequest) -> Result<Vec<Line>, RecallError> {
    let mut connection = db.acquire().await?;
    let anchor = place(&mut connection, request.anchor, &request.projects).await?;
    let projects = request.projects.ids();
    let session = anchor.session_id.filter(|_| request.around == Around::Session);
    let rows = sqlx::query!(
        r#"(select document_kind as "document_kind!", document_id as "document_id!", occurred_at as "occurred_at!"
            from mem_search_index
            where (occurred_at, document_id) <= ($1, $2)
              and ($3::bigint is null or session_id = $3) and ($4::bigint[] is null or project_id = any($4))
            order by occurred_at desc, document_id desc limit $5)
           union all
           (select document_kind, document_id, occurred_at from mem_search_index
            where (occurred_at, document_id) > ($1, $2)
              and ($3::bigint is null or session_id = $3) and ($4::bigint[] is null or project_id = any($4))
            order by occurred_at, document_id limit $6)"#,
        anchor.occurred_at,
        anchor.document_id,
        session,
        projects.as_deref(),
        // The anchor itself is among those up to it.
        request.before as i64 + i64::from(matches!(request.anchor, Anchor::Document(_))),
        request.after as i64,
    )
    .fetch_all(&mut *connection)
    .await?;
    let ids: Vec<_> = rows
        .into_iter()
        .filter_map(|row| {
            Some(DocumentId { kind: row.document_kind.parse::<DocumentKind>().ok()?, row: row.document_id })
        })
        .collect();
    let mut lines = details::lines(&mut connection, &ids).await?;
    lines.sort_by_key(|line| (line.occurred_at, line.id.row));
    Ok(lines)
}

struct Place {
    occurred_at: DateTime<Utc>,
    document_id: i64,
    session_id: Option<i64>,
}

async fn place(connection: &mut PgConnection, anchor: Anchor, projects: &Projects) -> Result<Place, RecallError> {
    let id = match anchor {
        Anchor::Moment(occurred_at) => return Ok(Place { occurred_at, document_id: i64::MAX, session_id: None }),
        Anchor::Document(id) => id,
    };
    let projects = projects.ids();
    sqlx::query_as!(
        Place,
        "select occurred_at, document_id, session_id from mem_search_index
         where document_kind = $1 and document_id = $2 and ($3::bigint[] is null or project_id = any($3))",
        id.kind.as_str(),
        id.row,
        projects.as_deref(),
    )
    .fetch_optional(connection)
    .await?
    .ok_or(RecallError::UnknownDocument(id))
}
