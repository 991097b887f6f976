//! Who may do what: whose a request is, and what its token allows.

use std::fmt;
use std::str::FromStr;

use crate::ids::PersonId;

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
