//! Lessons: rules that an agent reads before a risky call.

use memory::access::Projects;
use memory::lessons::Status;
use memory::store::{self, LessonFilter, StoreError};
use rmcp::handler::server::wrapper::Json;
use rmcp::{tool, tool_router};

use super::{Tools, in_time};
use crate::arguments::{
    Arguments, CreateLessonArguments, ProposeLessonsArguments, SearchLessonsArguments, given, schema,
};
use crate::error::ToolError;
use crate::replies::{CreatedLessonReply, LessonsReply};

#[tool_router(router = lessons_router, vis = "pub(super)")]
impl Tools {
    /// Use when a mistake was made that will be made again, or the user says how something is never or always to be done here: keeps a
    /// rule that every agent reads at the moment of such a call. Give `trigger_tool` and `trigger_pattern`, so that it fires on
    /// that call and on nothing else. It only informs until the user allows it to stop calls.
    #[tool(
        title = "Create a lesson",
        input_schema = schema::<CreateLessonArguments>(),
        annotations(
            title = "Create a lesson",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        )
    )]
    pub(crate) async fn create_lesson(
        &self,
        Arguments(arguments): Arguments<CreateLessonArguments>,
    ) -> Result<Json<CreatedLessonReply>, ToolError> {
        let new = arguments?.lesson()?;
        in_time(async {
            let db = self.database.pool()?;
            Ok(Json(CreatedLessonReply::of(store::add_lesson(&db, self.who()?, new).await?)))
        })
        .await
    }

    /// Use before work of a kind that has gone wrong before, or to see whether a rule exists already: finds lessons by their words,
    /// with what fires them and whether they stop calls.
    #[tool(
        title = "Search lessons",
        input_schema = schema::<SearchLessonsArguments>(),
        annotations(
            title = "Search lessons",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    pub(crate) async fn search_lessons(
        &self,
        Arguments(arguments): Arguments<SearchLessonsArguments>,
    ) -> Result<Json<LessonsReply>, ToolError> {
        let arguments = arguments?;
        let limit = arguments.limit()?;
        in_time(async {
            let db = self.database.pool()?;
            let filter = self.lessons_of(&db, given(arguments.project.as_deref())).await?;
            let lessons = match given(arguments.query.as_deref()) {
                Some(query) => store::search_lessons(&db, query, &filter, limit).await?,
                None => store::lessons(&db, &filter).await?.into_iter().take(limit).collect(),
            };
            Ok(Json(LessonsReply::found(lessons)))
        })
        .await
    }

    /// Use when the user asks what could be learnt from earlier work: looks through a repository's journal for commands that failed in
    /// several sessions before something else worked, and for what the user corrected. Returns the proposals that wait for the
    /// user, each with its evidence; nothing fires before the user accepts it.
    #[tool(
        title = "Propose lessons",
        input_schema = schema::<ProposeLessonsArguments>(),
        annotations(
            title = "Propose lessons",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    pub(crate) async fn propose_lessons(
        &self,
        Arguments(arguments): Arguments<ProposeLessonsArguments>,
    ) -> Result<Json<LessonsReply>, ToolError> {
        let arguments = arguments?;
        in_time(async {
            let db = self.database.pool()?;
            let who = self.who()?;
            let mut connection = db.acquire().await.map_err(StoreError::from)?;
            let projects = store::find_project(&mut connection, who, &arguments.project).await?;
            drop(connection);
            let mut waiting = Vec::new();
            for project in projects {
                store::propose_lessons(&db, project).await?;
                let filter = LessonFilter { who, project: Some(project), status: Some(Status::Proposed) };
                waiting.extend(store::lessons(&db, &filter).await?);
            }
            Ok(Json(LessonsReply::proposed(waiting)))
        })
        .await
    }

    async fn lessons_of(&self, db: &store::Db, project: Option<&str>) -> Result<LessonFilter, ToolError> {
        let who = self.who()?;
        let project = match self.projects(db, project).await? {
            Projects::These(named) if project.is_some() => named.first().copied(),
            _ => None,
        };
        Ok(LessonFilter { who, project, status: None })
    }
}
