//! Proposes lessons from the journal, without any model: what failed in the same way in at least two sessions before something else worked, and
//! what a person corrected right after a call. A proposal waits for a person.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::action::{Action, Tool};
use super::correction::is_correction;
use super::{Field, LessonSet, MAX_RULE_CHARS, MAX_TITLE_CHARS};
use crate::shell;

/// A call as mining reads it, in the order of its session.
#[derive(Debug, Clone)]
pub(crate) struct MinedCall {
    pub(crate) id: i64,
    pub(crate) session: i64,
    pub(crate) tool_name: String,
    pub(crate) input: Value,
    /// The error, if it failed.
    pub(crate) error: Option<String>,
    pub(crate) at: DateTime<Utc>,
}

/// A prompt as mining reads it.
#[derive(Debug, Clone)]
pub(crate) struct MinedPrompt {
    pub(crate) id: i64,
    pub(crate) session: i64,
    pub(crate) text: String,
    pub(crate) at: DateTime<Utc>,
}

/// A lesson that the journal speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) title: String,
    pub(crate) rule: String,
    pub(crate) why: String,
    /// The tool, in what the pattern is looked for, and the pattern.
    pub(crate) tool: Tool,
    pub(crate) field: Field,
    pub(crate) pattern: String,
    /// Records such as `call-12`.
    pub(crate) evidence: Vec<String>,
    /// The same for the same finding, so that it is proposed once.
    pub(crate) fingerprint: String,
}

/// In how many sessions something has to fail before it is more than chance.
const MIN_SESSIONS: usize = 2;
/// So many calls later what worked has nothing to do with what failed.
const SOON: usize = 8;
/// So many records are named.
const MAX_EVIDENCE: usize = 10;

/// What the calls and prompts of one project, oldest first, speak for, and no lesson says yet.
pub(crate) fn mine(calls: &[MinedCall], prompts: &[MinedPrompt], known: &LessonSet) -> Vec<Proposal> {
    let calls: Vec<Read<'_>> = calls.iter().filter_map(Read::of).collect();
    let mut proposals = failures(&calls, known);
    proposals.extend(corrections(&calls, prompts, known));
    let mut seen = std::collections::HashSet::new();
    proposals.retain(|proposal| seen.insert(proposal.fingerprint.clone()));
    proposals
}

/// A call that does something, and what.
struct Read<'a> {
    call: &'a MinedCall,
    action: Action,
    /// Of a shell the last program that does more than look, else the file that is changed.
    line: String,
}

impl<'a> Read<'a> {
    fn of(call: &'a MinedCall) -> Option<Self> {
        let action = Action::of(&call.tool_name, &call.input, None);
        let line = match action.tool {
            Tool::Bash => action.spelt.iter().rev().find(|line| !shell::only_looks(line) && !line.starts_with('>'))?,
            Tool::Edit | Tool::Write | Tool::NotebookEdit => action.paths.first()?,
            Tool::Other(_) => return None,
        };
        Some(Self { call, line: line.clone(), action })
    }

    fn field(&self) -> Field {
        if self.action.tool == Tool::Bash { Field::Command } else { Field::Path }
    }

    /// What fires on calls like this one.
    fn pattern(&self) -> String {
        match self.field() {
            Field::Command => program(&self.line),
            _ => format!("(^|/){}$", regex::escape(self.line.rsplit('/').next().unwrap_or(&self.line))),
        }
    }
}

/// The same command failed in several sessions, and in at least one of them something like it worked soon after.
fn failures(calls: &[Read<'_>], known: &LessonSet) -> Vec<Proposal> {
    let mut failed: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let is_failed = |read: &Read<'_>| read.call.error.is_some() && read.field() == Field::Command;
    for (at, read) in calls.iter().enumerate().filter(|(_, read)| is_failed(read)) {
        failed.entry(&read.line).or_default().push(at);
    }
    let mut proposals = Vec::new();
    for (line, places) in failed {
        let mut sessions: Vec<_> = places.iter().map(|at| calls[*at].call.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let works_as_well = calls.iter().any(|read| read.line == line && read.call.error.is_none());
        let worked = places.iter().rev().find_map(|at| worked_after(calls, *at));
        let (true, false, Some(worked)) = (sessions.len() >= MIN_SESSIONS, works_as_well, worked) else { continue };
        if !known.matching(&calls[places[0]].action).is_empty() {
            continue;
        }
        let error = places.iter().rev().find_map(|at| calls[*at].call.error.as_deref()).unwrap_or_default();
        let mut evidence: Vec<_> = places.iter().map(|at| format!("call-{}", calls[*at].call.id)).collect();
        evidence.truncate(MAX_EVIDENCE - 1);
        evidence.push(format!("call-{}", worked.call.id));
        proposals.push(Proposal {
            title: capped(&format!("`{line}` fails here"), MAX_TITLE_CHARS),
            rule: capped(&format!("Use `{}` instead of `{line}`.", worked.line), MAX_RULE_CHARS),
            why: capped(
                &format!(
                    "It failed in {} sessions ({}), and `{}` then worked.",
                    sessions.len(),
                    telling(error),
                    worked.line
                ),
                MAX_RULE_CHARS,
            ),
            tool: Tool::Bash,
            field: Field::Command,
            pattern: exactly(line),
            evidence,
            fingerprint: fingerprint("failure", line),
        });
    }
    proposals
}

/// The first call of the session soon after this one that does the same work otherwise, and worked.
fn worked_after<'a, 'b>(calls: &'a [Read<'b>], at: usize) -> Option<&'a Read<'b>> {
    let failed = &calls[at];
    let later = calls[at + 1..].iter().filter(|read| read.call.session == failed.call.session).take(SOON);
    later
        .filter(|read| read.call.error.is_none())
        .find(|read| read.line != failed.line && shell::are_alike(&read.line, &failed.line))
}

/// A person said no right after a call.
fn corrections(calls: &[Read<'_>], prompts: &[MinedPrompt], known: &LessonSet) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for prompt in prompts.iter().filter(|prompt| is_correction(&prompt.text)) {
        // What was done before the last prompt, that prompt has taken.
        let of_session = prompts.iter().filter(|other| other.session == prompt.session && other.at < prompt.at);
        let since = of_session.map(|other| other.at).max();
        let before = calls.iter().filter(|read| {
            let at = read.call.at;
            read.call.session == prompt.session && at <= prompt.at && since.is_none_or(|since| at >= since)
        });
        let Some(read) = before.max_by_key(|read| (read.call.at, read.call.id)) else { continue };
        if !known.matching(&read.action).is_empty() {
            continue;
        }
        let first = prompt.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        proposals.push(Proposal {
            title: capped(first, MAX_TITLE_CHARS),
            rule: capped(prompt.text.trim(), MAX_RULE_CHARS),
            why: capped(&format!("The user said so after `{}`.", read.line), MAX_RULE_CHARS),
            tool: read.action.tool.clone(),
            field: read.field(),
            pattern: read.pattern(),
            evidence: vec![format!("call-{}", read.call.id), format!("prompt-{}", prompt.id)],
            fingerprint: fingerprint("correction", &format!("{}\n{}", read.line, prompt.text.trim())),
        });
    }
    proposals
}

/// This command and no other.
fn exactly(line: &str) -> String {
    let escaped = regex::escape(line);
    // A long one is known by its beginning.
    let end = escaped.floor_char_boundary(super::MAX_PATTERN_CHARS - 1);
    if end < escaped.len() { program(line) } else { format!("{escaped}$") }
}

/// The program, with the word that says what it does.
fn program(line: &str) -> String {
    let words: Vec<_> = line.split(' ').take(2).filter(|word| !word.starts_with('-')).collect();
    let beginning: String = words.join(" ").chars().take(100).collect();
    format!("{}( |$)", regex::escape(&beginning))
}

fn fingerprint(kind: &str, what: &str) -> String {
    super::short_hex(&Sha256::digest(format!("{kind}\n{what}")))
}

fn telling(error: &str) -> String {
    let line = error.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no message");
    capped(line, 160)
}

fn capped(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Severity;
    use super::super::testing::lesson;
    use super::*;

    fn call(id: i64, session: i64, command: &str, error: Option<&str>) -> MinedCall {
        MinedCall {
            id,
            session,
            tool_name: "Bash".into(),
            input: json!({ "command": command }),
            error: error.map(str::to_owned),
            at: DateTime::from_timestamp(id, 0).unwrap(),
        }
    }

    fn prompt(id: i64, session: i64, text: &str) -> MinedPrompt {
        MinedPrompt { id, session, text: text.into(), at: DateTime::from_timestamp(id, 0).unwrap() }
    }

    fn twice() -> Vec<MinedCall> {
        vec![
            call(1, 1, "cd /w && npm test", Some("Exit code 1\nno such script")),
            call(2, 1, "npm run check", None),
            call(3, 2, "npm test", Some("Exit code 1\nno such script")),
            call(4, 2, "npm test -- --run", None),
        ]
    }

    #[test]
    fn proposes_what_failed_in_two_sessions_before_something_like_it_worked() {
        let proposals = mine(&twice(), &[], &LessonSet::default());
        assert_eq!(proposals.len(), 1, "{proposals:?}");
        let proposal = &proposals[0];
        assert_eq!(proposal.evidence, ["call-1", "call-3", "call-4"]);
        assert!(proposal.rule.contains("npm test --run") && proposal.why.contains("2 sessions (no such script)"));
        assert_eq!(proposal.pattern, "npm test$");
    }

    #[test]
    fn a_single_failure_is_none_and_neither_is_what_works_as_well() {
        assert!(mine(&twice()[2..], &[], &LessonSet::default()).is_empty());
        let mut calls = twice();
        calls.push(call(5, 3, "npm test", None));
        assert!(mine(&calls, &[], &LessonSet::default()).is_empty());
        // Twice in one session is one session.
        let one =
            [call(1, 1, "npm test", Some("x")), call(2, 1, "npm test", Some("x")), call(3, 1, "npm test -w a", None)];
        assert!(mine(&one, &[], &LessonSet::default()).is_empty());
    }

    #[test]
    fn says_nothing_that_a_lesson_says_already() {
        let known = LessonSet::new([(lesson(1, Severity::Info, "npm test"), None)]);
        assert!(mine(&twice(), &[], &known).is_empty());
    }

    #[test]
    fn hears_what_a_person_corrected() {
        let calls = [call(1, 1, "npm install left-pad", None), call(9, 1, "ls", None)];
        let prompts = [prompt(0, 1, "no, don't"), prompt(5, 1, "No, use pnpm here.\nAlways."), prompt(6, 1, "go on")];
        let proposals = mine(&calls, &prompts, &LessonSet::default());
        assert_eq!(proposals.len(), 1, "{proposals:?}");
        assert_eq!(proposals[0].title, "No, use pnpm here.");
        assert_eq!(
            (&*proposals[0].pattern, &*proposals[0].evidence),
            ("npm install( |$)", &["call-1".into(), "prompt-5".into()][..])
        );
    }
}
