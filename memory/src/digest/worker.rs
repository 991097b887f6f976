//! The queue's job that writes the digest of a session that has ended.

use crate::queue::{Handler, Job, Outcome};
use crate::store::{self, DIGEST_SESSION, Db, StoreError};

/// Writes the digests of the sessions that jobs name.
pub struct DigestSession {
    pub db: Db,
}

impl Handler for DigestSession {
    const KIND: &'static str = DIGEST_SESSION;
    const BATCH: i64 = 8;

    async fn run(&self, jobs: &[Job]) -> Outcome {
        for job in jobs {
            let text = |name: &str| job.payload.get(name)?.as_str();
            let (Some(agent), Some(session)) = (text("agent"), text("session")) else {
                return Outcome::Failed("the job names no session".to_owned());
            };
            match self.digest(agent, session).await {
                Ok(()) => {}
                Err(error) if error.is_transient() => return Outcome::NotReady(error.to_string()),
                Err(error) => return Outcome::Failed(error.to_string()),
            }
        }
        Outcome::Done
    }
}

impl DigestSession {
    async fn digest(&self, agent: &str, session: &str) -> Result<(), StoreError> {
        // It may have been removed since it ended.
        let Some((id, facts)) = store::session_facts(&self.db, agent, session).await? else { return Ok(()) };
        let digest = super::compose(&facts);
        store::keep_digest(&self.db, id, digest.as_ref()).await
    }
}
