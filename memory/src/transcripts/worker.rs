//! The queue's job that reads the transcript of a session that has ended: what hooks do not say, and what they missed.

use std::path::{Path, PathBuf};

use super::{Context, Places, TakeInError, TakenIn, find, take_in};
use crate::event::Agent;
use crate::project::{Checkout, ProjectPolicy};
use crate::queue::{Handler, Job, Outcome};
use crate::store::{self, Db, ProjectCache, READ_TRANSCRIPT, StoreError};

/// Reads the transcripts that jobs name, where this machine has them.
pub struct ReadTranscript {
    pub db: Db,
    pub projects: ProjectPolicy,
}

impl Handler for ReadTranscript {
    const KIND: &'static str = READ_TRANSCRIPT;
    /// A long one must not outlast the lease together with others.
    const BATCH: i64 = 1;

    async fn run(&self, jobs: &[Job]) -> Outcome {
        for job in jobs {
            let Some(named) = Named::of(job) else { return Outcome::Failed("the job names no transcript".to_owned()) };
            match self.read(&named).await {
                Ok(taken) => {
                    tracing::debug!(
                        session.agent = named.agent.as_str(),
                        inserted = taken.inserted.total(),
                        amended = taken.amended,
                        known = taken.known,
                        skipped_lines = taken.read.skipped_lines(),
                        "read the transcript of a session that has ended"
                    );
                    // Its digest may have been written before.
                    if (taken.inserted.total() > 0 || taken.amended > 0)
                        && let Err(error) = self.digest_again(&named).await
                    {
                        return Outcome::NotReady(error.to_string());
                    }
                }
                Err(TakeInError::Store(error)) if error.is_transient() => return Outcome::NotReady(error.to_string()),
                Err(error) => return Outcome::Failed(format!("{:#}", Told(&error))),
            }
        }
        Outcome::Done
    }
}

/// What a job's payload says.
struct Named {
    agent: Agent,
    session: String,
    path: PathBuf,
}

impl Named {
    fn of(job: &Job) -> Option<Self> {
        let text = |name: &str| job.payload.get(name)?.as_str();
        Some(Self {
            agent: text("agent")?.parse().ok()?,
            session: text("session")?.to_owned(),
            path: PathBuf::from(text("path")?),
        })
    }
}

impl ReadTranscript {
    async fn digest_again(&self, named: &Named) -> Result<(), StoreError> {
        let mut connection = self.db.acquire().await?;
        let (agent, session) = (named.agent.as_str(), named.session.as_str());
        store::enqueue_digest(&mut connection, agent, session).await?;
        store::enqueue_learning(&mut connection, agent, session).await
    }

    async fn read(&self, named: &Named) -> Result<TakenIn, TakeInError> {
        let mut taken = TakenIn::default();
        // The server may run in a container, or on another machine than the agent.
        let Some(file) = readable(named.agent, &named.path) else {
            tracing::debug!(session.agent = named.agent.as_str(), "a session's transcript is not readable here");
            return Ok(taken);
        };
        let mut files = vec![file];
        if named.agent == Agent::ClaudeCode {
            files.extend(find::subagents_of(&named.path));
        }
        let mut context = Context::new(named.agent, Places::of_this_machine(wanted));
        context.session = Some(named.session.clone());
        let mut projects = ProjectCache::new(self.projects.clone());
        for file in &files {
            let (returned, outcome) = take_in(&self.db, file, context, &mut projects).await;
            context = returned;
            match outcome {
                Err(TakeInError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                outcome => taken += &outcome?,
            }
        }
        Ok(taken)
    }
}

/// The hook was let through, so its session is wanted.
#[allow(clippy::unnecessary_wraps, reason = "it is one judge among others")]
fn wanted(_: &Checkout) -> Result<(), super::Unwanted> {
    Ok(())
}

/// Only what is itself a file with a transcript's name: the path came from outside.
fn readable(agent: Agent, path: &Path) -> Option<super::TranscriptFile> {
    let has_name = path.extension().is_some_and(|ending| ending == "jsonl" || ending == "json");
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|file| file.is_file());
    if has_name && is_file && path.is_absolute() { find::of_path(agent, path) } else { None }
}

/// An error with its causes in one line.
struct Told<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Told<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(out, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
