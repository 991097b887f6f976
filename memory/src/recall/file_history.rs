//! Who touched a file: calls whose input names it, whatever way, edits first.

use std::cmp::Reverse;

use super::RecallError;
use super::calls::{self, Call, Inputs};
use super::touches::{EDITING_TOOLS, Touch, WantedPath, touches};
use crate::access::Projects;
use crate::analyze;
use crate::store::Db;

#[derive(Debug, Clone)]
pub struct FileHistoryRequest {
    /// Absolute, relative to the repository, or only the last parts.
    pub path: String,
    pub projects: Projects,
    pub limit: usize,
}

/// A call that touched the file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileTouch {
    pub call: Call,
    pub touch: Touch,
    /// The path as the call named it.
    pub path: String,
}

/// Calls that touched a file: those that changed it before the others, newest first. An error if the path names no file.
pub async fn file_history(db: &Db, request: FileHistoryRequest) -> Result<Vec<FileTouch>, RecallError> {
    let wanted = WantedPath::of(&request.path).ok_or(RecallError::EmptyQuery)?;
    let named = analyze::in_a_row(wanted.name()).ok_or(RecallError::EmptyQuery)?;
    let mut connection = db.acquire().await?;
    let rows = candidates(&mut connection, &wanted, &named, &request).await?;
    let calls = calls::read(&mut connection, &rows, Inputs::WithoutTexts).await?;
    let mut found: Vec<_> = calls.into_iter().filter_map(|call| touched(call, &wanted)).collect();
    found.sort_by_key(|found| (found.touch != Touch::Edited, Reverse(found.call.place())));
    found.truncate(request.limit);
    Ok(found)
}

/// What a call most tellingly did with the file.
fn touched(call: Call, wanted: &WantedPath) -> Option<FileTouch> {
    let (path, touch) = touches(&call.tool_name, &call.input)
        .into_iter()
        .filter(|(path, _)| wanted.is(path, call.working_folder.as_deref(), call.root.as_deref()))
        .min_by_key(|(_, touch)| *touch)?;
    Some(FileTouch { call, touch, path })
}

/// Calls whose input speaks of a file of that name: first those that name its folder too, and edits before others.
async fn candidates(
    connection: &mut sqlx::PgConnection,
    wanted: &WantedPath,
    named: &str,
    request: &FileHistoryRequest,
) -> Result<Vec<i64>, RecallError> {
    /// Each is read and looked at; many only speak of the file.
    const MOST: i64 = 600;
    let projects = request.projects.ids();
    let rows = sqlx::query_scalar!(
        r#"select call.id
           from mem_search_index document
           join mem_tool_calls call on call.id = document.document_id
           where document.document_kind = 'call' and document.lexemes @@ $1::text::tsquery
             and ($2::bigint[] is null or document.project_id = any($2))
             and strpos(lower(call.input::text), lower($3)) > 0
           order by strpos(replace(lower(call.input::text), '\\', '/'), lower($4)) > 0 desc, call.tool_name ~* $5 desc,
                    call.occurred_at desc
           limit $6"#,
        named,
        projects.as_deref(),
        wanted.name(),
        wanted.tail(),
        EDITING_TOOLS,
        MOST,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows)
}
