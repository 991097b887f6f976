//! A session's digest as text.

use std::fmt::Write as _;

use super::{Failure, SessionFacts, Work};
use crate::analyze::headline;

/// Less than this is told by the prompt itself.
const MIN_CALLS: usize = 2;
/// More are counted.
const MAX_FILES: usize = 12;
const MAX_FAILURES: usize = 8;
const MAX_COMMITS: usize = 8;
/// What is quoted of a prompt or an answer.
const MAX_QUOTED_CHARS: usize = 500;

/// A digest as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    pub title: String,
    pub body: String,
}

/// Tells a session; `None` where too little happened in it.
pub fn compose(facts: &SessionFacts) -> Option<Digest> {
    let first = facts.first_prompt.as_deref()?;
    if facts.calls.len() < MIN_CALLS {
        return None;
    }
    let work = Work::of(&facts.calls);
    let mut lines = vec![format!("Asked first: {}", quoted(first))];
    if let Some(last) = facts.last_prompt.as_deref().filter(|last| *last != first) {
        lines.push(format!("Asked last: {}", quoted(last)));
    }
    if let Some(answer) = &facts.last_answer {
        lines.push(format!("Answered last: {}", quoted(answer)));
    }
    lines.push(told_whole(facts));
    if !work.files.is_empty() {
        let files: Vec<_> = work.files.iter().map(|path| within(facts.folder.as_deref(), path)).collect();
        lines.push(format!("Files changed: {}", listed(&files, MAX_FILES)));
    }
    let (mended, open): (Vec<_>, Vec<_>) = work.failures.iter().partition(|failure| failure.fix.is_some());
    push_failures(&mut lines, "Failed, and what then worked:", &mended, facts.folder.as_deref());
    push_failures(&mut lines, "Failed and did not work any more in this session:", &open, facts.folder.as_deref());
    if !work.commits.is_empty() {
        lines.push(format!("Commits: {}", listed(&work.commits, MAX_COMMITS)));
    }
    Some(Digest { title: headline(&format!("Session: {}", headline(first))), body: lines.join("\n") })
}

fn told_whole(facts: &SessionFacts) -> String {
    let minutes = (facts.last_event_at - facts.started_at).num_minutes();
    let branch = facts.branch.as_deref().map(|branch| format!(", branch {branch}")).unwrap_or_default();
    let reason = facts.end_reason.as_deref().map(|reason| format!(", ended: {reason}")).unwrap_or_default();
    format!("{} prompts, {} calls in {minutes} min, {}{branch}{reason}", facts.prompts, facts.calls.len(), facts.agent)
}

fn push_failures(lines: &mut Vec<String>, heading: &str, failures: &[&Failure], folder: Option<&str>) {
    if failures.is_empty() {
        return;
    }
    lines.push(heading.to_owned());
    lines.extend(failures.iter().take(MAX_FAILURES).map(|failure| told_failure(failure, folder)));
    if failures.len() > MAX_FAILURES {
        lines.push(format!("- and {} more", failures.len() - MAX_FAILURES));
    }
}

fn told_failure(failure: &Failure, folder: Option<&str>) -> String {
    let times = if failure.times > 1 { format!(" {} times", failure.times) } else { String::new() };
    let mut line = format!("- `{}` failed{times}: {}", headline(&failure.command), failure.error);
    if let Some(fix) = &failure.fix {
        let changed: Vec<_> = fix.changed.iter().map(|path| within(folder, path)).collect();
        let after =
            if changed.is_empty() { String::new() } else { format!(", after changes in {}", listed(&changed, 3)) };
        // Writing to a string cannot fail.
        let _ = write!(line, "; then `{}` worked{after}", headline(&fix.command));
    }
    line
}

/// A path as seen from the session's folder.
fn within(folder: Option<&str>, path: &str) -> String {
    let inner = folder.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/'));
    inner.unwrap_or(path).to_owned()
}

fn listed(items: &[String], most: usize) -> String {
    let shown = items.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > most { format!("{shown} and {} more", items.len() - most) } else { shown }
}

/// A text on one line, cut where it is long.
fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_QUOTED_CHARS {
        return line;
    }
    line.chars().take(MAX_QUOTED_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::super::tests::{changed, failed, ran};
    use super::*;

    fn session() -> SessionFacts {
        SessionFacts {
            agent: "claude-code".into(),
            branch: Some("main".into()),
            folder: Some("/srv/w".into()),
            started_at: DateTime::UNIX_EPOCH,
            last_event_at: DateTime::UNIX_EPOCH + TimeDelta::minutes(7),
            end_reason: Some("other".into()),
            prompts: 2,
            first_prompt: Some("Fix the\nmigration test".into()),
            last_prompt: Some("Commit it".into()),
            last_answer: Some("Committed.".into()),
            calls: vec![failed("cargo test", "error: port in use"), changed("/srv/w/tests/db.rs"), ran("cargo test")],
        }
    }

    #[test]
    fn tells_what_was_asked_what_failed_and_what_then_worked() {
        let digest = compose(&session()).unwrap();
        assert_eq!(digest.title, "Session: Fix the");
        assert_eq!(
            digest.body,
            "Asked first: Fix the migration test\nAsked last: Commit it\nAnswered last: Committed.\n\
             2 prompts, 3 calls in 7 min, claude-code, branch main, ended: other\nFiles changed: tests/db.rs\n\
             Failed, and what then worked:\n\
             - `cargo test` failed: error: port in use; then `cargo test` worked, after changes in tests/db.rs"
        );
    }

    #[test]
    fn says_nothing_of_a_session_in_which_little_happened() {
        let mut facts = session();
        facts.calls.truncate(1);
        assert_eq!(compose(&facts), None);
        assert_eq!(compose(&SessionFacts { first_prompt: None, ..session() }), None);
    }
}
