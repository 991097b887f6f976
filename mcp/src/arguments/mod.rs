//! The tools' arguments: their schemas, and reading them as models write them.
//!
//! Names are those of the Python agent-memory and of claude-mem, so that habits and prompts carry over. `lenient` holds the
//! single values; here they become what `memory` takes, or an error that says what would have been right.

mod code;
mod keeping;
mod lenient;
mod lessons;

use std::any::Any;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use memory::ids::{DocumentId, DocumentKind};
use memory::recall::{Anchor, MAX_LIMIT};
use rmcp::ErrorData;
use rmcp::handler::server::common::{FromContextPart, schema_for_input};
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::dates::{self, Bound};
use crate::error::ToolError;
pub(crate) use code::{FileHistoryArguments, FindFixArguments, HowArguments};
pub(crate) use keeping::{Doomed, ForgetArguments, UpdateMemoryArguments};
use lenient::{Count, Words};
pub(crate) use lessons::{CreateLessonArguments, ProposeLessonsArguments, SearchLessonsArguments};

/// As many records as a model's window bears, and far more than one question needs.
const MAX_IDS: usize = 50;
const DEFAULT_LIMIT: usize = 10;
const DEFAULT_DEPTH: usize = 5;
const MAX_DEPTH: usize = 50;
const DEFAULT_MAX_TOKENS: usize = 6_000;
/// Less is no answer, and more is no answer either.
const MAX_TOKENS: std::ops::RangeInclusive<usize> = 200..=100_000;

/// A tool's arguments, or why they cannot be used: an error that the model sees and can mend, not one of the protocol.
pub(crate) struct Arguments<T>(pub(crate) Result<T, ToolError>);

/// Arguments of one tool.
pub(crate) trait OfTool: DeserializeOwned + JsonSchema + Any {
    const TOOL: &'static str;
}

impl<S, T: OfTool> FromContextPart<ToolCallContext<'_, S>> for Arguments<T> {
    fn from_context_part(context: &mut ToolCallContext<'_, S>) -> Result<Self, ErrorData> {
        Ok(Self(read(context.arguments.take().unwrap_or_default())))
    }
}

pub(crate) fn schema<T: OfTool>() -> Arc<JsonObject> {
    schema_for_input::<T>().expect("every argument type is a struct")
}

pub(crate) fn read<T: OfTool>(arguments: JsonObject) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments))
        .map_err(|error| ToolError::Arguments { tool: T::TOOL, problem: error.to_string() })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchArguments {
    /// What to look for: words, code identifiers, a path, a command, an error message, or a question.
    pub(crate) query: String,
    /// Only this repository: its name, remote or folder. Without it, all of them.
    pub(crate) project: Option<String>,
    /// Only these kinds: `prompt` is what the user asked (and the answer), `call` what an agent ran, `note` what was saved.
    #[serde(rename = "type", default)]
    #[schemars(schema_with = "lenient::kinds_schema")]
    kinds: Option<Words>,
    /// How many hits, 1 to 100; 10 if left out.
    limit: Option<Count>,
    /// Only from this moment on: an ISO 8601 date or timestamp, UTC if it has no offset.
    #[serde(rename = "dateStart")]
    date_start: Option<String>,
    /// Only up to this moment; a date means the end of that day.
    #[serde(rename = "dateEnd")]
    date_end: Option<String>,
    /// Only sessions of this agent, such as `claude-code`, `codex` or `gemini-cli`.
    pub(crate) agent: Option<String>,
    /// Only sessions that worked on this branch.
    pub(crate) branch: Option<String>,
    /// Only what names this file: its path, or the last parts of it.
    pub(crate) file: Option<String>,
    /// How long the reply may be, in tokens, 200 to 100000; 6000 if left out. Hits beyond it are left out.
    max_tokens: Option<Count>,
    /// Whether to tell how each hit came to its place, and what the search took. That comes on top of `max_tokens`.
    #[serde(default)]
    pub(crate) explain: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimelineArguments {
    /// What to look around: a document's id from `search` (`call-345`), or an ISO 8601 timestamp.
    #[serde(default)]
    #[schemars(schema_with = "lenient::text_schema")]
    anchor: Option<Words>,
    /// Instead of an anchor: look around the best hit of this search.
    query: Option<String>,
    /// How many documents before it, 0 to 50; 5 if left out.
    depth_before: Option<Count>,
    /// How many documents after it, 0 to 50; 5 if left out.
    depth_after: Option<Count>,
    /// Only this repository. Without it: the anchor's own session, or everything around a timestamp.
    pub(crate) project: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetObservationsArguments {
    /// Ids from `search` or `timeline`, such as `["call-345", "prompt-12", "note-7"]`; at most 50.
    #[schemars(schema_with = "lenient::ids_schema")]
    ids: Words,
    /// How long the reply may be, in tokens, 200 to 100000; 6000 if left out. Longer texts keep head and tail.
    max_tokens: Option<Count>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaveMemoryArguments {
    /// What to remember, so that it can be understood without this conversation. No secrets.
    pub(crate) text: String,
    /// One line that says what it is about; the first line of the text if left out.
    pub(crate) title: Option<String>,
    /// The repository it is about: its name, remote or folder. Without it the note belongs to none and is found in all.
    pub(crate) project: Option<String>,
}

impl OfTool for SearchArguments {
    const TOOL: &'static str = "search";
}
impl OfTool for TimelineArguments {
    const TOOL: &'static str = "timeline";
}
impl OfTool for GetObservationsArguments {
    const TOOL: &'static str = "get_observations";
}
impl OfTool for SaveMemoryArguments {
    const TOOL: &'static str = "save_memory";
}

/// From when to when, both included; open where nothing is given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from: Option<DateTime<Utc>>,
    pub(crate) until: Option<DateTime<Utc>>,
}

/// What a timeline is asked to be put around.
#[derive(Debug)]
pub(crate) enum Around {
    Anchor(Anchor),
    BestHitOf(String),
}

impl SearchArguments {
    pub(crate) fn kinds(&self) -> Result<Vec<DocumentKind>, ToolError> {
        const HINT: &str = "`type` is one of `prompt`, `call` and `note`, or a list of them";
        let kinds = self.kinds.iter().flat_map(|words| &words.0);
        kinds.map(|kind| kind.to_lowercase().parse().map_err(|_| wrong("type", kind, HINT))).collect()
    }

    pub(crate) fn limit(&self) -> Result<usize, ToolError> {
        in_range("limit", self.limit, DEFAULT_LIMIT, 1..=MAX_LIMIT, "give a `limit` from 1 to 100")
    }

    pub(crate) fn max_tokens(&self) -> Result<usize, ToolError> {
        max_tokens(self.max_tokens)
    }

    pub(crate) fn period(&self) -> Result<Period, ToolError> {
        let from = moment("dateStart", self.date_start.as_deref(), Bound::StartOfDay)?;
        let until = moment("dateEnd", self.date_end.as_deref(), Bound::EndOfDay)?;
        if from.zip(until).is_some_and(|(from, until)| from > until) {
            return Err(ToolError::Request {
                problem: "`dateStart` is after `dateEnd`",
                hint: "exchange them, or leave one out",
            });
        }
        Ok(Period { from, until })
    }
}

impl TimelineArguments {
    pub(crate) fn around(&self) -> Result<Around, ToolError> {
        let anchor = self.anchor.as_ref().and_then(|words| words.0.first());
        match (anchor, given(self.query.as_deref())) {
            (Some(anchor), None) => anchor_of(anchor).map(Around::Anchor),
            (None, Some(query)) => Ok(Around::BestHitOf(query.to_owned())),
            (None, None) => Err(ToolError::Request {
                problem: "neither `anchor` nor `query` is given",
                hint: "give an id from `search` or a timestamp as `anchor`, or a `query`",
            }),
            (Some(_), Some(_)) => Err(ToolError::Request {
                problem: "`anchor` and `query` are both given",
                hint: "give one of them: `anchor` for a known place, `query` to look for one",
            }),
        }
    }

    pub(crate) fn depths(&self) -> Result<(usize, usize), ToolError> {
        const HINT: &str = "give a depth from 0 to 50";
        let before = in_range("depth_before", self.depth_before, DEFAULT_DEPTH, 0..=MAX_DEPTH, HINT)?;
        let after = in_range("depth_after", self.depth_after, DEFAULT_DEPTH, 0..=MAX_DEPTH, HINT)?;
        Ok((before, after))
    }
}

impl GetObservationsArguments {
    pub(crate) fn ids(&self) -> Result<Vec<DocumentId>, ToolError> {
        ids(&self.ids)
    }

    pub(crate) fn max_tokens(&self) -> Result<usize, ToolError> {
        max_tokens(self.max_tokens)
    }
}

/// The ids, each once, in the order they were given.
fn ids(words: &Words) -> Result<Vec<DocumentId>, ToolError> {
    let mut ids = Vec::new();
    for text in &words.0 {
        let id = document_id(text).ok_or_else(|| {
            wrong("ids", text, "ids look like `prompt-12`, `call-345` or `note-7`; `search` returns them")
        })?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.is_empty() || ids.len() > MAX_IDS {
        return Err(ToolError::Request {
            problem: "`ids` must hold 1 to 50 ids",
            hint: "take the most promising ones from `search` and ask for the others in a second call",
        });
    }
    Ok(ids)
}

fn max_tokens(given: Option<Count>) -> Result<usize, ToolError> {
    in_range("max_tokens", given, DEFAULT_MAX_TOKENS, MAX_TOKENS, "give `max_tokens` from 200 to 100000")
}

/// An argument that is given: models fill what they leave out with an empty text.
pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// A bare number is a note: the predecessor's observations had no other ids.
fn document_id(text: &str) -> Option<DocumentId> {
    let note = || Some(DocumentId { kind: DocumentKind::Note, row: text.parse().ok().filter(|row| *row > 0)? });
    text.to_lowercase().parse().ok().or_else(note)
}

fn anchor_of(text: &str) -> Result<Anchor, ToolError> {
    if let Some(id) = document_id(text) {
        return Ok(Anchor::Document(id));
    }
    dates::moment(text, Bound::StartOfDay).map(Anchor::Moment).ok_or_else(|| {
        wrong("anchor", text, "give an id such as `call-345` or a timestamp such as `2027-05-01T12:00:00Z`")
    })
}

fn moment(name: &'static str, text: Option<&str>, bound: Bound) -> Result<Option<DateTime<Utc>>, ToolError> {
    const HINT: &str = "give an ISO 8601 date or timestamp, such as `2027-05-01` or `2027-05-01T12:00:00Z`";
    given(text).map(|text| dates::moment(text, bound).ok_or_else(|| wrong(name, text, HINT))).transpose()
}

fn in_range(
    name: &'static str,
    given: Option<Count>,
    default: usize,
    allowed: std::ops::RangeInclusive<usize>,
    hint: &'static str,
) -> Result<usize, ToolError> {
    let Some(Count(number)) = given else { return Ok(default) };
    usize::try_from(number)
        .ok()
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| wrong(name, &number.to_string(), hint))
}

fn wrong(name: &'static str, value: &str, hint: &'static str) -> ToolError {
    ToolError::Value { name, value: value.to_owned(), hint }
}

#[cfg(test)]
mod tests;
