//! `mem_observations`: notes that a person or an agent chose to keep.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::{Db, StoreError, documents, project_names, projects};
use crate::access::Who;
use crate::event::{Capped, MAX_PROMPT_BYTES};
use crate::ids::{DocumentId, DocumentKind, PersonId, ProjectId, SessionId};
use crate::project::unfiled;
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

/// A note to be kept. Without a title it gets its first line; without a project it belongs to none and is found in all: a person's then
/// stands among what they did nowhere in particular, and so is theirs alone.
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

/// A note to be said otherwise. What is not given stays as it was.
#[derive(Debug, Clone)]
pub struct ChangedObservation {
    /// The row of the note that is there.
    pub row: i64,
    pub text: Option<String>,
    pub title: Option<String>,
    pub source: Source,
}

/// Saves a note and has it embedded, in one transaction.
pub async fn save(db: &Db, who: Who, new: NewObservation) -> Result<SavedObservation, StoreError> {
    let said = Said::of(&new.text, new.title.as_deref())?;
    let mut tx = db.begin().await?;
    // A note may be the first thing that is known of a project: then the name makes it.
    let named = new.project.as_deref().map(|name| redact::clean(name.trim())).filter(|name| !name.is_empty());
    let project: Option<ProjectId> = match named.as_deref() {
        None if who == Who::Operator => None,
        None => Some(projects::resolve(&mut tx, &unfiled().of(who)).await?),
        Some(name) => Some(match project_names::find_own(&mut tx, who, name).await {
            Ok(found) => found,
            Err(StoreError::UnknownProject { .. }) => {
                projects::resolve(&mut tx, &projects::named(name).of(who)).await?
            }
            Err(error) => return Err(error),
        }),
    };
    let place = Place { who, project, session: None, kind: "note" };
    let saved = insert(&mut tx, said, place, new.source).await?;
    tx.commit().await?;
    Ok(saved)
}

/// Saves a note in place of another, which is found no more but can still be read. One that somebody may not see is not there.
pub async fn supersede(db: &Db, who: Who, change: ChangedObservation) -> Result<SavedObservation, StoreError> {
    let id = note(change.row);
    let mut tx = db.begin().await?;
    let old = sqlx::query!(
        r#"select project_id as "project_id: ProjectId", session_id as "session_id: SessionId", kind, title, body, superseded_by
           from mem_observations note
           where id = $1
             and ($2::bigint is null
                  or exists (select from mem_projects project
                             where project.id = note.project_id and (is_shared or project.person_id = $2)))
           for update"#,
        change.row,
        who.person() as Option<PersonId>,
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or(StoreError::UnknownNote(id))?;
    if old.kind == "lesson" {
        return Err(StoreError::IsLesson(id));
    }
    if let Some(by) = old.superseded_by {
        return Err(StoreError::Superseded { id, by: note(by) });
    }
    // A title that was the text's first line goes with the text.
    let kept = (change.text.is_none() || old.title != first_line(&old.body)).then_some(old.title);
    let title = change.title.filter(|title| !title.trim().is_empty()).or(kept);
    let said = Said::of(change.text.as_deref().unwrap_or(&old.body), title.as_deref())?;
    let place = Place { who, project: old.project_id, session: old.session_id, kind: &old.kind };
    let saved = insert(&mut tx, said, place, change.source).await?;
    sqlx::query!("update mem_observations set superseded_by = $2 where id = $1", change.row, saved.id.row)
        .execute(&mut *tx)
        .await?;
    documents::remove(&mut tx, &[id]).await?;
    tx.commit().await?;
    Ok(saved)
}

/// What a note says, as it is kept.
struct Said {
    text: String,
    title: String,
}

impl Said {
    fn of(text: &str, title: Option<&str>) -> Result<Self, StoreError> {
        let text = Capped::new(text.trim(), MAX_PROMPT_BYTES).text;
        if text.trim().is_empty() {
            return Err(StoreError::Empty { field: "text" });
        }
        let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
        let title = Capped::new(&title.unwrap_or_else(|| first_line(&text)), 4 * MAX_TITLE_CHARS).text;
        Ok(Self { text, title })
    }
}

/// Where a note belongs.
struct Place<'a> {
    /// Who wrote it.
    who: Who,
    project: Option<ProjectId>,
    session: Option<SessionId>,
    kind: &'a str,
}

async fn insert(
    connection: &mut PgConnection,
    said: Said,
    place: Place<'_>,
    source: Source,
) -> Result<SavedObservation, StoreError> {
    let Said { text, title } = said;
    let row = sqlx::query!(
        r#"insert into mem_observations (project_id, session_id, kind, title, body, source, person_id)
           values ($1, $2, $3, $4, $5, $6, $7)
           returning id, occurred_at"#,
        place.project as Option<ProjectId>,
        place.session as Option<SessionId>,
        place.kind,
        title,
        text,
        source.as_str(),
        place.who.person() as Option<PersonId>,
    )
    .fetch_one(&mut *connection)
    .await?;
    let id = note(row.id);
    let entry = documents::Entry { id, project: place.project, session: place.session, occurred_at: row.occurred_at };
    documents::index(connection, vec![(entry, format!("{title}\n{text}"))]).await?;
    Ok(SavedObservation { id, title })
}

const fn note(row: i64) -> DocumentId {
    DocumentId { kind: DocumentKind::Note, row }
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MAX_TITLE_CHARS).collect()
}
