//! Commands that worked for a goal: successful shell calls found by the goal's words, by its meaning, or by the prompt that they
//! served; the same command once, with how it has fared ever since.

use std::collections::HashMap;

use sqlx::PgConnection;

use super::calls::{self, Call, Inputs};
use super::search::rankings;
use super::{Filter, RankedList, RecallError, fuse};
use crate::access::Projects;
use crate::analyze;
use crate::embed::QueryVector;
use crate::ids::{DocumentId, DocumentKind};
use crate::shell::{command_of, normalised, only_looks};
use crate::store::Db;

/// What a command counts that only looked around.
const LOOKING: f64 = 0.4;
/// What being asked for by a prompt that fits counts beside fitting by itself.
const BY_PROMPT: f64 = 0.7;

/// A command and how it fared.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkingCommand {
    /// Without the folder that it was run in and what cut its output.
    pub command: String,
    /// The call that fits the goal best.
    pub call: Call,
    pub worked: usize,
    pub failed: usize,
    pub last_worked_at: chrono::DateTime<chrono::Utc>,
}

/// Finds commands that worked for a goal, the most fitting first.
pub async fn how(
    db: &Db,
    goal: &str,
    vector: Option<QueryVector>,
    projects: Projects,
    limit: usize,
) -> Result<Vec<WorkingCommand>, RecallError> {
    let text = goal.trim();
    if text.is_empty() {
        return Err(RecallError::EmptyQuery);
    }
    let filter = Filter { projects, kinds: vec![DocumentKind::Prompt, DocumentKind::Call], ..Filter::default() };
    let found: Vec<_> = fuse(&rankings(db, text, vector, &filter).await?).into_iter().map(|fused| fused.id).collect();
    let mut connection = db.acquire().await?;
    let (prompts, own): (Vec<_>, Vec<_>) = found.into_iter().partition(|id| id.kind == DocumentKind::Prompt);
    let served = serving(&mut connection, &prompts).await?;
    let fused = fuse(&[RankedList::of("calls", 1.0, own), RankedList::of("prompts", BY_PROMPT, served)]);
    let rows: Vec<_> = fused.iter().map(|fused| fused.id.row).collect();
    let calls = calls::read(&mut connection, &rows, Inputs::WithoutTexts).await?;
    let mut calls: HashMap<_, _> = calls.into_iter().map(|call| (call.line.id, call)).collect();
    let mut scored: Vec<(f64, WorkingCommand)> = Vec::new();
    for fused in fused {
        let Some(call) = calls.remove(&fused.id).filter(|call| !call.failed()) else { continue };
        let Some(ran) = command_of(&call.input) else { continue };
        let command = normalised(&ran);
        if scored.iter().any(|(_, known)| known.command == command) {
            continue;
        }
        let score = if only_looks(&ran) { LOOKING * fused.score } else { fused.score };
        let last_worked_at = call.line.occurred_at;
        scored.push((score, WorkingCommand { command, call, worked: 1, failed: 0, last_worked_at }));
    }
    scored.sort_by(|one, two| two.0.total_cmp(&one.0));
    let mut commands: Vec<_> = scored.into_iter().take(limit).map(|(_, command)| command).collect();
    count(&mut connection, &mut commands, &filter).await?;
    Ok(commands)
}

/// The calls that served prompts, prompt by prompt, the last of each first: it is what worked in the end.
async fn serving(connection: &mut PgConnection, prompts: &[DocumentId]) -> Result<Vec<DocumentId>, RecallError> {
    const PROMPTS: usize = 20;
    const CALLS: i64 = 20;
    let rows: Vec<_> = prompts.iter().take(PROMPTS).map(|id| id.row).collect();
    let served = sqlx::query_scalar!(
        r#"select call.id as "id!"
           from unnest($1::bigint[]) with ordinality as prompt (id, place)
           cross join lateral (
               select id, occurred_at from mem_tool_calls
               where prev_user_prompt_id = prompt.id and success and (input ? 'command' or input ? 'cmd')
               order by occurred_at desc, id desc limit $2) call
           order by prompt.place, call.occurred_at desc, call.id desc"#,
        &rows,
        CALLS,
    )
    .fetch_all(connection)
    .await?;
    Ok(served.into_iter().map(|row| DocumentId { kind: DocumentKind::Call, row }).collect())
}

/// Counts how each command fared wherever the filter looks, this time and others.
async fn count(
    connection: &mut PgConnection,
    commands: &mut [WorkingCommand],
    filter: &Filter,
) -> Result<(), RecallError> {
    /// What was run more often than this is known well enough.
    const MOST: i64 = 500;
    /// So much of a command tells it from almost all others.
    const TELLING_CHARS: usize = 160;
    let spoken: Vec<_> = commands
        .iter()
        .map(|command| analyze::in_a_row(&command.command.chars().take(TELLING_CHARS).collect::<String>()))
        .map(Option::unwrap_or_default)
        .collect();
    let projects = filter.projects.ids();
    let rows = sqlx::query!(
        r#"select spoken.place as "place!", document.document_id as "id!"
           from unnest($1::text[]) with ordinality as spoken (words, place)
           cross join lateral (
               select document_id from mem_search_index
               where document_kind = 'call' and lexemes @@ spoken.words::tsquery
                 and ($2::bigint[] is null or project_id = any($2))
               limit $3) document
           where spoken.words <> ''"#,
        &spoken,
        projects.as_deref(),
        MOST,
    )
    .fetch_all(&mut *connection)
    .await?;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let calls = calls::read(connection, &ids, Inputs::WithoutTexts).await?;
    let calls: HashMap<_, _> = calls.iter().map(|call| (call.line.id.row, call)).collect();
    for (number, command) in commands.iter_mut().enumerate() {
        let of_command = rows.iter().filter(|row| row.place == number as i64 + 1 && row.id != command.call.line.id.row);
        let same = of_command
            .filter_map(|row| calls.get(&row.id))
            .filter(|call| command_of(&call.input).is_some_and(|ran| normalised(&ran) == command.command));
        for call in same {
            if call.failed() {
                command.failed += 1;
            } else {
                command.worked += 1;
                command.last_worked_at = command.last_worked_at.max(call.line.occurred_at);
            }
        }
    }
    Ok(())
}
