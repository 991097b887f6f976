//! The journal's ids as types of their own, so that a prompt's id is never passed where a session's is wanted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! row_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, sqlx::Type)]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub i64);
    )+};
}

row_id! {
    /// A row of `mem_projects`.
    ProjectId,
    /// A row of `mem_sessions`.
    SessionId,
    /// A row of `mem_user_prompts`.
    PromptId,
    /// A row of `mem_tool_calls`.
    ToolCallId,
    /// A row of `mem_observations`.
    ObservationId,
    /// A row of `mem_observation_queue`.
    JobId,
    /// A row of `mem_backfill_runs`.
    BackfillRunId,
    /// A row of `mem_lessons`.
    LessonId,
    /// A row of `mem_people`.
    PersonId,
    /// A row of `mem_api_tokens`.
    TokenId,
}

/// What kind of thing a document in the search index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    Prompt,
    Call,
    Note,
}

impl DocumentKind {
    pub const ALL: [Self; 3] = [Self::Prompt, Self::Call, Self::Note];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Call => "call",
            Self::Note => "note",
        }
    }
}

impl FromStr for DocumentKind {
    type Err = DocumentIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| DocumentIdError(text.to_owned()))
    }
}

/// A document's name to the outside: `prompt-12`, `call-345` or `note-7`. It names the journal's row, so it stays the
/// same when the index is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentId {
    pub kind: DocumentKind,
    pub row: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no document id: expected `prompt-<number>`, `call-<number>` or `note-<number>`")]
pub struct DocumentIdError(String);

impl fmt::Display for DocumentId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.kind.as_str(), self.row)
    }
}

impl FromStr for DocumentId {
    type Err = DocumentIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || DocumentIdError(text.to_owned());
        let (kind, row) = text.trim().split_once('-').ok_or_else(wrong)?;
        let kind = kind.parse().map_err(|_| wrong())?;
        let row = row.parse().ok().filter(|row| *row > 0).ok_or_else(wrong)?;
        Ok(Self { kind, row })
    }
}

impl Serialize for DocumentId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DocumentId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes() {
        for kind in DocumentKind::ALL {
            let id = DocumentId { kind, row: 42 };
            assert_eq!(id.to_string().parse::<DocumentId>().unwrap(), id);
        }
    }

    #[test]
    fn refuses_other_text_and_says_what_it_got() {
        for wrong in ["", "12", "prompt-", "prompt-x", "prompt--1", "memory-1"] {
            let error = wrong.parse::<DocumentId>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{wrong}`")), "{error}");
        }
    }
}
