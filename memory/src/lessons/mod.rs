//! Lessons: rules that are to be read before a risky call. `action` says what a call is about to do, `trigger` what fires a lesson,
//! `matching` finds the lessons that a call fires among thousands, `gate` decides what is said of them, `outcome` tells afterwards what
//! came of it, and `mining` proposes lessons from what failed or was corrected. All of these are pure; the rows are `store`'s.

mod action;
mod correction;
mod gate;
mod matching;
mod mining;
mod outcome;
mod trigger;
mod worker;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use action::{Action, Tool};
pub use gate::{Decision, Speech, speak};
pub use matching::{Found, LessonSet, Match};
pub(crate) use mining::{MinedCall, MinedPrompt, Proposal, mine};
pub(crate) use outcome::{Fired, LaterCall, Settled, settle};
pub use trigger::{DEFAULT_THRESHOLD, Field, MAX_PATTERN_CHARS, Trigger, TriggerError};
pub use worker::LearnLessons;

use crate::access::Who;
use crate::ids::{LessonId, PersonId, ProjectId};

/// How bad it is when the rule is not kept, and so what is done: [`Severity::Critical`] stops each such call once,
/// [`Severity::Warning`] the first of a session, [`Severity::Info`] only tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

/// Who wrote a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    Person,
    Agent,
    /// The worker, from the journal.
    Mined,
}

/// Where a lesson stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for a person; fires nothing.
    Proposed,
    Active,
    Retired,
    /// Something else sees to it now, such as a hook or a test: kept as the record, fires no more.
    Enforced,
}

/// A value that one of the lists above does not have.
#[derive(Debug, thiserror::Error)]
#[error("`{value}` is no {what}: expected {known}")]
pub struct UnknownName {
    pub(crate) what: &'static str,
    pub(crate) value: String,
    pub(crate) known: String,
}

macro_rules! names {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::lessons::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|known| known.as_str() == text).ok_or_else(|| $crate::lessons::UnknownName {
                    what: $what,
                    value: text.to_owned(),
                    known: Self::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}
pub(crate) use names;

names!(Severity, "severity", Critical = "critical", Warning = "warning", Info = "info");
names!(Author, "author", Person = "person", Agent = "agent", Mined = "mined");
names!(Status, "status", Proposed = "proposed", Active = "active", Retired = "retired", Enforced = "enforced");

/// A lesson as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lesson {
    pub id: LessonId,
    /// `None`: it holds in every project.
    pub project: Option<ProjectId>,
    /// The project's name.
    pub project_name: Option<String>,
    /// Whose it is, where it holds in every project: then it holds in theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    pub title: String,
    pub rule: String,
    /// What happened when it was not kept.
    pub why: Option<String>,
    pub severity: Severity,
    /// Without one it is only found by a search.
    pub trigger: Option<Trigger>,
    pub author: Author,
    pub status: Status,
    /// What sees to it now, where the status is [`Status::Enforced`].
    pub enforced_by: Option<String>,
    /// Whether it may stop a call: a person wrote it, or allowed it.
    pub may_stop: bool,
    /// Whether a person is asked instead of the agent being told.
    pub asks_person: bool,
    /// The records it rests on, such as `call-12`.
    pub evidence: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Lesson {
    /// Whether it holds where somebody works.
    pub fn holds_for(&self, who: Who, project: Option<ProjectId>) -> bool {
        match self.project {
            Some(own) => project == Some(own),
            None => self.person == who.person(),
        }
    }

    /// Whether it stops calls, instead of only informing.
    pub fn stops(&self) -> bool {
        self.may_stop && self.severity != Severity::Info && self.status == Status::Active
    }
}

/// A lesson to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLesson {
    /// The project's name, remote or folder; `None`: all.
    pub project: Option<String>,
    /// The rule's first line if there is none.
    pub title: Option<String>,
    pub rule: String,
    pub why: Option<String>,
    pub severity: Severity,
    pub trigger: Option<Trigger>,
    pub author: Author,
    pub asks_person: bool,
}

/// A title is a line, and a rule is read in the middle of work.
pub const MAX_TITLE_CHARS: usize = 120;
pub const MAX_RULE_CHARS: usize = 1_500;

/// The first half of a digest: 32 hexadecimal digits.
fn short_hex(digest: &[u8]) -> String {
    let half = digest.first_chunk::<16>().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(half))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A lesson whose pattern is looked for everywhere.
    pub(crate) fn lesson(id: i64, severity: Severity, pattern: &str) -> Lesson {
        let at = "2026-05-01T12:00:00Z".parse().expect("a moment");
        Lesson {
            id: LessonId(id),
            project: None,
            project_name: None,
            person: None,
            title: "Look before you push".to_owned(),
            rule: "Fetch first, and look at what is there.".to_owned(),
            why: None,
            severity,
            trigger: Some(Trigger {
                tool: None,
                pattern: Some(pattern.to_owned()),
                field: None,
                meaning: None,
                threshold: trigger::DEFAULT_THRESHOLD,
            }),
            author: Author::Person,
            status: Status::Active,
            enforced_by: None,
            may_stop: true,
            asks_person: false,
            evidence: Vec::new(),
            created_at: at,
            updated_at: at,
        }
    }
}
