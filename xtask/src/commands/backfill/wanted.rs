//! What of the past is wanted: since when, of which project, and nothing of what must not be recorded.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use memory::event::Agent;
use memory::home::Home;
use memory::ids::BackfillRunId;
use memory::project::{Checkout, Exclusions, ProjectPolicy, normalise_remote};
use memory::transcripts::{self, Places, TranscriptFile, Unwanted};

use crate::cli::BackfillArgs;
use crate::output::HintExt;

#[derive(Debug, Clone)]
pub(super) struct Wanted {
    since: Option<DateTime<Utc>>,
    project: Option<String>,
    exclusions: Exclusions,
    policy: ProjectPolicy,
}

impl Wanted {
    pub(super) fn of(arguments: &BackfillArgs, home: &Home) -> Result<Self> {
        let since = arguments.since.as_deref().map(date).transpose()?;
        let exclusions = Exclusions::load(&home.config());
        if let Some(line) = exclusions.misunderstood.first() {
            bail!("the list of what must not be recorded has a line that is not understood: `{line}`");
        }
        let policy = ProjectPolicy::of_process(arguments.worktrees);
        Ok(Self { since, project: arguments.project.clone(), exclusions, policy })
    }

    /// Whether a file can hold anything from that time on: what was written last is its newest line.
    pub(super) fn may_hold(&self, file: &TranscriptFile) -> bool {
        match (self.since, file.modified_at) {
            (Some(since), Some(modified_at)) => modified_at >= SystemTime::from(since),
            _ => true,
        }
    }

    /// Whether a note of another memory is wanted, which knows its project by the name alone.
    pub(super) fn wants_note(&self, project: Option<&str>, at: DateTime<Utc>) -> bool {
        let is_late = self.since.is_none_or(|since| at >= since);
        let is_of_project = self
            .project
            .as_deref()
            .is_none_or(|wanted| project.is_some_and(|project| project.eq_ignore_ascii_case(wanted)));
        is_late && is_of_project
    }

    pub(super) fn policy(&self) -> ProjectPolicy {
        self.policy.clone()
    }

    pub(super) fn context(&self, agent: Agent, run: Option<BackfillRunId>) -> transcripts::Context {
        let wanted = self.clone();
        let mut context =
            transcripts::Context::new(agent, Places::of_this_machine(move |checkout| wanted.judge(checkout)));
        context.run = run;
        context.since = self.since;
        context
    }

    fn judge(&self, checkout: &Checkout) -> Result<(), Unwanted> {
        let folder = checkout.folder.as_deref().map(Path::new);
        let remote = checkout.git.as_ref().and_then(|git| git.remote_url.as_deref());
        if folder.is_some_and(|folder| self.exclusions.excludes(folder, remote)) {
            return Err(Unwanted::Excluded);
        }
        match &self.project {
            Some(name) if !is_called(checkout, &self.policy, name) => Err(Unwanted::OtherProject),
            _ => Ok(()),
        }
    }
}

/// Whether a person would call that project so: by its name, its remote, or a folder that it lies in.
fn is_called(checkout: &Checkout, policy: &ProjectPolicy, name: &str) -> bool {
    let project = checkout.project(policy);
    if project.name.eq_ignore_ascii_case(name) || project.key == name {
        return true;
    }
    if project.remote_url.is_some() && project.remote_url == normalise_remote(name) {
        return true;
    }
    let path = std::path::absolute(name).unwrap_or_else(|_| name.into());
    name.contains(['/', '\\', '.'])
        && [checkout.folder.as_deref(), project.root.as_deref()]
            .into_iter()
            .flatten()
            .any(|folder| Path::new(folder).starts_with(&path))
}

/// A day, as its beginning in UTC, or a moment.
fn date(text: &str) -> Result<DateTime<Utc>> {
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    DateTime::parse_from_rfc3339(text)
        .map(|moment| moment.to_utc())
        .with_context(|| format!("`{text}` is no date"))
        .hint("write it as 2026-11-29 or 2026-11-29T17:03:00Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout(folder: &str) -> Checkout {
        Checkout { folder: Some(folder.to_owned()), git: None }
    }

    fn check(name: &str, folder: &str, expected: bool) {
        assert_eq!(is_called(&checkout(folder), &ProjectPolicy::default(), name), expected, "{name} {folder}");
    }

    #[test]
    fn knows_a_project_by_its_name_and_by_a_folder_around_it() {
        check("widgets", "/src/widgets", true);
        check("Widgets", "/src/widgets", true);
        check("/src", "/src/widgets", true);
        check("/src/wid", "/src/widgets", false);
        check("gadgets", "/src/widgets", false);
    }

    #[test]
    fn reads_days_and_moments_and_says_how_to_write_them() {
        assert_eq!(date("2026-11-29").unwrap().to_rfc3339(), "2026-11-29T00:00:00+00:00");
        assert_eq!(date("2026-11-29T17:03:00+01:00").unwrap().to_rfc3339(), "2026-11-29T16:03:00+00:00");
        assert!(date("yesterday").is_err());
    }
}
