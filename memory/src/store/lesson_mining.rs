//! What lessons are mined from, and the proposals that came of it.

use std::time::Duration;

use sqlx::PgConnection;

use super::lessons::{Kept, LessonError, LessonFilter, Said, insert};
use super::{Db, StoreError};
use crate::ids::{LessonId, ProjectId};
use crate::lessons::{
    Author, DEFAULT_THRESHOLD, LessonSet, MinedCall, MinedPrompt, Proposal, Severity, Status, Trigger, mine,
};
use crate::queue::{self, NewJob};

/// The queue's name for learning from a session that has ended, and from its project.
pub const LEARN_LESSONS: &str = "learn_lessons";

/// After the transcript, which may tell that a call failed, and the digest.
const DELAY: Duration = Duration::from_secs(5);
/// A project's sessions are mined together: many may end at once, as in a backfill.
const PROJECT_DELAY: Duration = Duration::from_secs(10);
/// What is older says little about how things are.
const DAYS: i32 = 180;
const MAX_CALLS: i64 = 20_000;
const MAX_PROMPTS: i64 = 5_000;

/// Has a session learnt from, in the transaction of what ends it.
pub(crate) async fn enqueue_learning(
    connection: &mut PgConnection,
    agent: &str,
    session: &str,
) -> Result<(), StoreError> {
    let payload = serde_json::json!({ "agent": agent, "session": session });
    let job = NewJob::once(LEARN_LESSONS, payload, format!("{agent}:{session}")).after(DELAY);
    Ok(queue::enqueue(connection, &[job]).await?)
}

/// Has the project of a session mined, once for all its sessions that end about now. A session that was removed has none.
pub(crate) async fn enqueue_mining(db: &Db, agent: &str, session: &str) -> Result<(), StoreError> {
    let project = sqlx::query_scalar!(
        "select project_id from mem_sessions where agent = $1 and external_id = $2",
        agent,
        session,
    )
    .fetch_optional(db)
    .await?;
    let Some(project) = project else { return Ok(()) };
    let payload = serde_json::json!({ "project": project });
    let job = NewJob::once(LEARN_LESSONS, payload, format!("project:{project}")).after(PROJECT_DELAY);
    let mut connection = db.acquire().await?;
    Ok(queue::enqueue(&mut connection, &[job]).await?)
}

/// Mines a project, and keeps what no lesson says yet as proposals. Returns those that are new.
pub async fn propose_lessons(db: &Db, project: ProjectId) -> Result<Vec<LessonId>, LessonError> {
    let calls = sqlx::query!(
        r#"select call.id, call.session_id as "session!", tool_name, success as "success!", left(error, 4000) as error, call.occurred_at,
                  -- What is written into files is long and tells nothing here.
                  input - array['content', 'contents', 'new_string', 'newString', 'new_str', 'old_string', 'oldString', 'old_str',
                                'new_source', 'file_text', 'edits'] as "input!"
           from mem_tool_calls call join mem_sessions session on session.id = call.session_id
           where session.project_id = $1 and call.occurred_at > now() - make_interval(days => $2)
             and jsonb_typeof(input) = 'object' and input ?| array['command', 'cmd', 'file_path', 'filePath', 'path', 'absolute_path', 'notebook_path']
           order by call.occurred_at desc, call.id desc limit $3"#,
        project.0,
        DAYS,
        MAX_CALLS,
    )
    .fetch_all(db)
    .await
    .map_err(StoreError::from)?;
    let prompts = sqlx::query!(
        r#"select prompt.id, session_id as "session!", prompt as "prompt!", occurred_at
           from mem_user_prompts prompt join mem_sessions session on session.id = prompt.session_id
           where session.project_id = $1 and prompt is not null and occurred_at > now() - make_interval(days => $2)
           order by occurred_at desc, prompt.id desc limit $3"#,
        project.0,
        DAYS,
        MAX_PROMPTS,
    )
    .fetch_all(db)
    .await
    .map_err(StoreError::from)?;
    // Of every status: what was retired is not proposed again.
    let filter = LessonFilter { project: Some(project), ..LessonFilter::default() };
    let known = super::lessons::list(db, &filter).await?;
    let calls: Vec<_> = calls
        .into_iter()
        .rev()
        .map(|row| MinedCall {
            id: row.id,
            session: row.session,
            tool_name: row.tool_name,
            input: row.input,
            error: (!row.success).then(|| row.error.unwrap_or_default()),
            at: row.occurred_at,
        })
        .collect();
    let prompts: Vec<_> = prompts
        .into_iter()
        .rev()
        .map(|row| MinedPrompt { id: row.id, session: row.session, text: row.prompt, at: row.occurred_at })
        .collect();
    let proposals = tokio::task::spawn_blocking(move || {
        let known = LessonSet::new(known.into_iter().map(|lesson| (lesson, None)));
        mine(&calls, &prompts, &known)
    })
    .await
    .unwrap_or_default();
    let mut new = Vec::new();
    for proposal in proposals {
        new.extend(keep(db, project, proposal).await?);
    }
    Ok(new)
}

async fn keep(db: &Db, project: ProjectId, proposal: Proposal) -> Result<Option<LessonId>, LessonError> {
    let trigger = Trigger {
        tool: Some(proposal.tool.as_str().to_owned()),
        pattern: Some(proposal.pattern),
        field: Some(proposal.field),
        meaning: None,
        threshold: DEFAULT_THRESHOLD,
    };
    // A command that would fire on everything teaches nothing.
    let Ok(trigger) = trigger.checked() else { return Ok(None) };
    let kept = Kept {
        person: None,
        project: Some(project),
        said: Said::of(Some(&proposal.title), &proposal.rule, Some(&proposal.why))?,
        severity: Severity::Warning,
        trigger: Some(trigger),
        author: Author::Mined,
        status: Status::Proposed,
        may_stop: false,
        asks_person: false,
        evidence: proposal.evidence,
        fingerprint: Some(proposal.fingerprint),
    };
    let mut connection = db.acquire().await?;
    Ok(insert(&mut connection, kept).await?)
}
