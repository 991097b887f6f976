//! What a backup is called: when it was made, by whom, and how it is locked. The name alone says whether it may be rotated away.

use std::fmt::{self, Display};
use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime, SubsecRound, Utc};
use serde::Serialize;

const BEGINNING: &str = "agent-memory-";
const TIME: &str = "%Y%m%dT%H%M%SZ";
const PLAIN: &str = ".dump";
const ENCRYPTED: &str = ".dump.age";
const LABEL_LIMIT: usize = 40;

/// Who wanted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A job that makes them regularly: rotated.
    Scheduled,
    /// A person, or a command before something risky: never removed by us.
    Manual,
}

impl Origin {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Manual => "manual",
        }
    }
}

impl Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A word of the person's own in a name: small letters, digits and hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Label(String);

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() || text.len() > LABEL_LIMIT || !text.chars().all(is_allowed) {
            return Err(format!("a label is 1 to {LABEL_LIMIT} small letters, digits and hyphens, not `{text}`"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether it can be read without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Locking {
    Plain,
    Encrypted,
}

/// A backup's name in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// To the second.
    pub made_at: DateTime<Utc>,
    pub origin: Origin,
    pub label: Option<Label>,
    pub locking: Locking,
}

impl Name {
    pub fn new(made_at: DateTime<Utc>, origin: Origin, label: Option<Label>, locking: Locking) -> Self {
        Self { made_at: made_at.trunc_subsecs(0), origin, label, locking }
    }

    /// The parts of a file's name, or `None` where it is no backup's.
    pub fn parse(file: &str) -> Option<Self> {
        let (rest, locking) = match file.strip_suffix(ENCRYPTED) {
            Some(rest) => (rest, Locking::Encrypted),
            None => (file.strip_suffix(PLAIN)?, Locking::Plain),
        };
        let (time, rest) = rest.strip_prefix(BEGINNING)?.split_once('-')?;
        let made_at = NaiveDateTime::parse_from_str(time, TIME).ok()?.and_utc();
        let (origin, label) = match rest.split_once('-') {
            Some((origin, label)) => (origin, Some(label.parse().ok()?)),
            None => (rest, None),
        };
        let origin = [Origin::Scheduled, Origin::Manual].into_iter().find(|known| known.as_str() == origin)?;
        Some(Self { made_at, origin, label, locking })
    }
}

impl Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{BEGINNING}{}-{}", self.made_at.format(TIME), self.origin)?;
        if let Some(label) = &self.label {
            write!(formatter, "-{label}")?;
        }
        formatter.write_str(match self.locking {
            Locking::Plain => PLAIN,
            Locking::Encrypted => ENCRYPTED,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_all_of_itself_and_is_read_back() {
        let made_at = "2026-03-02T10:15:00.7Z".parse().unwrap();
        let check = |origin, label: Option<&str>, locking, expected: &str| {
            let name = Name::new(made_at, origin, label.map(|label| label.parse().unwrap()), locking);
            assert_eq!(name.to_string(), expected);
            assert_eq!(Name::parse(expected), Some(name));
        };
        check(Origin::Scheduled, None, Locking::Plain, "agent-memory-20260302T101500Z-scheduled.dump");
        check(Origin::Manual, None, Locking::Encrypted, "agent-memory-20260302T101500Z-manual.dump.age");
        let labelled = "agent-memory-20260302T101500Z-manual-before-the-move.dump";
        check(Origin::Manual, Some("before-the-move"), Locking::Plain, labelled);
    }

    #[test]
    fn takes_nothing_else_for_a_backup() {
        for file in [
            ".tmp-1-agent-memory-20260302T101500Z-manual.dump",
            "agent-memory-20260302T101500Z-manual.dump.sha256",
            "agent-memory-20261302T101500Z-manual.dump",
            "agent-memory-20260302T101500Z-weekly.dump",
            "agent-memory-20260302T101500Z.dump",
            "notes.dump",
        ] {
            assert_eq!(Name::parse(file), None, "{file}");
        }
    }

    #[test]
    fn a_label_cannot_leave_the_folder() {
        for label in ["", "../x", "A", "a b", &"a".repeat(41)] {
            assert!(label.parse::<Label>().is_err(), "{label}");
        }
    }
}
