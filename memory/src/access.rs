//! Who may do what: whose a request is, and what its token allows.

use std::fmt;
use std::str::FromStr;

use crate::ids::{PersonId, ProjectId};

/// Whose agent recorded something, or who asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Who {
    /// The installation's own user, who sees everything.
    #[default]
    Operator,
    /// One of several people on one server, who sees what is shared and what is their own.
    Person(PersonId),
}

impl Who {
    pub const fn of_person(person: Option<PersonId>) -> Self {
        match person {
            Some(person) => Self::Person(person),
            None => Self::Operator,
        }
    }

    /// As rows say it.
    pub const fn person(self) -> Option<PersonId> {
        match self {
            Self::Operator => None,
            Self::Person(person) => Some(person),
        }
    }

    /// What names something in a table that all share, such as a session or a folder, as this one's own. No two people's names meet,
    /// and none meets the operator's, whatever an agent calls what is its own.
    pub fn own(self, name: &str) -> String {
        match self {
            Self::Operator => name.to_owned(),
            Self::Person(PersonId(person)) => format!("{NAMESPACE}{person}/{name}"),
        }
    }
}

/// How the names of what is a person's own begin.
const NAMESPACE: &str = "person:";

/// A name as its owner knows it: see [`Who::own`].
pub fn plain_name(name: &str) -> &str {
    let rest = name.strip_prefix(NAMESPACE).and_then(|rest| rest.split_once('/'));
    match rest {
        Some((person, plain)) if !person.is_empty() && person.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}

/// Where a question looks. Without being told it looks nowhere: what is forgotten to be said must not show what is not to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projects {
    /// Everywhere, also at what belongs to no project.
    All,
    These(Vec<ProjectId>),
}

impl Default for Projects {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

impl Projects {
    pub fn holds(&self, project: Option<ProjectId>) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => project.is_some_and(|project| these.contains(&project)),
        }
    }

    /// As SQL takes it: null is everywhere.
    pub(crate) fn ids(&self) -> Option<Vec<i64>> {
        match self {
            Self::All => None,
            Self::These(these) => Some(these.iter().map(|id| id.0).collect()),
        }
    }
}

/// What a token allows. One does not contain the other: a token has each scope that it is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Hand over events, and be told what is told unasked: what a hook does.
    Ingest,
    /// Find, save, change and forget: what an agent's tools do.
    Recall,
    /// See the numbers, make and revoke tokens, read the log of what was done.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Ingest, Self::Recall, Self::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Recall => "recall",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A scope that does not exist.
#[derive(Debug, Clone, thiserror::Error)]
#[error("there is no scope `{0}`; there are ingest, recall and admin")]
pub struct UnknownScope(String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_names_of_people_apart_and_knows_them_again() {
        let ada = Who::Person(PersonId(7));
        assert_eq!(ada.own("folder:/w"), "person:7/folder:/w");
        assert_eq!(Who::Person(PersonId(8)).own("person:7/s"), "person:8/person:7/s");
        assert_eq!(Who::Operator.own("folder:/w"), "folder:/w");
        assert_eq!(plain_name(&ada.own("folder:/w")), "folder:/w");
        for plain in ["folder:/w", "person:x/w", "person:/w", "person:7"] {
            assert_eq!(plain_name(plain), plain);
        }
    }

    #[test]
    fn looks_nowhere_where_nobody_says_where() {
        assert!(!Projects::default().holds(Some(ProjectId(1))) && !Projects::default().holds(None));
        assert_eq!(Projects::default().ids(), Some(Vec::new()));
        assert!(Projects::All.holds(None) && Projects::All.ids().is_none());
    }
}
