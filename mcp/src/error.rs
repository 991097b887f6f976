//! Every way in which a tool call can fail, as one text for the model: what failed, why, and what to do about it.

use std::error::Error as _;
use std::fmt::Write as _;

use memory::home::HomeError;
use memory::recall::RecallError;
use memory::store::{ConnectError, LessonError, StoreError};
use rmcp::model::{ContentBlock, IntoContents};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("the arguments of `{tool}` cannot be used: {problem}")]
    Arguments { tool: &'static str, problem: String },
    #[error("`{value}` cannot be used as `{name}`")]
    Value { name: &'static str, value: String, hint: &'static str },
    #[error("{problem}")]
    Request { problem: &'static str, hint: &'static str },
    #[error("agent-memory is not installed here: {0}")]
    NotInstalled(String),
    #[error("agent-memory's installation cannot be read")]
    Home(#[source] HomeError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the memory's database is not reachable")]
    Away(#[source] StoreError),
    #[error(transparent)]
    Recall(RecallError),
    #[error(transparent)]
    Store(StoreError),
    #[error(transparent)]
    Lesson(LessonError),
    #[error("the request says nobody whose memory this is")]
    Nobody,
    #[error("the memory's database did not answer within {seconds} s")]
    Deadline { seconds: u64 },
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        if error.is_transient() { Self::Away(error) } else { Self::Store(error) }
    }
}

impl From<LessonError> for ToolError {
    fn from(error: LessonError) -> Self {
        match error {
            LessonError::Store(error) => error.into(),
            error => Self::Lesson(error),
        }
    }
}

impl From<RecallError> for ToolError {
    fn from(error: RecallError) -> Self {
        match error {
            RecallError::Store(error) => error.into(),
            error => Self::Recall(error),
        }
    }
}

const START_IT: &str =
    "tell the user to look with `cargo xtask status` and to run `cargo xtask up`; go on without the memory meanwhile";
const OUR_FAULT: &str = "this is a fault of agent-memory; `cargo xtask doctor` and `cargo xtask logs` say more";

/// Whose it is to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The question cannot be answered as it was asked.
    Asker,
    /// What was asked for is not there.
    Absent,
    /// The database is away; the same question may be answered later.
    Database,
    Ours,
}

impl ToolError {
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Arguments { .. }
            | Self::Value { .. }
            | Self::Request { .. }
            | Self::Lesson(
                LessonError::Trigger(_)
                | LessonError::Name(_)
                | LessonError::NoRule
                | LessonError::TooLong { .. }
                | LessonError::EnforcedByNothing,
            )
            | Self::Recall(RecallError::EmptyQuery | RecallError::NoFile(_))
            | Self::Store(
                StoreError::Empty { .. }
                | StoreError::AmbiguousProject { .. }
                | StoreError::IsLesson(_)
                | StoreError::Superseded { .. },
            ) => Fault::Asker,
            Self::Lesson(LessonError::Unknown(_))
            | Self::Recall(RecallError::UnknownDocument(_))
            | Self::Store(StoreError::UnknownProject { .. } | StoreError::UnknownNote(_)) => Fault::Absent,
            Self::NotInstalled(_) | Self::Connect(_) | Self::Away(_) | Self::Deadline { .. } => Fault::Database,
            Self::Nobody | Self::Home(_) | Self::Store(_) | Self::Recall(_) | Self::Lesson(LessonError::Store(_)) => {
                Fault::Ours
            }
        }
    }

    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Arguments { .. } | Self::Lesson(LessonError::Name(_) | LessonError::EnforcedByNothing) => {
                "call the tool again with arguments that fit its schema"
            }
            Self::Value { hint, .. } | Self::Request { hint, .. } => hint,
            Self::NotInstalled(_) => "tell the user to run `cargo xtask up` in agent-memory's folder",
            Self::Home(_) => "tell the user to run `cargo xtask doctor`",
            Self::Connect(error) => error.hint(),
            Self::Recall(RecallError::EmptyQuery) => {
                "say what to look for: a text with at least one word, or for `file_history` a path that names a file"
            }
            Self::Recall(RecallError::NoFile(_)) => "give `file` the path of a file or the last parts of one",
            Self::Recall(RecallError::UnknownDocument(_)) => {
                "take ids from the result of `search` or `timeline`, and ask for the others without this one"
            }
            Self::Lesson(LessonError::Trigger(_)) => {
                "give `trigger_pattern` as a regular expression without look-around and back references, such as \
                 `git push .*--force( |$)`: it starts at a program's name"
            }
            Self::Lesson(LessonError::TooLong { .. } | LessonError::NoRule) => {
                "say the rule in a few sentences; the whole story belongs into a note (`save_memory`)"
            }
            Self::Lesson(LessonError::Unknown(_)) => "take the lesson's id from `search_lessons`",
            Self::Away(error)
            | Self::Store(error)
            | Self::Recall(RecallError::Store(error))
            | Self::Lesson(LessonError::Store(error)) => store_hint(error),
            Self::Nobody => OUR_FAULT,
            Self::Deadline { .. } => START_IT,
        }
    }

    /// Logs what the operator may have to mend; what the model got wrong is the model's to mend, and may hold its user's words.
    pub(crate) fn log(&self) {
        if let Self::Connect(_) | Self::Away(_) | Self::Store(StoreError::Database(_)) | Self::Deadline { .. } = self {
            tracing::warn!(error = self as &dyn std::error::Error, "a tool call failed");
        }
    }

    /// What failed and why, in one line.
    pub(crate) fn message(&self) -> String {
        self.chain(": ")
    }

    /// The three parts, each on a line of its own.
    fn text(&self) -> String {
        format!("error: {}\nhint: {}", self.chain("\ncaused by: "), self.hint())
    }

    fn chain(&self, separator: &str) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            let _ = write!(text, "{separator}{cause}");
            source = cause.source();
        }
        text
    }
}

fn store_hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::UnknownProject { .. } => {
            "leave `project` out to search all projects (each hit names its own), or give the repository's name, remote or folder"
        }
        StoreError::AmbiguousProject { .. } => "name the project by its remote or its folder",
        StoreError::UnknownNote(_) => "take the note's id from `search` or from `save_memory`",
        StoreError::IsLesson(_) => "tell the user to change the lesson with `cargo xtask lessons edit`",
        StoreError::Superseded { .. } => "update the note that took its place; `get_observations` gives both",
        StoreError::Empty { .. } => "give it a text: what is inside <private> is never kept",
        StoreError::Database(database) => {
            #[allow(
                clippy::redundant_closure_for_method_calls,
                reason = "the method's path is a crate's that is not used here"
            )]
            let code = database.as_database_error().and_then(|error| error.code());
            match code.as_deref() {
                Some("28000" | "28P01") => "the database refused our password; tell the user to run `cargo xtask up`",
                Some("42P01") => "the database has no tables yet; tell the user to run `cargo xtask migrate`",
                _ if error.is_transient() => START_IT,
                _ => OUR_FAULT,
            }
        }
        StoreError::Queue(_) => START_IT,
    }
}

impl IntoContents for ToolError {
    fn into_contents(self) -> Vec<ContentBlock> {
        self.log();
        vec![ContentBlock::text(self.text())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_failed_and_what_to_do() {
        let error = ToolError::Recall(RecallError::UnknownDocument("call-7".parse().unwrap()));
        let text = error.text();
        assert!(text.starts_with("error: no document `call-7`\nhint: take ids from"), "{text}");
    }

    #[test]
    fn names_the_command_that_mends_a_missing_installation() {
        let text = ToolError::NotInstalled("there is no `database-url`".to_owned()).text();
        assert!(text.contains("`cargo xtask up`"), "{text}");
    }

    #[test]
    fn says_how_to_search_without_a_project() {
        let error = ToolError::Store(StoreError::UnknownProject {
            name: "widgts".to_owned(),
            known: "widgets, gadgets".to_owned(),
        });
        let text = error.text();
        assert!(text.contains("no project is called `widgts`") && text.contains("leave `project` out"), "{text}");
    }
}
