//! Arguments of the tools that answer questions about code.

use schemars::JsonSchema;
use serde::Deserialize;

use super::lenient::Count;
use super::{OfTool, in_range};
use crate::error::ToolError;

const DEFAULT_TOUCHES: usize = 20;
const DEFAULT_ANSWERS: usize = 5;
const HINT: &str = "give a `limit` from 1 to 50";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileHistoryArguments {
    /// The file: absolute, relative to the repository, or only its last parts, such as `src/lib.rs`.
    pub(crate) path: String,
    /// Only this repository: its name, remote or folder. Without it, all of them.
    pub(crate) project: Option<String>,
    /// How many calls, 1 to 50; 20 if left out.
    limit: Option<Count>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindFixArguments {
    /// The error as it was shown, or its telling lines; or what failed in your own words.
    pub(crate) error: String,
    /// Only this repository: its name, remote or folder. Without it, all of them.
    pub(crate) project: Option<String>,
    /// How many failures, 1 to 50; 5 if left out.
    limit: Option<Count>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HowArguments {
    /// What is to be achieved, such as `run the database tests` or `deploy to staging`.
    pub(crate) what: String,
    /// Only this repository: its name, remote or folder. Without it, all of them.
    pub(crate) project: Option<String>,
    /// How many commands, 1 to 50; 5 if left out.
    limit: Option<Count>,
}

impl OfTool for FileHistoryArguments {
    const TOOL: &'static str = "file_history";
}
impl OfTool for FindFixArguments {
    const TOOL: &'static str = "find_fix";
}
impl OfTool for HowArguments {
    const TOOL: &'static str = "how";
}

impl FileHistoryArguments {
    pub(crate) fn limit(&self) -> Result<usize, ToolError> {
        in_range("limit", self.limit, DEFAULT_TOUCHES, 1..=50, HINT)
    }
}

impl FindFixArguments {
    pub(crate) fn limit(&self) -> Result<usize, ToolError> {
        in_range("limit", self.limit, DEFAULT_ANSWERS, 1..=50, HINT)
    }
}

impl HowArguments {
    pub(crate) fn limit(&self) -> Result<usize, ToolError> {
        in_range("limit", self.limit, DEFAULT_ANSWERS, 1..=50, HINT)
    }
}
