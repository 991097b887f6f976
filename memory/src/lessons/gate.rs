//! What is said of a call that is about to run: whether it is stopped, once, with the lesson as the reason, or a person is asked, or the
//! agent is only told. At most one lesson a call.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::{Author, Lesson, Severity, names};

/// What is done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It does not run; the same call repeated does.
    Stopped,
    /// A person is asked whether it may run.
    Asked,
    /// It runs, and the agent reads the lesson with its result.
    Informed,
}

names!(Decision, "decision", Stopped = "stopped", Asked = "asked", Informed = "informed");

/// What is to be said of a call, if it was not said before.
#[derive(Debug, Clone, PartialEq)]
pub struct Speech {
    pub decision: Decision,
    /// It is said once a session for each of these: of a critical lesson for each action, of any other only once.
    pub once_key: String,
    pub text: String,
}

/// What a lesson says to an action.
pub fn speak(lesson: &Lesson, action: &Action) -> Speech {
    let decision = match lesson.severity {
        Severity::Critical | Severity::Warning if lesson.may_stop && lesson.asks_person => Decision::Asked,
        Severity::Critical | Severity::Warning if lesson.may_stop => Decision::Stopped,
        _ => Decision::Informed,
    };
    let once_key = match (decision, lesson.severity) {
        (Decision::Informed, _) => String::new(),
        (_, Severity::Critical) => action.key.clone(),
        // Not that of having informed: a person may let it stop calls while a session runs.
        _ => "stopped".to_owned(),
    };
    Speech { decision, once_key, text: text(lesson, decision) }
}

fn text(lesson: &Lesson, decision: Decision) -> String {
    let Lesson { id, title, rule, why, severity, author, created_at, .. } = lesson;
    let author = match author {
        Author::Person => "the user",
        Author::Agent => "an agent",
        Author::Mined => "agent-memory, from the journal",
    };
    let mut text = format!("Lesson {id}, {severity}: {title}\n", id = id.0);
    if rule.trim() != title.trim() {
        let _ = writeln!(text, "{}", rule.trim());
    }
    if let Some(why) = why {
        let _ = writeln!(text, "Why: {}", why.trim());
    }
    let _ = writeln!(text, "(Written by {author} on {}.)", created_at.format("%Y-%m-%d"));
    let ending = match decision {
        Decision::Stopped => {
            "The call was stopped before it ran, so that you read this first. Do what the lesson asks instead; if you are sure that this \
             very call is right, repeat the call: it will not be stopped again."
        }
        Decision::Asked => "A person has to decide whether this call may run.",
        Decision::Informed => "It was not stopped for this. Keep it in mind for the next one.",
    };
    text.push_str(ending);
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::lesson;
    use super::*;

    #[track_caller]
    fn check(severity: Severity, may_stop: bool, asks_person: bool, expected: Decision, of_each_action: bool) {
        let action = Action::of("Bash", &json!({ "command": "git push -f" }), None);
        let lesson = Lesson { may_stop, asks_person, ..lesson(7, severity, "git push") };
        let speech = speak(&lesson, &action);
        assert_eq!(speech.decision, expected);
        let once = if expected == Decision::Informed { "" } else { "stopped" };
        assert_eq!(speech.once_key, if of_each_action { &action.key } else { once });
        assert!(speech.text.contains("Lesson 7") && speech.text.contains("2026-05-01"), "{}", speech.text);
        assert_eq!(speech.text.contains("repeat the call"), expected == Decision::Stopped);
    }

    #[test]
    fn only_what_a_person_allowed_stops_a_call() {
        check(Severity::Critical, true, false, Decision::Stopped, true);
        check(Severity::Critical, false, false, Decision::Informed, false);
        check(Severity::Critical, true, true, Decision::Asked, true);
        check(Severity::Warning, true, false, Decision::Stopped, false);
        check(Severity::Warning, false, true, Decision::Informed, false);
        check(Severity::Info, true, false, Decision::Informed, false);
    }
}
