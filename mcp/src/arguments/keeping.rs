//! Arguments of the tools that change what is kept.

use memory::ids::{DocumentId, DocumentKind};
use schemars::JsonSchema;
use serde::Deserialize;

use super::lenient::{self, Flag, Words};
use super::{OfTool, document_id, given, ids, wrong};
use crate::error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgetArguments {
    /// The documents to remove, such as `["call-345", "note-7"]`; at most 50.
    #[serde(default, alias = "id")]
    #[schemars(schema_with = "lenient::ids_schema")]
    ids: Option<Words>,
    /// Instead of ids: list what a search finds, to choose from. A query alone never removes anything.
    query: Option<String>,
    /// Only this repository, for a query.
    pub(crate) project: Option<String>,
    /// Whether only to show what would be removed; true if left out. Removal needs `false` and ids.
    #[serde(default)]
    dry_run: Option<Flag>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateMemoryArguments {
    /// The note, such as `note-7`.
    #[schemars(schema_with = "lenient::text_schema")]
    id: Words,
    /// What it says from now on, whole; as it was if left out.
    pub(crate) text: Option<String>,
    /// Its title from now on; as it was if left out.
    pub(crate) title: Option<String>,
}

impl OfTool for ForgetArguments {
    const TOOL: &'static str = "forget";
}
impl OfTool for UpdateMemoryArguments {
    const TOOL: &'static str = "update_memory";
}

/// What is asked to be forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Doomed {
    /// Shown, or removed.
    Shown(Vec<DocumentId>),
    Removed(Vec<DocumentId>),
    /// Looked for and shown.
    Found(String),
}

impl ForgetArguments {
    pub(crate) fn doomed(&self) -> Result<Doomed, ToolError> {
        let is_dry_run = self.dry_run.is_none_or(|flag| flag.0);
        match (self.ids.as_ref().filter(|ids| !ids.0.is_empty()), given(self.query.as_deref())) {
            (Some(words), None) if is_dry_run => ids(words).map(Doomed::Shown),
            (Some(words), None) => ids(words).map(Doomed::Removed),
            (None, Some(query)) if is_dry_run => Ok(Doomed::Found(query.to_owned())),
            (None, Some(_)) => Err(ToolError::Request {
                problem: "a `query` alone removes nothing: what it finds may be more than is meant",
                hint: "call `forget` with the query and `dry_run` true, choose from what it lists, and give those ids",
            }),
            (None, None) => Err(ToolError::Request {
                problem: "neither `ids` nor `query` is given",
                hint: "give the ids of what is to be removed, or a `query` to look for them",
            }),
            (Some(_), Some(_)) => Err(ToolError::Request {
                problem: "`ids` and `query` are both given",
                hint: "give one of them: a `query` to list what could be meant, `ids` to remove",
            }),
        }
    }
}

impl UpdateMemoryArguments {
    /// The row of the note.
    pub(crate) fn note(&self) -> Result<i64, ToolError> {
        const HINT: &str =
            "give the id of one note, such as `note-7`; prompts and calls are records and stay as they were";
        let text = self.id.0.join(",");
        match document_id(&text) {
            Some(DocumentId { kind: DocumentKind::Note, row }) => Ok(row),
            _ => Err(wrong("id", &text, HINT)),
        }
    }

    /// What is to be changed: at least one of text and title.
    pub(crate) fn changes(self) -> Result<(Option<String>, Option<String>), ToolError> {
        let some = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        match (some(self.text), some(self.title)) {
            (None, None) => Err(ToolError::Request {
                problem: "neither `text` nor `title` is given",
                hint: "give what the note is to say from now on; `forget` removes one",
            }),
            changes => Ok(changes),
        }
    }
}
