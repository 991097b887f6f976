//! The digests of sessions: what a session's rows tell, and the note that is made of it. A digest is derived: a later end of its
//! session writes it anew, and it goes with its session.

use std::time::Duration;

use sqlx::PgConnection;

use super::{Db, StoreError, documents};
use crate::digest::{CallFacts, Digest, SessionFacts};
use crate::event::{Capped, MAX_PROMPT_BYTES};
use crate::ids::{DocumentId, DocumentKind, ProjectId, SessionId};
use crate::queue::{self, NewJob};

/// The queue's name for writing the digest of a session that has ended.
pub const DIGEST_SESSION: &str = "digest_session";

/// A session's transcript, which tells more than its hooks, is read two seconds after its end.
const DELAY: Duration = Duration::from_secs(4);
/// More calls than this are no session of a person; the last of them tell how it ended.
const MAX_CALLS: i64 = 20_000;

/// Has the digest of a session written, in the transaction of what ends it.
pub(crate) async fn enqueue_digest(
    connection: &mut PgConnection,
    agent: &str,
    session: &str,
) -> Result<(), StoreError> {
    let payload = serde_json::json!({ "agent": agent, "session": session });
    let job = NewJob::once(DIGEST_SESSION, payload, format!("{agent}:{session}")).after(DELAY);
    Ok(queue::enqueue(connection, &[job]).await?)
}

/// Reads what a digest needs of a session; `None`: there is no such session any more.
pub async fn session_facts(
    db: &Db,
    agent: &str,
    external_id: &str,
) -> Result<Option<(SessionId, SessionFacts)>, StoreError> {
    let mut connection = db.acquire().await?;
    let Some(row) = sqlx::query!(
        r#"select session.id as "id: SessionId", agent, branch, working_folder, started_at, last_event_at, end_reason,
                  (select count(*) from mem_user_prompts where session_id = session.id and prompt is not null) as "prompts!",
                  (select prompt from mem_user_prompts where session_id = session.id and prompt is not null
                   order by occurred_at, id limit 1) as first_prompt,
                  last.prompt as "last_prompt?", last.answer as "last_answer?"
           from mem_sessions session
           left join lateral (
               select prompt, answer from mem_user_prompts where session_id = session.id and prompt is not null
               order by occurred_at desc, id desc limit 1) last on true
           where agent = $1 and external_id = $2"#,
        agent,
        external_id,
    )
    .fetch_optional(&mut *connection)
    .await?
    else {
        return Ok(None);
    };
    let calls = call_facts(&mut connection, &[row.id.0], MAX_CALLS).await?;
    let facts = SessionFacts {
        agent: row.agent,
        branch: row.branch,
        folder: row.working_folder,
        started_at: row.started_at,
        last_event_at: row.last_event_at,
        end_reason: row.end_reason,
        prompts: row.prompts,
        first_prompt: row.first_prompt,
        last_prompt: row.last_prompt,
        last_answer: row.last_answer,
        calls,
    };
    Ok(Some((row.id, facts)))
}

/// The last calls of sessions, oldest first.
pub(crate) async fn call_facts(
    connection: &mut PgConnection,
    sessions: &[i64],
    limit: i64,
) -> Result<Vec<CallFacts>, StoreError> {
    /// Of a command, a patch or an error: what tells stands at its beginning.
    const MAX_CHARS: i32 = 4_000;
    let rows = sqlx::query!(
        r#"select case when tool_name not ilike '%patch%' then left(coalesce(input->>'command', input->>'cmd'), $3) end as command,
                  case when input ?| array['content', 'contents', 'old_string', 'oldString', 'old_str', 'new_string', 'new_source',
                                           'file_text', 'edits']
                       then coalesce(input->>'file_path', input->>'filePath', input->>'path', input->>'absolute_path',
                                     input->>'notebook_path') end as path,
                  case when tool_name ilike '%patch%'
                       then left(coalesce(input->>'input', input->>'patch', input->>'patchText', input->>'command', input #>> '{}'), $3)
                  end as patch,
                  success as "success!", left(error, $3) as error, commit_sha,
                  case when input->>'command' like '%git%commit%' then left(output_preview, $3) end as commit_output, occurred_at
           from mem_tool_calls where session_id = any($1)
           order by occurred_at desc, id desc limit $2"#,
        sessions,
        limit,
        MAX_CHARS,
    )
    .fetch_all(connection)
    .await?;
    let facts = rows.into_iter().rev().map(|row| CallFacts {
        command: row.command.filter(|command| !command.trim().is_empty()),
        changed: row.path.into_iter().chain(row.patch.iter().flat_map(|patch| patched(patch))).collect(),
        error: (!row.success).then(|| row.error.unwrap_or_default()),
        commit_sha: row.commit_sha,
        commit_output: row.commit_output,
        at: Some(row.occurred_at),
    });
    Ok(facts.collect())
}

/// The files that a patch names: `*** Update File: src/a.rs`.
fn patched(patch: &str) -> impl Iterator<Item = String> + '_ {
    const MARKS: [&str; 3] = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    let lines = patch.lines().filter_map(|line| MARKS.iter().find_map(|mark| line.trim_start().strip_prefix(mark)));
    lines.map(|path| path.trim().to_owned())
}

/// Keeps a session's digest in place of its former one; without one the former goes.
pub async fn keep_digest(db: &Db, session: SessionId, digest: Option<&Digest>) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    let Some(digest) = digest else {
        remove_digest(&mut tx, session).await?;
        return Ok(tx.commit().await?);
    };
    let title = Capped::new(&digest.title, MAX_PROMPT_BYTES).text;
    let body = Capped::new(&digest.body, MAX_PROMPT_BYTES).text;
    // A project may be merged while this runs: its row is waited for. A session that is gone by now gets none.
    let Some(row) = sqlx::query!(
        r#"insert into mem_observations (project_id, session_id, kind, title, body, source, occurred_at, backfill_run_id, person_id)
           select (select coalesce(merged_into, id) from mem_projects where id = session.project_id for key share),
                  session.id, 'digest', $2, $3, 'worker', session.last_event_at, session.backfill_run_id,
                  session.person_id
           from mem_sessions session where id = $1
           for key share of session
           on conflict (session_id) where kind = 'digest' and source = 'worker' do update set
               title = excluded.title, body = excluded.body, occurred_at = excluded.occurred_at,
               project_id = excluded.project_id, backfill_run_id = excluded.backfill_run_id
           returning id, project_id as "project: ProjectId", occurred_at"#,
        session as SessionId,
        title,
        body,
    )
    .fetch_optional(&mut *tx)
    .await?
    else {
        return Ok(());
    };
    let id = DocumentId { kind: DocumentKind::Note, row: row.id };
    // It stands at no place in the session's order: it holds the words of all of it, which must not count for its neighbours.
    let entry = documents::Entry { id, project: row.project, session: None, occurred_at: row.occurred_at };
    documents::index(&mut tx, vec![(entry, format!("{title}\n{body}"))]).await?;
    sqlx::query!(
        "update mem_search_index set occurred_at = $2, project_id = $3 where document_kind = 'note' and document_id = $1",
        row.id,
        row.occurred_at,
        row.project as Option<ProjectId>,
    )
    .execute(&mut *tx)
    .await?;
    Ok(tx.commit().await?)
}

async fn remove_digest(connection: &mut PgConnection, session: SessionId) -> Result<(), StoreError> {
    sqlx::query!(
        "with gone as (
             delete from mem_observations where session_id = $1 and kind = 'digest' and source = 'worker' returning id
         )
         delete from mem_search_index where document_kind = 'note' and document_id in (select id from gone)",
        session as SessionId,
    )
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_files_of_a_patch() {
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Add File: b.txt\n+z\n*** End Patch";
        assert_eq!(patched(patch).collect::<Vec<_>>(), ["src/a.rs", "b.txt"]);
    }
}
