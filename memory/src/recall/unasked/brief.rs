//! The brief at a session's start: where the last sessions of the project stopped, what failed and has not worked since, the newest
//! notes. After a resumption or a compaction only what is new, for the rest was told or is remembered.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::frame::{framed, quoted, source, tokens};
use super::{Listener, Place};
use crate::digest::Work;
use crate::ids::{DocumentId, DocumentKind};
use crate::recall::RecallError;
use crate::store::{Db, Occasion, Telling, call_facts, claim_tellings};

/// All of it, with its frame, takes about 1,500 tokens at most.
const MAX_TOKENS: usize = 1_350;
const MAX_SESSIONS: i64 = 3;
const MAX_NOTES: i64 = 10;
const MAX_FAILURES: usize = 5;
/// The calls in which open failures are looked for.
const MAX_CALLS: i64 = 300;
/// What is quoted of the last session's prompt, of its answer and of a note; of earlier sessions half of it.
const MAX_CHARS: usize = 400;

/// How a session started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With nothing.
    New,
    /// With all that it knew.
    Resumed,
    /// With a summary of what it knew.
    Compacted,
}

impl Start {
    /// As agents name it.
    pub fn named(source: Option<&str>) -> Self {
        match source {
            Some("resume" | "fork") => Self::Resumed,
            Some("compact") => Self::Compacted,
            _ => Self::New,
        }
    }
}

/// The headings, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Sessions,
    Failures,
    Notes,
}

impl Section {
    const fn heading(self) -> &'static str {
        match self {
            Self::Sessions => "Where the last sessions stopped:",
            Self::Failures => "Commands that failed last and have not worked since:",
            Self::Notes => "Notes, newest first:",
        }
    }
}

/// One line of the brief.
struct Item {
    section: Section,
    telling: Telling,
    line: String,
}

/// What a session that starts should know, framed; `None` is silence.
pub async fn brief(db: &Db, listener: &Listener, start: Start) -> Result<Option<String>, RecallError> {
    let mut connection = db.acquire().await?;
    let Some(place) = listener.place(&mut connection).await? else { return Ok(None) };
    // What was there before the session's newest prompt it was told, or could have been.
    let since = place.last_prompt_at.filter(|_| start != Start::New);
    let sessions = sessions(&mut connection, &place, since).await?;
    let mut failed_in: Vec<_> = sessions.iter().map(|session| session.id).collect();
    if start == Start::Compacted {
        failed_in.push(place.session.0);
    }
    let failures = failures(&mut connection, &failed_in).await?;
    let notes = notes(&mut connection, &place, since).await?;

    let mut told_sessions = sessions.iter().enumerate().map(|(number, session)| session.told(number));
    // The most telling first, for there may not be room for all.
    let items = told_sessions.next().into_iter().chain(failures).chain(notes).chain(told_sessions);
    let items = fitting(items);
    let tellings: Vec<_> = items.iter().map(|item| item.telling.clone()).collect();
    let claimed = claim_tellings(&mut connection, place.session, Occasion::Brief, &tellings).await?;
    let mut sections: BTreeMap<Section, Vec<String>> = BTreeMap::new();
    for (item, _) in items.into_iter().zip(claimed).filter(|(_, is_new)| *is_new) {
        sections.entry(item.section).or_default().push(item.line);
    }
    let sections: Vec<_> = sections.into_iter().map(|(section, lines)| (section.heading(), lines)).collect();
    Ok(framed(&sections))
}

/// Those that fit into the budget, in their order.
fn fitting(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut left = MAX_TOKENS;
    let fits = |item: &Item| match left.checked_sub(tokens(&item.line)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    items.filter(fits).collect()
}

/// A session that has stopped, or still goes on somewhere else.
struct Stopped {
    id: i64,
    agent: String,
    branch: Option<String>,
    end_reason: Option<String>,
    last_event_at: DateTime<Utc>,
    prompt_id: i64,
    prompt: String,
    answer: Option<String>,
    digest_id: Option<i64>,
    digest: Option<String>,
}

/// The last sessions of the project in which something was asked, newest first.
async fn sessions(
    connection: &mut PgConnection,
    place: &Place,
    since: Option<DateTime<Utc>>,
) -> Result<Vec<Stopped>, RecallError> {
    /// A session that was resumed may have started long before others.
    const LOOKED_AT: i64 = 20;
    let sessions = sqlx::query_as!(
        Stopped,
        r#"select session.id as "id!", agent as "agent!", branch, end_reason, last_event_at as "last_event_at!",
                  last.id as "prompt_id!", last.prompt as "prompt!", last.answer, digest.id as "digest_id?",
                  digest.body as "digest?"
           from (select id, agent, branch, end_reason, last_event_at from mem_sessions
                 where project_id = $1 and id <> $2 and ($3::timestamptz is null or last_event_at > $3)
                 order by started_at desc limit $4) session
           join lateral (select id, prompt, answer from mem_user_prompts
                         where session_id = session.id and prompt is not null
                         order by occurred_at desc, id desc limit 1) last on true
           left join mem_observations digest
               on digest.session_id = session.id and digest.kind = 'digest' and digest.source = 'worker'
           order by last_event_at desc, session.id desc limit $5"#,
        place.project.0,
        place.session.0,
        since,
        LOOKED_AT,
        MAX_SESSIONS,
    )
    .fetch_all(connection)
    .await?;
    Ok(sessions)
}

impl Stopped {
    fn told(&self, number: usize) -> Item {
        let max_chars = if number == 0 { MAX_CHARS } else { MAX_CHARS / 2 };
        let branch = self.branch.as_deref().map(|branch| format!("branch {branch}")).unwrap_or_default();
        let end =
            self.end_reason.as_deref().map_or_else(|| "not ended".to_owned(), |reason| format!("ended: {reason}"));
        let id = DocumentId { kind: DocumentKind::Prompt, row: self.prompt_id };
        let mut text = format!("Asked last: {}", quoted(&self.prompt, max_chars));
        text += &match &self.answer {
            Some(answer) => " Answered: ".to_owned() + &quoted(answer, max_chars),
            None => " It was not answered.".to_owned(),
        };
        let known_by = text.clone();
        if let Some(files) = self.digest.as_deref().and_then(|digest| line_of(digest, "Files changed: ")) {
            // Writing to a string cannot fail.
            let _ = write!(text, " Files changed: {}.", quoted(files, MAX_CHARS / 2));
        }
        if let Some(row) = self.digest_id {
            let _ = write!(text, " Digest: {}.", DocumentId { kind: DocumentKind::Note, row });
        }
        let source = source(Some(id), Some(self.last_event_at), &[&self.agent, &branch, &end]);
        Item {
            section: Section::Sessions,
            telling: Telling { document: Some(id), text: known_by },
            line: format!("{source} {text}"),
        }
    }
}

fn line_of<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(beginning))
}

/// Commands that failed last in these sessions, the last first.
async fn failures(connection: &mut PgConnection, sessions: &[i64]) -> Result<Vec<Item>, RecallError> {
    if sessions.is_empty() {
        return Ok(Vec::new());
    }
    let work = Work::of(&call_facts(connection, sessions, MAX_CALLS).await?);
    let mut open: Vec<_> = work.open_failures().collect();
    open.reverse();
    let items = open.into_iter().take(MAX_FAILURES).map(|failure| {
        let text = format!("`{}`: {}", quoted(&failure.command, MAX_CHARS / 2), quoted(&failure.error, MAX_CHARS / 2));
        let times = if failure.times > 1 { format!(" ({} times)", failure.times) } else { String::new() };
        let at = failure.at.map(|at| source(None, Some(at), &[]) + " ").unwrap_or_default();
        Item {
            section: Section::Failures,
            line: format!("{at}{text}{times}"),
            telling: Telling { document: None, text },
        }
    });
    Ok(items.collect())
}

/// What people and agents noted for the project, newest first.
async fn notes(
    connection: &mut PgConnection,
    place: &Place,
    since: Option<DateTime<Utc>>,
) -> Result<Vec<Item>, RecallError> {
    let rows = sqlx::query!(
        "select id, title, body, source, occurred_at from mem_observations
         where project_id = $1 and kind = 'note' and source in ('person', 'agent') and superseded_by is null
           and ($2::timestamptz is null or occurred_at > $2)
         order by occurred_at desc, id desc limit $3",
        place.project.0,
        since,
        MAX_NOTES,
    )
    .fetch_all(connection)
    .await?;
    let items = rows.into_iter().map(|row| {
        let id = DocumentId { kind: DocumentKind::Note, row: row.id };
        let body = quoted(&row.body, MAX_CHARS);
        let title = quoted(&row.title, MAX_CHARS);
        let text = if body.starts_with(&title) { body } else { format!("{title}: {body}") };
        let by = format!("saved by {}", if row.source == "person" { "a person" } else { "an agent" });
        Item {
            section: Section::Notes,
            line: format!("{} {text}", source(Some(id), Some(row.occurred_at), &[&by])),
            telling: Telling { document: Some(id), text },
        }
    });
    Ok(items.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_how_a_session_started() {
        assert_eq!(Start::named(Some("resume")), Start::Resumed);
        assert_eq!(Start::named(Some("compact")), Start::Compacted);
        for new in [None, Some("startup"), Some("clear"), Some("new")] {
            assert_eq!(Start::named(new), Start::New);
        }
    }

    #[test]
    fn leaves_out_what_does_not_fit() {
        let item = |length: usize| Item {
            section: Section::Notes,
            telling: Telling { document: None, text: String::new() },
            line: "a".repeat(length),
        };
        let kept = fitting([item(4 * MAX_TOKENS - 40), item(400), item(40), item(4)].into_iter());
        assert_eq!(kept.iter().map(|item| item.line.len()).collect::<Vec<_>>(), [4 * MAX_TOKENS - 40, 40]);
    }
}
