//! The tools without the protocol: the same arguments, the same replies, for routes over plain HTTP.

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::Value;

use crate::Tools;
use crate::arguments::{Arguments, OfTool, read};
use crate::error::{Fault, ToolError};
use crate::timing::Way;

/// One of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Search,
    Timeline,
    GetObservations,
    FileHistory,
    FindFix,
    How,
    SaveMemory,
    UpdateMemory,
    Forget,
    CreateLesson,
    SearchLessons,
    ProposeLessons,
}

impl Question {
    /// The tool's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Timeline => "timeline",
            Self::GetObservations => "get_observations",
            Self::FileHistory => "file_history",
            Self::FindFix => "find_fix",
            Self::How => "how",
            Self::SaveMemory => "save_memory",
            Self::UpdateMemory => "update_memory",
            Self::Forget => "forget",
            Self::CreateLesson => "create_lesson",
            Self::SearchLessons => "search_lessons",
            Self::ProposeLessons => "propose_lessons",
        }
    }
}

/// What a tool is for, what it takes and what it gives.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolForm {
    pub title: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub arguments: JsonObject,
    /// JSON Schema of the reply.
    pub reply: JsonObject,
}

/// Why there is no reply.
#[derive(Debug)]
pub struct Refusal {
    pub fault: Fault,
    pub message: String,
    pub hint: &'static str,
}

impl Tools {
    /// How a tool describes itself.
    pub fn form(&self, question: Question) -> ToolForm {
        let tool = self.described(question.as_str()).expect("every question is one of the tools");
        ToolForm {
            title: tool.title.unwrap_or_default(),
            description: tool.description.unwrap_or_default().into_owned(),
            arguments: (*tool.input_schema).clone(),
            reply: tool.output_schema.map(|schema| (*schema).clone()).unwrap_or_default(),
        }
    }

    /// Asks a tool and returns its reply as JSON.
    pub async fn ask(&self, question: Question, arguments: JsonObject) -> Result<Value, Refusal> {
        let answer = self.answer(question, arguments);
        self.timed(question.as_str(), Way::Plain, Box::pin(answer)).await.map_err(|error| {
            error.log();
            Refusal { fault: error.fault(), message: error.message(), hint: error.hint() }
        })
    }

    async fn answer(&self, question: Question, arguments: JsonObject) -> Result<Value, ToolError> {
        match question {
            Question::Search => json(self.search(of(arguments)).await),
            Question::Timeline => json(self.timeline(of(arguments)).await),
            Question::GetObservations => json(self.get_observations(of(arguments)).await),
            Question::FileHistory => json(self.file_history(of(arguments)).await),
            Question::FindFix => json(self.find_fix(of(arguments)).await),
            Question::How => json(self.how(of(arguments)).await),
            Question::SaveMemory => json(self.save_memory(of(arguments)).await),
            Question::UpdateMemory => json(self.update_memory(of(arguments)).await),
            Question::Forget => json(self.forget(of(arguments)).await),
            Question::CreateLesson => json(self.create_lesson(of(arguments)).await),
            Question::SearchLessons => json(self.search_lessons(of(arguments)).await),
            Question::ProposeLessons => json(self.propose_lessons(of(arguments)).await),
        }
    }
}

fn of<T: OfTool>(arguments: JsonObject) -> Arguments<T> {
    Arguments(read(arguments))
}

fn json<T: Serialize>(reply: Result<rmcp::Json<T>, ToolError>) -> Result<Value, ToolError> {
    reply.map(|reply| serde_json::to_value(reply.0).expect("a reply is plain JSON"))
}
