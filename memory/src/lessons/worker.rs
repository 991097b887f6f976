//! The queue's job that learns: from a session that has ended, what came of the lessons that fired in it; from its project, which new ones it
//! speaks for.

use serde_json::Value;

use super::settle;
use crate::ids::ProjectId;
use crate::queue::{Handler, Job, Outcome};
use crate::store::{self, Db, LEARN_LESSONS, LessonError};

/// Learns from the sessions and projects that jobs name.
pub struct LearnLessons {
    pub db: Db,
}

impl Handler for LearnLessons {
    const KIND: &'static str = LEARN_LESSONS;
    const BATCH: i64 = 4;

    async fn run(&self, jobs: &[Job]) -> Outcome {
        for job in jobs {
            match self.learn(job).await {
                Ok(()) => {}
                Err(LessonError::Store(error)) if error.is_transient() => return Outcome::NotReady(error.to_string()),
                Err(error) => return Outcome::Failed(error.to_string()),
            }
        }
        Outcome::Done
    }
}

impl LearnLessons {
    async fn learn(&self, job: &Job) -> Result<(), LessonError> {
        let text = |name: &str| job.payload.get(name)?.as_str();
        if let (Some(agent), Some(session)) = (text("agent"), text("session")) {
            let unsettled = store::unsettled_lessons(&self.db, agent, session).await?;
            let settled: Vec<_> = unsettled.iter().map(|(fired, later)| settle(fired, later)).collect();
            store::keep_settled(&self.db, &settled).await?;
            store::enqueue_mining(&self.db, agent, session).await?;
        }
        if let Some(project) = job.payload.get("project").and_then(Value::as_i64) {
            let new = store::propose_lessons(&self.db, ProjectId(project)).await?;
            if !new.is_empty() {
                tracing::info!(lesson.count = new.len(), "lessons wait for a person");
            }
        }
        Ok(())
    }
}
