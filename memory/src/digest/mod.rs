//! What a session came to, told from its calls and prompts without any model: what was asked, which files were changed, which
//! commands failed and what then worked, what was committed.
//!
//! Pure functions, but for the queue's job in `worker`: reading the session and keeping the digest is `store::digests`'.

mod commands;
mod compose;
mod worker;

use chrono::{DateTime, Utc};

pub use compose::{Digest, compose};
pub use worker::DigestSession;

use commands::Command;

/// A session as its digest needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionFacts {
    pub agent: String,
    pub branch: Option<String>,
    /// The folder that its paths are told from.
    pub folder: Option<String>,
    pub started_at: DateTime<Utc>,
    pub last_event_at: DateTime<Utc>,
    pub end_reason: Option<String>,
    pub prompts: i64,
    pub first_prompt: Option<String>,
    pub last_prompt: Option<String>,
    pub last_answer: Option<String>,
    /// In the order in which they were made.
    pub calls: Vec<CallFacts>,
}

/// What one call tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallFacts {
    /// What a shell was asked to run.
    pub command: Option<String>,
    /// The files that it changed.
    pub changed: Vec<String>,
    /// Why it failed; `None` for a success.
    pub error: Option<String>,
    pub commit_sha: Option<String>,
    /// What `git commit` said.
    pub commit_output: Option<String>,
    pub at: Option<DateTime<Utc>>,
}

/// What calls came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Work {
    /// Changed files, those that were changed last first.
    pub files: Vec<String>,
    pub failures: Vec<Failure>,
    /// Commits, oldest first: an abbreviated id, and the message where it is known.
    pub commits: Vec<String>,
}

/// A command that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub command: String,
    pub times: u32,
    /// The line of its last error that says most.
    pub error: String,
    /// When it failed last.
    pub at: Option<DateTime<Utc>>,
    /// `None`: it has not run well since.
    pub fix: Option<Fix>,
    parsed: Command,
    /// Files that were changed since it failed.
    changed: Vec<String>,
}

/// What worked after a failure.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    pub command: String,
    /// Files that were changed in between, the last first.
    pub changed: Vec<String>,
}

impl Work {
    /// Reads calls in their order.
    pub fn of(calls: &[CallFacts]) -> Self {
        let mut work = Self::default();
        for call in calls {
            work.changed(call);
            work.committed(call);
            let Some(command) = &call.command else { continue };
            let Some(parsed) = Command::parse(command) else { continue };
            match &call.error {
                Some(error) => work.failed(call, parsed, error),
                None => work.succeeded(command, &parsed),
            }
        }
        work
    }

    /// What failed and has not run well since.
    pub fn open_failures(&self) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(|failure| failure.fix.is_none())
    }

    fn changed(&mut self, call: &CallFacts) {
        if call.error.is_some() {
            return;
        }
        for path in &call.changed {
            let open = self.failures.iter_mut().filter(|failure| failure.fix.is_none());
            for files in open.map(|failure| &mut failure.changed).chain([&mut self.files]) {
                files.retain(|known| known != path);
                files.insert(0, path.clone());
            }
        }
    }

    fn committed(&mut self, call: &CallFacts) {
        let told = call.commit_output.as_deref().and_then(commands::commit_of);
        let commit = match (told, call.commit_sha.as_deref()) {
            (Some(told), _) => told,
            (None, Some(sha)) => sha.chars().take(10).collect(),
            (None, None) => return,
        };
        if !self.commits.contains(&commit) {
            self.commits.push(commit);
        }
    }

    fn failed(&mut self, call: &CallFacts, parsed: Command, error: &str) {
        // Who looks for something and does not find it has learned something.
        if parsed.only_looks() {
            return;
        }
        let error = commands::telling_line(error);
        let command = call.command.clone().unwrap_or_default();
        let known = self.failures.iter_mut().find(|failure| failure.fix.is_none() && failure.parsed == parsed);
        if let Some(failure) = known {
            failure.times += 1;
            failure.error = error;
            failure.command = command;
            failure.at = call.at;
            return;
        }
        self.failures.push(Failure { command, times: 1, error, at: call.at, fix: None, parsed, changed: Vec::new() });
    }

    fn succeeded(&mut self, command: &str, parsed: &Command) {
        for failure in self.failures.iter_mut().filter(|failure| failure.fix.is_none()) {
            if parsed.makes_good(&failure.parsed) {
                let changed = std::mem::take(&mut failure.changed);
                failure.fix = Some(Fix { command: command.to_owned(), changed });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn ran(command: &str) -> CallFacts {
        CallFacts { command: Some(command.into()), ..CallFacts::default() }
    }

    pub(super) fn failed(command: &str, error: &str) -> CallFacts {
        CallFacts { error: Some(error.into()), ..ran(command) }
    }

    pub(super) fn changed(path: &str) -> CallFacts {
        CallFacts { changed: vec![path.into()], ..CallFacts::default() }
    }

    #[test]
    fn tells_what_worked_after_a_failure_and_what_was_changed_in_between() {
        let work = Work::of(&[
            changed("src/early.rs"),
            failed("cargo test migration", "Exit code 101\nerror: port 5432 is in use"),
            changed("tests/db.rs"),
            failed("cd /srv/w && cargo test migration 2>&1 | tail -3", "Exit code 101"),
            changed("src/db.rs"),
            ran("cargo test migration"),
        ]);
        assert_eq!(work.files, ["src/db.rs", "tests/db.rs", "src/early.rs"]);
        let [failure] = &work.failures[..] else { panic!("{:?}", work.failures) };
        assert_eq!(failure.times, 2);
        let fix = failure.fix.as_ref().unwrap();
        assert_eq!(
            (fix.command.as_str(), fix.changed.join(" ").as_str()),
            ("cargo test migration", "src/db.rs tests/db.rs")
        );
        assert_eq!(work.open_failures().count(), 0);
    }

    #[test]
    fn a_failure_is_open_until_its_command_runs_well() {
        let calls = [failed("make widgets", "no rule"), ran("make gadgets"), failed("ls nowhere", "no such file")];
        let work = Work::of(&calls);
        let open: Vec<_> = work.open_failures().map(|failure| failure.command.as_str()).collect();
        assert_eq!(open, ["make widgets"]);
        assert_eq!(Work::of(&[&calls[..], &[ran("make")]].concat()).open_failures().count(), 0);
        let again = Work::of(&[failed("make", "one"), ran("make"), failed("make", "two")]);
        assert_eq!(again.open_failures().map(|failure| failure.error.as_str()).collect::<Vec<_>>(), ["two"]);
    }

    #[test]
    fn names_each_commit_once() {
        let output = Some("[main 1a2b3c4] Take any port\n 1 file changed".to_owned());
        let commit = CallFacts { commit_output: output, commit_sha: Some("1a2b3c4".into()), ..ran("git commit -am x") };
        let bare = CallFacts { commit_sha: Some("0123456789abcdef".into()), ..CallFacts::default() };
        assert_eq!(Work::of(&[commit.clone(), commit, bare]).commits, ["1a2b3c4 Take any port", "0123456789"]);
    }
}
