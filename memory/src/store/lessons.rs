//! `mem_lessons`: what is to be read before a risky call.

use sqlx::PgConnection;

use super::{Db, StoreError, documents, project_names, projects};
use crate::access::Who;
use crate::analyze::{Lexemes, Query, quoted};
use crate::event::Capped;
use crate::ids::{DocumentId, DocumentKind, LessonId, PersonId, ProjectId};
use crate::lessons::{
    Author, Field, Lesson, MAX_RULE_CHARS, MAX_TITLE_CHARS, NewLesson, Severity, Status, Trigger, TriggerError,
    UnknownName,
};
use crate::project::unfiled;
use crate::redact;

/// Why a lesson could not be kept, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum LessonError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trigger(#[from] TriggerError),
    #[error(transparent)]
    Name(#[from] UnknownName),
    #[error("there is no lesson {0}")]
    Unknown(i64),
    #[error("`rule` is empty")]
    NoRule,
    #[error("the {field} has {chars} characters; {most} are allowed")]
    TooLong { field: &'static str, chars: usize, most: usize },
    #[error("a lesson that is enforced elsewhere needs `enforced_by`: what sees to it now")]
    EnforcedByNothing,
}

impl From<sqlx::Error> for LessonError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Which lessons are wanted.
#[derive(Debug, Clone, Default)]
pub struct LessonFilter {
    /// Who asks: others' are not there.
    pub who: Who,
    /// Those of this project and those of all; without one, every lesson.
    pub project: Option<ProjectId>,
    pub status: Option<Status>,
}

/// What is to be changed; what is not given stays as it was.
#[derive(Debug, Clone, Default)]
pub struct LessonChange {
    pub title: Option<String>,
    pub rule: Option<String>,
    pub why: Option<String>,
    pub severity: Option<Severity>,
    pub trigger: Option<Trigger>,
    pub status: Option<Status>,
    pub enforced_by: Option<String>,
    /// A person's yes or no to that it may stop a call.
    pub may_stop: Option<bool>,
    pub asks_person: Option<bool>,
}

struct Row {
    id: LessonId,
    project: Option<ProjectId>,
    project_name: Option<String>,
    person: Option<PersonId>,
    title: String,
    rule: String,
    why: Option<String>,
    severity: String,
    trigger_tool: Option<String>,
    trigger_pattern: Option<String>,
    trigger_field: Option<String>,
    trigger_meaning: Option<String>,
    trigger_threshold: Option<f32>,
    source: String,
    status: String,
    enforced_by: Option<String>,
    may_stop: bool,
    asks_person: bool,
    evidence: Vec<String>,
    created_at: chrono::DateTime<chrono::Utc>,
    updated_at: chrono::DateTime<chrono::Utc>,
}

impl TryFrom<Row> for Lesson {
    type Error = UnknownName;

    fn try_from(row: Row) -> Result<Self, UnknownName> {
        let has_trigger = row.trigger_pattern.is_some() || row.trigger_meaning.is_some();
        let trigger = Trigger {
            tool: row.trigger_tool,
            pattern: row.trigger_pattern,
            field: row.trigger_field.as_deref().map(str::parse::<Field>).transpose()?,
            meaning: row.trigger_meaning,
            // As it was written: 0.6 and not 0.600000023.
            threshold: row
                .trigger_threshold
                .map_or(crate::lessons::DEFAULT_THRESHOLD, |threshold| (f64::from(threshold) * 1e4).round() / 1e4),
        };
        Ok(Self {
            id: row.id,
            project: row.project,
            project_name: row.project_name,
            person: row.person,
            title: row.title,
            rule: row.rule,
            why: row.why,
            severity: row.severity.parse()?,
            trigger: has_trigger.then_some(trigger),
            author: row.source.parse()?,
            status: row.status.parse()?,
            enforced_by: row.enforced_by,
            may_stop: row.may_stop,
            asks_person: row.asks_person,
            evidence: row.evidence,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// Lessons, the newest first.
pub async fn list(db: &Db, filter: &LessonFilter) -> Result<Vec<Lesson>, LessonError> {
    let mut connection = db.acquire().await?;
    rows(&mut connection, None, filter).await
}

pub async fn get(db: &Db, id: LessonId) -> Result<Lesson, LessonError> {
    let mut connection = db.acquire().await?;
    one(&mut connection, id).await
}

async fn one(connection: &mut PgConnection, id: LessonId) -> Result<Lesson, LessonError> {
    let found = rows(connection, Some(id), &LessonFilter::default()).await?;
    found.into_iter().next().ok_or(LessonError::Unknown(id.0))
}

async fn rows(
    connection: &mut PgConnection,
    id: Option<LessonId>,
    filter: &LessonFilter,
) -> Result<Vec<Lesson>, LessonError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select lesson.id as "id: LessonId", lesson.project_id as "project: ProjectId", project.name as "project_name?",
                  lesson.person_id as "person: PersonId", title, rule, why, severity, trigger_tool, trigger_pattern, trigger_field, trigger_meaning, trigger_threshold, source, status,
                  enforced_by, may_stop, asks_person, evidence, lesson.created_at, lesson.updated_at
           from mem_lessons lesson left join mem_projects project on project.id = lesson.project_id
           where ($1::bigint is null or lesson.id = $1)
             and ($2::bigint is null or lesson.project_id is null or lesson.project_id = $2)
             and ($3::text is null or status = $3)
             and ($4::bigint is null or project.is_shared or project.person_id = $4
                  or (lesson.project_id is null and lesson.person_id = $4))
           order by lesson.id desc"#,
        id.map(|id| id.0),
        filter.project.map(|project| project.0),
        filter.status.map(Status::as_str),
        filter.who.person() as Option<PersonId>,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Lesson::try_from).collect::<Result<_, _>>()?)
}

/// The lessons that say most of what is asked for, best first; retired ones last.
pub async fn search(db: &Db, query: &str, filter: &LessonFilter, limit: usize) -> Result<Vec<Lesson>, LessonError> {
    let query = Query::parse(query);
    let score = |lesson: &Lesson| -> f64 {
        let trigger = lesson.trigger.as_ref();
        let pattern = trigger.and_then(|trigger| trigger.pattern.as_deref()).unwrap_or_default();
        let meaning = trigger.and_then(|trigger| trigger.meaning.as_deref()).unwrap_or_default();
        let why = lesson.why.as_deref().unwrap_or_default();
        let lexemes = Lexemes::of(&[&lesson.title, &lesson.rule, why, pattern, meaning].join("\n")).tsvector;
        let holds = |lexeme: &str| lexemes.contains(&format!("{}:", quoted(lexeme)));
        query.terms.iter().filter(|term| holds(&term.lexeme)).map(|term| term.weight).sum()
    };
    let lessons = list(db, filter).await?;
    let mut scored: Vec<_> = lessons.into_iter().map(|lesson| (score(&lesson), lesson)).collect();
    scored.retain(|(score, _)| *score > 0.0);
    let rank = |lesson: &Lesson| matches!(lesson.status, Status::Active | Status::Enforced);
    scored.sort_by(|(one, a), (two, b)| rank(b).cmp(&rank(a)).then(two.total_cmp(one)).then(b.id.cmp(&a.id)));
    Ok(scored.into_iter().take(limit).map(|(_, lesson)| lesson).collect())
}

/// Keeps a lesson. What a person writes may stop calls, what an agent writes only tells, and what was mined waits for a person.
pub async fn add(db: &Db, who: Who, new: NewLesson) -> Result<Lesson, LessonError> {
    let trigger = new.trigger.map(Trigger::checked).transpose()?;
    let said = Said::of(new.title.as_deref(), &new.rule, new.why.as_deref())?;
    let mut tx = db.begin().await?;
    let project = project_named(&mut tx, who, new.project.as_deref()).await?;
    let is_persons = new.author == Author::Person;
    let kept = Kept {
        project,
        person: who.person(),
        said,
        severity: new.severity,
        trigger,
        author: new.author,
        status: if new.author == Author::Mined { Status::Proposed } else { Status::Active },
        may_stop: is_persons,
        asks_person: new.asks_person,
        evidence: Vec::new(),
        fingerprint: None,
    };
    let id = insert(&mut tx, kept).await?.expect("without a fingerprint nothing conflicts");
    let lesson = one(&mut tx, id).await?;
    keep_note(&mut tx, &lesson).await?;
    tx.commit().await?;
    Ok(lesson)
}

/// Keeps the note by which a search finds the lesson, as long as it counts.
async fn keep_note(connection: &mut PgConnection, lesson: &Lesson) -> Result<(), StoreError> {
    let note = |row| DocumentId { kind: DocumentKind::Note, row };
    if !matches!(lesson.status, Status::Active | Status::Enforced) {
        let gone = sqlx::query_scalar!("delete from mem_observations where lesson_id = $1 returning id", lesson.id.0)
            .fetch_all(&mut *connection)
            .await?;
        return documents::remove(connection, &gone.into_iter().map(note).collect::<Vec<_>>()).await;
    }
    let pattern = lesson.trigger.as_ref().and_then(|trigger| trigger.pattern.as_deref());
    let parts = [Some(lesson.rule.as_str()), lesson.why.as_deref(), pattern];
    let body = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    let source = if lesson.author == Author::Mined { "worker" } else { lesson.author.as_str() };
    // A person's that holds everywhere is found by them alone.
    let project = match (lesson.project, lesson.person) {
        (None, Some(_)) => Some(projects::resolve(connection, &unfiled().of(Who::of_person(lesson.person))).await?),
        (project, _) => project,
    };
    let row = sqlx::query!(
        "insert into mem_observations (project_id, kind, title, body, source, lesson_id, person_id)
         values ($1, 'lesson', $2, $3, $4, $5, $6)
         on conflict (lesson_id) where lesson_id is not null do update set
             title = excluded.title, body = excluded.body, project_id = excluded.project_id
         returning id, occurred_at",
        project as Option<ProjectId>,
        lesson.title,
        body,
        source,
        lesson.id.0,
        lesson.person as Option<PersonId>,
    )
    .fetch_one(&mut *connection)
    .await?;
    let entry = documents::Entry { id: note(row.id), project, session: None, occurred_at: row.occurred_at };
    documents::index(connection, vec![(entry, format!("{}\n{body}", lesson.title))]).await
}

pub(super) struct Kept {
    pub(super) project: Option<ProjectId>,
    pub(super) person: Option<PersonId>,
    pub(super) said: Said,
    pub(super) severity: Severity,
    pub(super) trigger: Option<Trigger>,
    pub(super) author: Author,
    pub(super) status: Status,
    pub(super) may_stop: bool,
    pub(super) asks_person: bool,
    pub(super) evidence: Vec<String>,
    pub(super) fingerprint: Option<String>,
}

/// `None`: the same was found before.
pub(super) async fn insert(connection: &mut PgConnection, kept: Kept) -> Result<Option<LessonId>, StoreError> {
    let trigger = kept.trigger.as_ref();
    let id = sqlx::query_scalar!(
        r#"insert into mem_lessons (project_id, title, rule, why, severity, trigger_tool, trigger_pattern, trigger_field, trigger_meaning,
                                    trigger_threshold, source, status, may_stop, asks_person, evidence, fingerprint, confirmed_at,
                                    person_id)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, case when $13 then now() end, $17)
           on conflict (coalesce(project_id, 0), fingerprint) where fingerprint is not null do nothing
           returning id as "id: LessonId""#,
        kept.project as Option<ProjectId>,
        kept.said.title,
        kept.said.rule,
        kept.said.why,
        kept.severity.as_str(),
        trigger.and_then(|trigger| trigger.tool.as_deref()),
        trigger.and_then(|trigger| trigger.pattern.as_deref()),
        trigger.and_then(|trigger| trigger.field).map(Field::as_str),
        trigger.and_then(|trigger| trigger.meaning.as_deref()),
        trigger.map(|trigger| trigger.threshold as f32),
        kept.author.as_str(),
        kept.status.as_str(),
        kept.may_stop,
        kept.asks_person,
        &kept.evidence,
        kept.fingerprint,
        kept.person as Option<PersonId>,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id)
}

/// Changes a lesson, and says how it is then.
pub async fn change(db: &Db, id: LessonId, change: LessonChange) -> Result<Lesson, LessonError> {
    let mut tx = db.begin().await?;
    sqlx::query!("select id from mem_lessons where id = $1 for update", id.0)
        .fetch_optional(&mut *tx)
        .await?
        .ok_or(LessonError::Unknown(id.0))?;
    let old = one(&mut tx, id).await?;
    let title = change.title.as_deref().unwrap_or(&old.title);
    let rule = change.rule.as_deref().unwrap_or(&old.rule);
    let said = Said::of(Some(title), rule, change.why.as_deref().or(old.why.as_deref()))?;
    let trigger = change.trigger.or(old.trigger).map(Trigger::checked).transpose()?;
    let status = change.status.unwrap_or(old.status);
    let enforced_by = change.enforced_by.or(old.enforced_by).map(|by| redact::clean(by.trim()).into_owned());
    if status == Status::Enforced && enforced_by.as_ref().is_none_or(String::is_empty) {
        return Err(LessonError::EnforcedByNothing);
    }
    let trigger = trigger.as_ref();
    sqlx::query!(
        "update mem_lessons
         set title = $2, rule = $3, why = $4, severity = $5, trigger_tool = $6, trigger_pattern = $7, trigger_field = $8,
             trigger_meaning = $9, trigger_threshold = $10, status = $11, enforced_by = $12, may_stop = $13, asks_person = $14,
             confirmed_at = case when $13 then coalesce(confirmed_at, now()) end, updated_at = now()
         where id = $1",
        id.0,
        said.title,
        said.rule,
        said.why,
        change.severity.unwrap_or(old.severity).as_str(),
        trigger.and_then(|trigger| trigger.tool.as_deref()),
        trigger.and_then(|trigger| trigger.pattern.as_deref()),
        trigger.and_then(|trigger| trigger.field).map(Field::as_str),
        trigger.and_then(|trigger| trigger.meaning.as_deref()),
        trigger.map(|trigger| trigger.threshold as f32),
        status.as_str(),
        enforced_by,
        change.may_stop.unwrap_or(old.may_stop),
        change.asks_person.unwrap_or(old.asks_person),
    )
    .execute(&mut *tx)
    .await?;
    let lesson = one(&mut tx, id).await?;
    keep_note(&mut tx, &lesson).await?;
    tx.commit().await?;
    Ok(lesson)
}

/// What a lesson says, as it is kept: without secrets, and no longer than it is read.
pub(super) struct Said {
    title: String,
    rule: String,
    why: Option<String>,
}

impl Said {
    pub(super) fn of(title: Option<&str>, rule: &str, why: Option<&str>) -> Result<Self, LessonError> {
        let rule = short("rule", rule, MAX_RULE_CHARS)?;
        if rule.is_empty() {
            return Err(LessonError::NoRule);
        }
        let first_line = rule.lines().next().unwrap_or_default().chars().take(MAX_TITLE_CHARS).collect::<String>();
        let title = title.map(str::trim).filter(|title| !title.is_empty()).unwrap_or(&first_line);
        let title = short("title", title, MAX_TITLE_CHARS)?.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = why.map(|why| short("why", why, MAX_RULE_CHARS)).transpose()?.filter(|why| !why.is_empty());
        Ok(Self { title, rule, why })
    }
}

fn short(field: &'static str, text: &str, most: usize) -> Result<String, LessonError> {
    let chars = text.trim().chars().count();
    if chars > most {
        return Err(LessonError::TooLong { field, chars, most });
    }
    Ok(Capped::new(text.trim(), 8 * most).text)
}

async fn project_named(
    connection: &mut PgConnection,
    who: Who,
    name: Option<&str>,
) -> Result<Option<ProjectId>, StoreError> {
    match name.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => project_names::find_own(connection, who, name).await.map(Some),
        None => Ok(None),
    }
}
