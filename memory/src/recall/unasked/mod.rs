//! What an agent is told without having asked: a brief at a session's start, and at most two hits for a prompt. Silence is the rule:
//! what does not help costs the agent's attention.
//!
//! Nothing is told twice in a session (`mem_injections`). Deadlines, switches and what the answer looks like for which agent are the
//! server's.

mod brief;
mod frame;
mod hits;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

pub use brief::{Start, brief};
pub use hits::{is_worth_a_search, prompt_hits};

use super::RecallError;
use crate::access::Who;
use crate::ids::{PersonId, ProjectId, SessionId};
use crate::project::UNFILED_KEY;

/// The session that is to be told something.
#[derive(Debug, Clone)]
pub struct Listener {
    pub agent: String,
    /// The agent's own name of the session; a person's as [`Who::own`] names it.
    pub session: String,
    pub who: Who,
}

/// Where a session stands.
struct Place {
    session: SessionId,
    project: ProjectId,
    /// Its newest prompt, before which everything was known to it.
    last_prompt_at: Option<DateTime<Utc>>,
}

impl Listener {
    /// `None`: nothing is known of the session, or it belongs to no project of whose sessions anything could be told, or to one that
    /// its person may no longer see.
    async fn place(&self, connection: &mut PgConnection) -> Result<Option<Place>, RecallError> {
        let place = sqlx::query_as!(
            Place,
            r#"select session.id as "session: SessionId", session.project_id as "project: ProjectId",
                      (select max(occurred_at) from mem_user_prompts where session_id = session.id) as last_prompt_at
               from mem_sessions session join mem_projects project on project.id = session.project_id
               where agent = $1 and external_id = $2 and project.identity_key <> $3
                 and ($4::bigint is null or project.is_shared or project.person_id = $4)"#,
            self.agent,
            self.session,
            self.who.own(UNFILED_KEY),
            self.who.person() as Option<PersonId>,
        )
        .fetch_optional(connection)
        .await?;
        Ok(place)
    }
}
