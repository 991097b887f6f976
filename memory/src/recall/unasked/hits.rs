//! What helps with a prompt: at most two documents of the same project and of other sessions, or nothing.

use std::collections::{BTreeSet, HashSet};

use sqlx::PgConnection;

use super::frame::{framed, quoted, source};
use super::{Listener, Place};
use crate::access::Projects;
use crate::analyze::Query;
use crate::embed::QueryVector;
use crate::ids::{DocumentId, DocumentKind, SessionId};
use crate::recall::lookup::Meaning;
use crate::recall::relevance::{evidence, is_relevant};
use crate::recall::{Details, Filter, RecallError, SearchRequest, details, search};
use crate::store::{Db, Occasion, Telling, claim_tellings, padded};

/// More would be a list, and a list is what `search` gives to who asks.
const MAX_HITS: usize = 2;
/// So many hits are looked at: the session's own documents, which match best, are among them.
const LOOKED_AT: usize = 30;
/// Fewer words than this say nothing that could be looked for.
const MIN_WORDS: usize = 3;
/// What is quoted of a document.
const MAX_CHARS: usize = 400;

/// Whether a prompt says anything that could be looked for: not `ok`, not `continue`, not a slash command.
pub fn is_worth_a_search(prompt: &str) -> bool {
    let prompt = prompt.trim();
    let is_command = prompt.strip_prefix('/').is_some_and(|rest| {
        let name = rest.split_whitespace().next().unwrap_or_default();
        !name.is_empty() && !name.contains(['/', '.'])
    });
    // What begins with a tag was written by the client.
    if is_command || prompt.starts_with('<') {
        return false;
    }
    let words: BTreeSet<_> = Query::parse(&plain(prompt)).terms.into_iter().map(|term| term.word).collect();
    words.len() >= MIN_WORDS
}

/// What helps with the prompt, framed; `None` is silence.
pub async fn prompt_hits(
    db: &Db,
    listener: &Listener,
    prompt: &str,
    vector: Option<QueryVector>,
) -> Result<Option<String>, RecallError> {
    if !is_worth_a_search(prompt) {
        return Ok(None);
    }
    let mut connection = db.acquire().await?;
    let Some(place) = listener.place(&mut connection).await? else { return Ok(None) };
    drop(connection);
    let candidates = candidates(db, &place, &plain(prompt), vector).await?;
    if candidates.is_empty() {
        return Ok(None);
    }
    let mut lines = Vec::new();
    for document in details(db, &candidates, &Projects::These(vec![place.project])).await? {
        let Some((telling, line)) = told(&document) else { continue };
        let mut connection = db.acquire().await?;
        if claim_tellings(&mut connection, place.session, Occasion::PromptHits, &[telling]).await? == [true] {
            lines.push(line);
        }
        if lines.len() == MAX_HITS {
            break;
        }
    }
    Ok(framed(&[("What may help with this prompt:", lines)]))
}

/// A prompt is no query: its quotes are no phrases, its dashes leave nothing out.
fn plain(prompt: &str) -> String {
    let words = prompt.split_whitespace().map(|word| word.trim_matches(['"', '“', '”', '„']).trim_start_matches('-'));
    words.collect::<Vec<_>>().join(" ").replace(['"', '“', '”', '„'], " ")
}

/// Documents that are relevant and new to the session, best first.
async fn candidates(
    db: &Db,
    place: &Place,
    query: &str,
    vector: Option<QueryVector>,
) -> Result<Vec<DocumentId>, RecallError> {
    let filter = Filter { projects: Projects::These(vec![place.project]), ..Filter::default() };
    let meaning = vector.clone().map(|vector| Meaning { vector: padded(vector.vector), model: vector.model });
    let request = SearchRequest { query: query.to_owned(), vector, filter: filter.clone(), limit: LOOKED_AT };
    let hits = search(db, request).await?.hits;
    let mut connection = db.acquire().await?;
    let found: Vec<_> = hits.iter().map(|hit| hit.line.id).collect();
    let known = known(&mut connection, place.session, &found).await?;
    let new: Vec<_> = found.into_iter().filter(|id| !known.contains(id)).collect();
    if new.is_empty() {
        return Ok(new);
    }
    let evidence = evidence(&mut connection, &Query::parse(query), meaning.as_ref(), &filter, &new).await?;
    Ok(new.into_iter().filter(|id| evidence.get(id).is_some_and(is_relevant)).collect())
}

/// Those of the session itself, and those that it was told of.
async fn known(
    connection: &mut PgConnection,
    session: SessionId,
    ids: &[DocumentId],
) -> Result<HashSet<DocumentId>, RecallError> {
    let kinds: Vec<_> = ids.iter().map(|id| id.kind.as_str().to_owned()).collect();
    let rows: Vec<_> = ids.iter().map(|id| id.row).collect();
    let known = sqlx::query!(
        r#"select kind as "kind!", id as "id!" from unnest($2::text[], $3::bigint[]) as asked (kind, id)
           where exists (select from mem_search_index
                         where document_kind = kind and document_id = id and session_id = $1)
              or exists (select from mem_injections
                         where session_id = $1 and document_kind = kind and document_id = asked.id)
              or (kind = 'note' and exists (select from mem_observations note
                                            where note.id = asked.id
                                              and (session_id = $1 or superseded_by is not null)))"#,
        session as SessionId,
        &kinds,
        &rows,
    )
    .fetch_all(connection)
    .await?;
    let known = known
        .into_iter()
        .filter_map(|row| Some(DocumentId { kind: row.kind.parse::<DocumentKind>().ok()?, row: row.id }));
    Ok(known.collect())
}

/// A document as it is told, and by what it is known again. A question that got no answer tells nothing.
fn told(document: &Details) -> Option<(Telling, String)> {
    let line = &document.line;
    let excerpt = |text: Option<&str>| quoted(text.unwrap_or_default(), MAX_CHARS);
    let (known_by, text) = match line.id.kind {
        // The same command again is the same, whatever it gave back.
        DocumentKind::Call => {
            let outcome = match (line.failed, &document.error) {
                (Some(true), Some(error)) => format!(" (failed: {})", quoted(error, MAX_CHARS / 2)),
                (Some(true), None) => " (failed)".to_owned(),
                _ => " (succeeded)".to_owned(),
            };
            let headline = quoted(&line.headline, MAX_CHARS);
            (format!("{headline} {:?}", line.failed), headline + &outcome)
        }
        DocumentKind::Prompt => {
            let answered = quoted(document.answer.as_deref()?, MAX_CHARS);
            let text = format!("Asked: {} Answered: {answered}", excerpt(document.text.as_deref()));
            (text.clone(), text)
        }
        DocumentKind::Note => {
            let body = excerpt(document.text.as_deref());
            // Without a title of its own a note is called by its beginning.
            let title = line.headline.trim_end_matches('…');
            let text = if body.starts_with(title) { body } else { format!("{}: {body}", quoted(title, MAX_CHARS)) };
            (text.clone(), text)
        }
    };
    let agent = document.agent.as_deref().unwrap_or("note");
    let source = source(Some(line.id), Some(line.occurred_at), &[agent]);
    Some((Telling { document: Some(line.id), text: known_by }, format!("{source} {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_for_nothing_where_nothing_is_said() {
        for trivial in [
            "ok",
            "continue",
            "yes please",
            "/compact",
            "/model opus now then",
            "what is this?",
            "<tick>a b c</tick>",
            "",
        ] {
            assert!(!is_worth_a_search(trivial), "{trivial}");
        }
        for telling in ["fix the flaky migration test", "/srv/w/tests/db.rs fails with a timeout", "修复数据库迁移测试"]
        {
            assert!(is_worth_a_search(telling), "{telling}");
        }
    }

    #[test]
    fn takes_a_prompt_for_words_alone() {
        let query = Query::parse(&plain("run \"cargo test\" -without the cache, say “done”"));
        assert_eq!(query.condition, None);
        assert!(query.terms.iter().any(|term| term.lexeme == "without" || term.lexeme == "cargo"));
    }
}
