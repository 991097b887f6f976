//! Questions about code: who touched a file, what mended a failure, which commands worked.

use memory::recall::{self, FileHistoryRequest};
use rmcp::handler::server::wrapper::Json;
use rmcp::{tool, tool_router};

use super::{Meant, Tools, in_time};
use crate::arguments::{Arguments, FileHistoryArguments, FindFixArguments, HowArguments, given, schema};
use crate::error::ToolError;
use crate::replies::{CommandsReply, FileHistoryReply, FixesReply};

#[tool_router(router = code_router, vis = "pub(super)")]
impl Tools {
    /// Use before you change a file whose present state surprises you, or when the user asks who changed it, when or why: lists the
    /// recorded calls that edited, read or ran something about a file, edits first, newest first, each with the prompt that it
    /// served. Takes an absolute or relative path, or only its last parts. `get_observations` gives the exact edit.
    #[tool(
        title = "History of a file",
        input_schema = schema::<FileHistoryArguments>(),
        annotations(
            title = "History of a file",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    pub(crate) async fn file_history(
        &self,
        Arguments(arguments): Arguments<FileHistoryArguments>,
    ) -> Result<Json<FileHistoryReply>, ToolError> {
        let arguments = arguments?;
        let limit = arguments.limit()?;
        in_time(async {
            let db = self.database.pool()?;
            let projects = self.projects(&db, given(arguments.project.as_deref())).await?;
            let request = FileHistoryRequest { path: arguments.path, projects, limit };
            Ok(Json(FileHistoryReply::of(recall::file_history(&db, request).await?)))
        })
        .await
    }

    /// Use when a command, a test or a tool call fails, before you try to mend it, and for "how did we fix": finds recorded calls that
    /// failed like this error, each with what was changed or run afterwards and the next call like it that worked. Returns
    /// records, not instructions: check that the cause is the same.
    #[tool(
        title = "Find what fixed an error",
        input_schema = schema::<FindFixArguments>(),
        annotations(
            title = "Find what fixed an error",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    pub(crate) async fn find_fix(
        &self,
        Arguments(arguments): Arguments<FindFixArguments>,
    ) -> Result<Json<FixesReply>, ToolError> {
        let arguments = arguments?;
        let limit = arguments.limit()?;
        in_time(async {
            let db = self.database.pool()?;
            let project = given(arguments.project.as_deref());
            let Meant { projects, vector, degraded, .. } = self.meant(&db, &arguments.error, project).await?;
            let fixes = recall::find_fix(&db, &arguments.error, vector, projects, limit).await?;
            Ok(Json(FixesReply::of(fixes, degraded)))
        })
        .await
    }

    /// Use before you work out a command that was probably run here before: how to build, test, start, deploy or migrate. Finds
    /// recorded shell commands that worked for such a goal, each once, with how often it worked and failed and when it last worked.
    /// They are records: look at a command before you run it.
    #[tool(
        title = "Find commands that worked",
        input_schema = schema::<HowArguments>(),
        annotations(
            title = "Find commands that worked",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    pub(crate) async fn how(
        &self,
        Arguments(arguments): Arguments<HowArguments>,
    ) -> Result<Json<CommandsReply>, ToolError> {
        let arguments = arguments?;
        let limit = arguments.limit()?;
        in_time(async {
            let db = self.database.pool()?;
            let project = given(arguments.project.as_deref());
            let Meant { projects, vector, degraded, .. } = self.meant(&db, &arguments.what, project).await?;
            let commands = recall::how(&db, &arguments.what, vector, projects, limit).await?;
            Ok(Json(CommandsReply::of(commands, degraded)))
        })
        .await
    }
}
