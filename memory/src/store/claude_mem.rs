//! The SQLite database of claude-mem, read a page at a time. Written against version 13.25; older ones lack some columns, and
//! what is not there is left out.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _, SqliteConnection};

use super::imports::{ImportedNote, NoteKind};

#[derive(Debug, thiserror::Error)]
pub enum ClaudeMemError {
    #[error("`{path}` could not be read as an SQLite database")]
    Read { path: PathBuf, source: sqlx::Error },
    #[error("`{path}` is no database of claude-mem: it has none of its tables")]
    NotClaudeMem { path: PathBuf },
}

/// An open database, and how far it was read.
pub struct ClaudeMem {
    path: PathBuf,
    connection: SqliteConnection,
    tables: Vec<Table>,
    last_id: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Observations,
    Summaries,
    Prompts,
}

impl Table {
    /// In the order in which they are read, the last first.
    const ALL: [Self; 3] = [Self::Prompts, Self::Summaries, Self::Observations];

    const fn name(self) -> &'static str {
        match self {
            Self::Observations => "observations",
            Self::Summaries => "session_summaries",
            Self::Prompts => "user_prompts",
        }
    }
}

const PAGE_ROWS: i64 = 200;

impl ClaudeMem {
    /// Opens the database for reading only; claude-mem may go on using it.
    pub async fn open(path: &Path) -> Result<Self, ClaudeMemError> {
        let failed = |source| ClaudeMemError::Read { path: path.to_owned(), source };
        let options = SqliteConnectOptions::new().filename(path).read_only(true);
        let mut connection = options.connect().await.map_err(failed)?;
        let names: Vec<String> = sqlx::query_scalar("select name from sqlite_master where type = 'table'")
            .fetch_all(&mut connection)
            .await
            .map_err(failed)?;
        let tables: Vec<_> =
            Table::ALL.into_iter().filter(|table| names.iter().any(|name| name == table.name())).collect();
        if tables.is_empty() || !names.iter().any(|name| name == "sdk_sessions") {
            return Err(ClaudeMemError::NotClaudeMem { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), connection, tables, last_id: 0 })
    }

    /// The next notes; empty when all were read.
    pub async fn next(&mut self) -> Result<Vec<ImportedNote>, ClaudeMemError> {
        while let Some(table) = self.tables.last().copied() {
            let rows =
                self.page(table).await.map_err(|source| ClaudeMemError::Read { path: self.path.clone(), source })?;
            if let Some(row) = rows.last() {
                self.last_id = row.get("note_id");
            } else {
                self.tables.pop();
                self.last_id = 0;
                continue;
            }
            return Ok(rows.iter().map(|row| note_of(table, row)).collect());
        }
        Ok(Vec::new())
    }

    async fn page(&mut self, table: Table) -> Result<Vec<SqliteRow>, sqlx::Error> {
        // A prompt knows its session by Claude Code's id and finds its project there; the others the other way round.
        let name = table.name();
        let query = match table {
            Table::Prompts => format!(
                "select t.id as note_id, s.project as session_project, t.* from {name} t
                 left join sdk_sessions s on s.id = (select min(id) from sdk_sessions
                                                     where content_session_id = t.content_session_id)
                 where t.id > ? order by t.id limit ?"
            ),
            Table::Observations | Table::Summaries => format!(
                "select t.id as note_id, s.content_session_id as content_session_id, t.* from {name} t
                 left join sdk_sessions s on s.memory_session_id = t.memory_session_id
                 where t.id > ? order by t.id limit ?"
            ),
        };
        sqlx::query(AssertSqlSafe(query)).bind(self.last_id).bind(PAGE_ROWS).fetch_all(&mut self.connection).await
    }
}

fn note_of(table: Table, row: &SqliteRow) -> ImportedNote {
    let text = |name: &str| {
        let text: Option<String> = row.try_get(name).ok().flatten();
        text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let (title, body) = match table {
        Table::Observations => observation(&text),
        Table::Summaries => summary(&text),
        Table::Prompts => {
            let prompt = text("prompt_text").unwrap_or_default();
            (first_line(&prompt), prompt)
        }
    };
    let occurred_at = occurred_at(row);
    let session = text("content_session_id");
    let mut digest = Sha256::new();
    for part in [table.name(), session.as_deref().unwrap_or_default(), &title, &body, &occurred_at.to_rfc3339()] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let mut hex = String::with_capacity(32);
    for byte in digest.finalize().iter().take(16) {
        // Writing to a String does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    ImportedNote {
        key: format!("claude-mem:{}:{hex}", table.name()),
        kind: if table == Table::Summaries { NoteKind::Digest } else { NoteKind::Note },
        project: text("project").or_else(|| text("session_project")),
        session,
        title,
        body,
        is_prompt: table == Table::Prompts,
        occurred_at,
    }
}

fn observation(text: &dyn Fn(&str) -> Option<String>) -> (String, String) {
    let mut body = String::new();
    for part in [text("subtitle"), text("narrative"), text("text")].into_iter().flatten() {
        let _ = writeln!(body, "{part}\n");
    }
    for fact in text("facts").map(|facts| listed(&facts)).unwrap_or_default() {
        let _ = writeln!(body, "- {fact}");
    }
    for (label, name) in
        [("Kind", "type"), ("About", "concepts"), ("Read", "files_read"), ("Changed", "files_modified")]
    {
        let listed = text(name).map(|text| listed(&text)).unwrap_or_default();
        if !listed.is_empty() {
            let _ = writeln!(body, "{label}: {}", listed.join(", "));
        }
    }
    let title = text("title").unwrap_or_else(|| first_line(&body));
    (title, body.trim().to_owned())
}

fn summary(text: &dyn Fn(&str) -> Option<String>) -> (String, String) {
    let mut body = String::new();
    for (label, name) in [
        ("Request", "request"),
        ("Investigated", "investigated"),
        ("Learned", "learned"),
        ("Completed", "completed"),
        ("Next steps", "next_steps"),
        ("Notes", "notes"),
    ] {
        if let Some(part) = text(name) {
            let _ = writeln!(body, "{label}: {part}");
        }
    }
    for (label, name) in [("Read", "files_read"), ("Changed", "files_edited")] {
        let listed = text(name).map(|text| listed(&text)).unwrap_or_default();
        if !listed.is_empty() {
            let _ = writeln!(body, "{label}: {}", listed.join(", "));
        }
    }
    let title = text("request").map_or_else(|| first_line(&body), |request| first_line(&request));
    (title, body.trim().to_owned())
}

/// The strings of a JSON array, or the text itself.
fn listed(text: &str) -> Vec<String> {
    match serde_json::from_str::<Vec<serde_json::Value>>(text) {
        Ok(items) => items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect(),
        Err(_) => vec![text.to_owned()],
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(120).collect()
}

/// Its column counts milliseconds; the oldest versions counted seconds.
fn occurred_at(row: &SqliteRow) -> DateTime<Utc> {
    const LATEST_SECONDS: i64 = 100_000_000_000;
    let epoch: i64 = row.try_get("created_at_epoch").unwrap_or_default();
    let ms = if epoch < LATEST_SECONDS { epoch.saturating_mul(1_000) } else { epoch };
    let written: Option<String> = row.try_get("created_at").ok().flatten();
    let written = written.and_then(|text| DateTime::parse_from_rfc3339(&text).ok()).map(|at| at.to_utc());
    DateTime::from_timestamp_millis(ms).filter(|_| epoch > 0).or(written).unwrap_or_default()
}
