//! `mem_observations`: notes that a person or an agent chose to keep.

use serde::{Deserialize, Serialize};

use super::{Db, StoreError, documents, projects};
use crate::event::{Capped, MAX_PROMPT_BYTES};
use crate::ids::{DocumentId, DocumentKind, ObservationId, ProjectId};
use crate::redact;

/// Who wrote a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Person,
    Agent,
}

impl Source {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
        }
    }
}

/// A note to be kept. Without a title it gets its first line; without a project it belongs to none and is found in all.
#[derive(Debug, Clone)]
pub struct NewObservation {
    pub text: String,
    pub title: Option<String>,
    pub project: Option<String>,
    pub source: Source,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedObservation {
    pub id: DocumentId,
    pub title: String,
}

const MAX_TITLE_CHARS: usize = 120;

/// Saves a note and has it embedded, in one transaction.
pub async fn save(db: &Db, new: NewObservation) -> Result<SavedObservation, StoreError> {
    let text = Capped::new(new.text.trim(), MAX_PROMPT_BYTES).text;
    if text.trim().is_empty() {
        return Err(StoreError::Empty { field: "text" });
    }
    let title = new.title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
    let title = Capped::new(&title.unwrap_or_else(|| first_line(&text)), 4 * MAX_TITLE_CHARS).text;

    let mut tx = db.begin().await?;
    // A note may be the first thing that is known of a project: then the name makes it.
    let named = new.project.as_deref().map(|name| redact::clean(name.trim())).filter(|name| !name.is_empty());
    let project: Option<ProjectId> = match named.as_deref() {
        None => None,
        Some(name) => Some(match projects::find_one(&mut tx, name).await {
            Ok(found) => found,
            Err(StoreError::UnknownProject { .. }) => projects::resolve(&mut tx, &projects::named(name)).await?,
            Err(error) => return Err(error),
        }),
    };
    let row = sqlx::query!(
        r#"insert into mem_observations (project_id, title, body, source) values ($1, $2, $3, $4)
           returning id as "id: ObservationId", occurred_at"#,
        project as Option<ProjectId>,
        title,
        text,
        new.source.as_str(),
    )
    .fetch_one(&mut *tx)
    .await?;
    let id = DocumentId { kind: DocumentKind::Note, row: row.id.0 };
    let entry = documents::Entry { id, project, session: None, occurred_at: row.occurred_at };
    documents::index(&mut tx, vec![(entry, format!("{title}\n{text}"))]).await?;
    tx.commit().await?;
    Ok(SavedObservation { id, title })
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MAX_TITLE_CHARS).collect()
}
