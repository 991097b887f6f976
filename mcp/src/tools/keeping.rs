//! What changes what is kept: saving a note, saying it otherwise, forgetting.

use memory::recall::{self, Filter};
use memory::store::{self, ChangedObservation, Db, NewObservation, Source, StoreError};
use rmcp::handler::server::wrapper::Json;
use rmcp::{tool, tool_router};

use super::{Found, Tools, Wanted, in_time};
use crate::arguments::{Arguments, Doomed, ForgetArguments, SaveMemoryArguments, UpdateMemoryArguments, given, schema};
use crate::error::ToolError;
use crate::replies::{ForgetReply, SavedReply, UpdatedReply};

/// Whom the audit log names for what was asked for by a tool.
const ACTOR: &str = "tool";
/// So many documents are listed for a query.
const LISTED: usize = 20;

#[tool_router(router = keeping_router, vis = "pub(super)")]
impl Tools {
    /// Use when the user asks to remember something, or when you found out what took effort and will be needed again: a decision
    /// and its reason, the cause of a failure, the command that works. Write it so that it is understood without this
    /// conversation. Prompts and tool calls are recorded by themselves; do not repeat them here. Saving twice makes two notes.
    #[tool(
        title = "Save a note",
        input_schema = schema::<SaveMemoryArguments>(),
        annotations(
            title = "Save a note",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        )
    )]
    pub(crate) async fn save_memory(
        &self,
        Arguments(arguments): Arguments<SaveMemoryArguments>,
    ) -> Result<Json<SavedReply>, ToolError> {
        let SaveMemoryArguments { text, title, project } = arguments?;
        in_time(async {
            let db = self.database.pool()?;
            let new = NewObservation { text, title, project, source: Source::Agent };
            Ok(Json(SavedReply::of(store::save_observation(&db, self.who()?, new).await?)))
        })
        .await
    }

    /// Use when a note that `search` found is no longer right or no longer whole: saves a new note in its place. The old one is found
    /// no more; `get_observations` still gives it and names its successor. Give the whole new text, not only what changed.
    #[tool(
        title = "Update a note",
        input_schema = schema::<UpdateMemoryArguments>(),
        annotations(
            title = "Update a note",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        )
    )]
    pub(crate) async fn update_memory(
        &self,
        Arguments(arguments): Arguments<UpdateMemoryArguments>,
    ) -> Result<Json<UpdatedReply>, ToolError> {
        let arguments = arguments?;
        let row = arguments.note()?;
        let (text, title) = arguments.changes()?;
        in_time(async {
            let db = self.database.pool()?;
            let change = ChangedObservation { row, text, title, source: Source::Agent };
            Ok(Json(UpdatedReply::of(store::supersede_observation(&db, self.who()?, change).await?, row)))
        })
        .await
    }

    /// Use only when the user asks that something be forgotten: removes prompts, tool calls or notes for good, with all that they hold.
    /// First it only shows what would be removed; with `dry_run` false and ids it removes that. A `query` lists what could be meant
    /// and never removes anything. Show the list to the user before you remove.
    #[tool(
        title = "Forget records",
        input_schema = schema::<ForgetArguments>(),
        annotations(
            title = "Forget records",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    pub(crate) async fn forget(
        &self,
        Arguments(arguments): Arguments<ForgetArguments>,
    ) -> Result<Json<ForgetReply>, ToolError> {
        let arguments = arguments?;
        let doomed = arguments.doomed()?;
        in_time(async {
            let db = self.database.pool()?;
            Ok(Json(match doomed {
                Doomed::Found(query) => {
                    let project = given(arguments.project.as_deref());
                    let wanted = Wanted { query: &query, project, filter: Filter::default(), limit: LISTED };
                    let Found { hits, degraded, .. } = self.find(&db, wanted).await?;
                    ForgetReply::found(hits.into_iter().map(|hit| hit.line).collect(), degraded)
                }
                Doomed::Shown(ids) => ForgetReply::shown(self.taken_along(&db, &ids).await?),
                Doomed::Removed(ids) => {
                    let lines = self.taken_along(&db, &ids).await?;
                    store::forget(&db, &ids, &self.who()?.own(ACTOR)).await?;
                    ForgetReply::removed(lines)
                }
            }))
        })
        .await
    }
}

impl Tools {
    /// What goes with these documents, them included. An id that is unknown is an error, so that nobody takes it for forgotten; so is
    /// one that whoever asks may not see.
    async fn taken_along(&self, db: &Db, ids: &[memory::ids::DocumentId]) -> Result<Vec<recall::Line>, ToolError> {
        let projects = self.projects(db, None).await?;
        let mut connection = db.acquire().await.map_err(StoreError::from)?;
        let all = store::forgettable(&mut connection, ids).await?;
        drop(connection);
        Ok(recall::details(db, &all, &projects).await?.into_iter().map(|details| details.line).collect())
    }
}
