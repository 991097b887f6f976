//! What a search asks the index for: what the query's words are worth, who comes in by them and by the meaning (`incoming`, and `few`
//! where there are few), who stands around those, and what is to be known of each (`around`).

mod around;
mod few;
mod incoming;

use sqlx::PgConnection;

use super::plan::Counted;
use super::{Filter, RecallError};
use crate::analyze::{Query, quoted};
use crate::ids::{DocumentId, DocumentKind};

pub(super) use around::{order, seen};
pub(super) use few::{Compared, compare};
pub(super) use incoming::{Candidate, Meaning, by_meaning, by_words, counts};

/// More documents of a project than this are many, and need not be counted.
const MANY: i64 = 5_000;
/// So many are compared one by one in less time than an index takes to find fifty of them among a million others.
const FEW: i64 = 2_000;

/// Up to this part of all, a project's documents are unpacked for their words sooner than the index of all words is gone through.
const SMALL_PART: f64 = 1.0 / 30.0;

/// How many documents there are, and how many hold each term of the query.
#[derive(Debug)]
pub(super) struct Statistics {
    pub(super) documents: f64,
    pub(super) average_length: f64,
    /// Of all documents, the part that stands in the projects asked for, where that is small.
    pub(super) share: f64,
    /// Whether the projects asked for hold so few documents that each is compared by its meaning.
    pub(super) are_few: bool,
    /// Whether each is compared by its words as well.
    pub(super) are_a_small_part: bool,
    pub(super) terms: Vec<Counted>,
    /// Documents that had no vector of the present model when the server last counted them.
    pub(super) without_vector: f64,
}

pub(super) async fn statistics(
    connection: &mut PgConnection,
    query: &Query,
    filter: &Filter,
) -> Result<Statistics, RecallError> {
    let lexemes: Vec<_> = query.terms.iter().map(|term| term.lexeme.clone()).collect();
    let (projects, _) = parameters(filter);
    let found = sqlx::query!(
        r#"select documents as "documents!", average_length as "average_length!",
                  documents_without_vector as "without_vector!",
                  array(select coalesce(counted.documents, 0)
                        from unnest($1::text[]) with ordinality as term (lexeme, place)
                        left join mem_lexemes counted using (lexeme) order by place) as "holding!: Vec<i64>",
                  case when $2::bigint[] is null then $3
                       else (select count(*) from (select from mem_search_index where project_id = any($2) limit $3) scoped) end
                      as "scoped!"
           from mem_search_statistics"#,
        &lexemes,
        projects.as_deref(),
        MANY,
    )
    .fetch_one(connection)
    .await?;
    let documents = (found.documents as f64).max(1.0);
    let share = if found.scoped < MANY { (found.scoped as f64 / documents).min(1.0) } else { 1.0 };
    let terms = query.terms.iter().zip(found.holding).map(|(term, holding)| Counted {
        term: term.clone(),
        // Nobody has counted it yet, so it is rare.
        documents: (holding as f64).max(1.0),
        is_unknown: holding == 0,
    });
    let are_few = projects.is_some() && found.scoped <= FEW;
    Ok(Statistics {
        documents,
        average_length: found.average_length,
        share,
        are_few,
        are_a_small_part: are_few && share <= SMALL_PART,
        terms: terms.collect(),
        without_vector: found.without_vector as f64,
    })
}

/// Each term as a `tsquery`.
pub(super) fn terms(query: &Query) -> Vec<String> {
    query.terms.iter().map(|term| quoted(&term.lexeme)).collect()
}

fn columns(ids: &[DocumentId]) -> (Vec<String>, Vec<i64>) {
    ids.iter().map(|id| (id.kind.as_str().to_owned(), id.row)).unzip()
}

fn id(kind: &str, row: i64) -> Option<DocumentId> {
    Some(DocumentId { kind: kind.parse::<DocumentKind>().ok()?, row })
}

/// Every project, and an empty choice of kinds, are what SQL sees as null.
fn parameters(filter: &Filter) -> (Option<Vec<i64>>, Option<Vec<String>>) {
    let kinds = filter.kinds.iter().map(|kind| kind.as_str().to_owned()).collect::<Vec<_>>();
    (filter.projects.ids(), (!kinds.is_empty()).then_some(kinds))
}
