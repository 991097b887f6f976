//! The policy of what is kept for how long: limits of age and of size, project by project. What costs most and helps least goes
//! first: whole outputs, then previews of outputs, then calls, and prompts with their answers last. Notes and lessons stay.
//!
//! `stages` holds the SQL. Every transaction holds one session at a time, as the writer does that records its events, so that the
//! two never wait for each other in a ring. How often and by whom this is run belongs to the server and to `gc`.

mod project;
mod stages;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::audit::{self, Act};
use super::{Db, StoreError, outputs};
use crate::settings::Retention;

pub(super) use stages::Amount;

/// Held by whoever applies the policy: two at once would count the same rows twice.
const LOCK: i64 = 0x6167_6d65_6d67_6331;
/// What the audit log calls it.
const ACTION: &str = "retention";

/// What is removed, in the order in which it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Outputs,
    Previews,
    Calls,
    Prompts,
}

impl Stage {
    pub const ALL: [Self; 4] = [Self::Outputs, Self::Previews, Self::Calls, Self::Prompts];
}

/// Whether to do it or only to say what would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Count,
    Remove,
}

/// One kind of thing in one project that is older than a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removal {
    pub project: String,
    pub stage: Stage,
    /// What happened before this goes.
    pub before: DateTime<Utc>,
    pub because: Limit,
    pub rows: i64,
    /// On disk, compressed as they lie there, with their rows in the search index.
    pub bytes: i64,
}

/// Which limit asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Age,
    Size,
}

/// What the policy comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub removals: Vec<Removal>,
    /// Whole outputs that no call referred to any more before anything else was done.
    pub orphaned_outputs: Amount,
    /// Projects that the settings name and the journal does not know.
    pub unknown_projects: Vec<String>,
}

impl Report {
    pub fn bytes(&self) -> i64 {
        self.orphaned_outputs.bytes + self.removals.iter().map(|removal| removal.bytes).sum::<i64>()
    }

    pub fn rows(&self) -> i64 {
        self.orphaned_outputs.rows + self.removals.iter().map(|removal| removal.rows).sum::<i64>()
    }
}

/// Applies the policy, or only counts. `None`: somebody else is applying it right now.
pub async fn apply(db: &Db, policy: &Retention, mode: Mode, actor: &str) -> Result<Option<Report>, StoreError> {
    let Some(_alone) = Alone::take(db).await? else { return Ok(None) };
    run(db, policy, mode, actor).await.map(Some)
}

/// Applies the policy unless that was done within a day, by whomever. `None`: there was nothing to do.
pub async fn apply_daily(db: &Db, policy: &Retention, actor: &str) -> Result<Option<Report>, StoreError> {
    let Some(_alone) = Alone::take(db).await? else { return Ok(None) };
    let is_done = sqlx::query_scalar!(
        r#"select exists (
               select from mem_audit_log where action = $1 and occurred_at > now() - interval '1 day'
           ) as "done!""#,
        ACTION,
    )
    .fetch_one(db)
    .await?;
    if is_done {
        return Ok(None);
    }
    run(db, policy, Mode::Remove, actor).await.map(Some)
}

async fn run(db: &Db, policy: &Retention, mode: Mode, actor: &str) -> Result<Report, StoreError> {
    let now = Utc::now();
    let mut report = Report {
        orphaned_outputs: match mode {
            Mode::Count => outputs::count_orphans(&mut *db.acquire().await?).await?,
            Mode::Remove => outputs::remove_orphans(db).await?,
        },
        ..Report::default()
    };
    let projects = sqlx::query!("select id, name from mem_projects order by id").fetch_all(db).await?;
    let is_known = |wanted: &String| projects.iter().any(|project| project.name.eq_ignore_ascii_case(wanted));
    report.unknown_projects = policy.projects.keys().filter(|name| !is_known(name)).cloned().collect();
    for row in projects {
        let project = project::Project { id: row.id, name: row.name };
        report.removals.extend(project.apply(db, policy, mode, now).await?);
    }
    if mode == Mode::Remove && report.rows() > 0 {
        let details =
            serde_json::json!({ "rows": report.rows(), "bytes": report.bytes(), "removals": report.removals });
        audit::note(db, Act { actor, action: ACTION, subject: None, details }).await?;
    }
    Ok(report)
}

/// Lets Postgres use the space of what was removed again. Takes a while after much was removed, and holds up nobody.
pub async fn vacuum(db: &Db) -> Result<(), StoreError> {
    run_alone(
        db,
        "vacuum (analyze) mem_outputs, mem_tool_calls, mem_user_prompts, mem_session_events, mem_sessions, mem_search_index",
    )
    .await
}

/// Gives the space of what was removed back to the disk. Nobody can read or write a table while it is written anew, and until
/// then it takes up to twice the room.
pub async fn compact(db: &Db) -> Result<(), StoreError> {
    for table in ["mem_outputs", "mem_tool_calls", "mem_user_prompts", "mem_session_events", "mem_search_index"] {
        run_alone(db, &format!("vacuum (full, analyze) {table}")).await?;
    }
    Ok(())
}

/// A statement that may take as long as it takes, and that no transaction may be around.
async fn run_alone(db: &Db, statement: &str) -> Result<(), StoreError> {
    let mut connection = db.acquire().await?;
    // Its limit for statements is changed.
    connection.close_on_drop();
    sqlx::query("set statement_timeout = 0").execute(&mut *connection).await?;
    sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut *connection).await?;
    Ok(())
}

/// The lock, for as long as its connection lives.
struct Alone {
    _connection: sqlx::pool::PoolConnection<sqlx::Postgres>,
}

impl Alone {
    async fn take(db: &Db) -> Result<Option<Self>, StoreError> {
        let mut connection = db.acquire().await?;
        let is_taken = sqlx::query_scalar!(r#"select pg_try_advisory_lock($1) as "taken!""#, LOCK)
            .fetch_one(&mut *connection)
            .await?;
        if !is_taken {
            return Ok(None);
        }
        // The lock ends with the connection, however this ends.
        connection.close_on_drop();
        Ok(Some(Self { _connection: connection }))
    }
}

/// So many days before `now`; 0 is no limit.
fn days_before(now: DateTime<Utc>, days: u32) -> Option<DateTime<Utc>> {
    (days > 0).then(|| now - TimeDelta::days(i64::from(days)))
}
