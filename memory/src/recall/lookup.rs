//! What a search asks the index for: what the query's words are worth, who comes in by them and by the meaning, who stands around
//! those, and what is to be known of each.

use std::collections::HashMap;

use pgvector::HalfVector;
use sqlx::PgConnection;

use super::bm25::{Counts, occurrences};
use super::nearby::{Order, REACH, Seen};
use super::plan::{Counted, Wanted};
use super::{Filter, RecallError};
use crate::analyze::{Query, quoted};
use crate::ids::{DocumentId, DocumentKind};

/// More documents of a project than this are many, and need not be counted.
const MANY: i64 = 5_000;
/// So many are compared one by one in less time than an index takes to find fifty of them among a million others.
const FEW: i64 = 4_000;

/// How many documents there are, and how many hold each term of the query.
#[derive(Debug)]
pub(super) struct Statistics {
    pub(super) documents: f64,
    pub(super) average_length: f64,
    /// Of all documents, the part that stands in the projects asked for, where that is small.
    pub(super) share: f64,
    /// Whether the projects asked for hold so few documents that each is compared.
    pub(super) are_few: bool,
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
    });
    Ok(Statistics {
        documents,
        average_length: found.average_length,
        share,
        are_few: projects.is_some() && found.scoped <= FEW,
        terms: terms.collect(),
        without_vector: found.without_vector as f64,
    })
}

/// A document that comes in by its words, with which of them it holds: once each, since how often costs more to tell than all else.
pub(super) struct Candidate {
    pub(super) id: DocumentId,
    pub(super) counts: Counts,
}

/// Documents that match, in no order.
pub(super) async fn by_words(
    connection: &mut PgConnection,
    wanted: &Wanted,
    query: &Query,
    filter: &Filter,
) -> Result<Vec<Candidate>, RecallError> {
    /// A bound for what the statistics did not foresee.
    const MOST: i64 = 4_000;
    let (projects, kinds) = parameters(filter);
    let terms = terms(query);
    // One scan of the index each; the rows themselves need not be unpacked.
    let scans: Vec<(String, Vec<usize>)> = match wanted {
        Wanted::Any(places) => places.iter().map(|place| (terms[*place].clone(), vec![*place])).collect(),
        Wanted::All(places) => {
            let all: Vec<_> = places.iter().map(|place| terms[*place].clone()).collect();
            vec![(all.join(" & "), places.clone())]
        }
    };
    let rows = sqlx::query!(
        r#"select scan.place as "place!", document.document_kind as "document_kind!", document.document_id as "document_id!",
                  document.length as "length!"
           from unnest($1::text[]) with ordinality as scan (wanted, place)
           cross join lateral (
               select document_kind, document_id, length
               from mem_search_index
               where lexemes @@ scan.wanted::tsquery
                 and ($2::text is null or lexemes @@ $2::text::tsquery)
                 and ($3::bigint[] is null or project_id = any($3))
                 and ($4::text[] is null or document_kind = any($4))
                 and ($5::timestamptz is null or occurred_at >= $5)
                 and ($6::timestamptz is null or occurred_at <= $6)
                 and ($8::text is null and $9::text is null
                      or session_id in (select id from mem_sessions
                                        where coalesce(agent = $8, true) and coalesce(branch = $9, $9 is null)))
               limit $7) document"#,
        &scans.iter().map(|(wanted, _)| wanted.clone()).collect::<Vec<_>>(),
        query.condition,
        projects.as_deref(),
        kinds.as_deref(),
        filter.from,
        filter.until,
        MOST,
        filter.agent,
        filter.branch,
    )
    .fetch_all(connection)
    .await?;
    let mut candidates: HashMap<DocumentId, Candidate> = HashMap::new();
    for row in rows {
        let Some(id) = id(&row.document_kind, row.document_id) else { continue };
        let none = || Counts { occurrences: vec![0.0; terms.len()], length: f64::from(row.length) };
        let candidate = candidates.entry(id).or_insert_with(|| Candidate { id, counts: none() });
        for place in &scans[row.place as usize - 1].1 {
            candidate.counts.occurrences[*place] = 1.0;
        }
    }
    Ok(candidates.into_values().collect())
}

/// A query's vector as it is stored, and its model.
pub(super) struct Meaning {
    pub(super) vector: HalfVector,
    pub(super) model: String,
}

/// The nearest documents among those whose vectors the same model made.
pub(super) async fn by_meaning(
    connection: &mut PgConnection,
    meaning: &Meaning,
    query: &Query,
    filter: &Filter,
    limit: i64,
) -> Result<Vec<DocumentId>, RecallError> {
    let (projects, kinds) = parameters(filter);
    let rows = sqlx::query!(
        r#"select document_kind, document_id
           from mem_search_index
           where embedding_model_id = (select id from mem_embedding_models where name = $2)
             and ($3::text is null or lexemes @@ $3::text::tsquery)
             and ($4::bigint[] is null or project_id = any($4))
             and ($5::text[] is null or document_kind = any($5))
             and ($6::timestamptz is null or occurred_at >= $6)
             and ($7::timestamptz is null or occurred_at <= $7)
             and ($9::text is null and $10::text is null
                  or session_id in (select id from mem_sessions
                                    where coalesce(agent = $9, true) and coalesce(branch = $10, $10 is null)))
           order by embedding <=> $1
           limit $8"#,
        &meaning.vector as &HalfVector,
        meaning.model,
        query.condition,
        projects.as_deref(),
        kinds.as_deref(),
        filter.from,
        filter.until,
        limit,
        filter.agent,
        filter.branch,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(|row| id(&row.document_kind, row.document_id)).collect())
}

/// The same, by comparing all documents of the projects asked for.
pub(super) async fn by_meaning_of_all(
    connection: &mut PgConnection,
    meaning: &Meaning,
    query: &Query,
    filter: &Filter,
    limit: i64,
) -> Result<Vec<DocumentId>, RecallError> {
    let (projects, kinds) = parameters(filter);
    let rows = sqlx::query!(
        // The offset keeps the planner from walking through the index of all projects.
        r#"select document_kind as "document_kind!", document_id as "document_id!"
           from (select document_kind, document_id, embedding <=> $1 as distance
                 from mem_search_index
                 where project_id = any($4)
                   and embedding_model_id = (select id from mem_embedding_models where name = $2)
                   and ($3::text is null or lexemes @@ $3::text::tsquery)
                   and ($5::text[] is null or document_kind = any($5))
                   and ($6::timestamptz is null or occurred_at >= $6)
                   and ($7::timestamptz is null or occurred_at <= $7)
                   and ($9::text is null and $10::text is null
                        or session_id in (select id from mem_sessions
                                          where coalesce(agent = $9, true) and coalesce(branch = $10, $10 is null)))
                 offset 0) scoped
           order by distance
           limit $8"#,
        &meaning.vector as &HalfVector,
        meaning.model,
        query.condition,
        projects.as_deref(),
        kinds.as_deref(),
        filter.from,
        filter.until,
        limit,
        filter.agent,
        filter.branch,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(|row| id(&row.document_kind, row.document_id)).collect())
}

/// Who stands around each of these in its session; a document without a session stands alone.
pub(super) async fn order(connection: &mut PgConnection, seeds: &[DocumentId]) -> Result<Order, RecallError> {
    let (kinds, rows) = columns(seeds);
    let windows = sqlx::query!(
        r#"with seed as materialized (
               select place, document_kind, document_id, session_id, occurred_at
               from unnest($1::text[], $2::bigint[]) with ordinality as asked (document_kind, document_id, place)
               join mem_search_index using (document_kind, document_id)
               where session_id is not null
           )
           select seed.place as "place!", near.document_kind as "document_kind!", near.document_id as "document_id!"
           from seed cross join lateral (
               (select document_kind, document_id, occurred_at from mem_search_index
                where session_id = seed.session_id
                  and (occurred_at, document_kind, document_id)
                      <= (seed.occurred_at, seed.document_kind, seed.document_id)
                order by occurred_at desc, document_kind desc, document_id desc limit $3::bigint + 1)
               union all
               (select document_kind, document_id, occurred_at from mem_search_index
                where session_id = seed.session_id
                  and (occurred_at, document_kind, document_id)
                      > (seed.occurred_at, seed.document_kind, seed.document_id)
                order by occurred_at, document_kind, document_id limit $3::bigint)
           ) near
           order by seed.place, near.occurred_at, near.document_kind, near.document_id"#,
        &kinds,
        &rows,
        REACH,
    )
    .fetch_all(connection)
    .await?;
    let mut order = Order::default();
    for window in windows.chunk_by(|one, two| one.place == two.place) {
        let run: Vec<_> = window.iter().filter_map(|row| id(&row.document_kind, row.document_id)).collect();
        order.add(&run);
    }
    Ok(order)
}

/// What is to be known of documents, whether they come in themselves or stand around.
pub(super) async fn seen(
    connection: &mut PgConnection,
    ids: &[DocumentId],
    query: &Query,
    meaning: Option<&Meaning>,
    filter: &Filter,
) -> Result<HashMap<DocumentId, Seen>, RecallError> {
    let (kinds, rows) = columns(ids);
    let (projects, wanted_kinds) = parameters(filter);
    let rows = sqlx::query!(
        r#"with term as materialized (
               select lexeme::tsquery as lexeme, place from unnest($3::text[]) with ordinality as term (lexeme, place)
           )
           select document_kind as "document_kind!", document_id as "document_id!", length as "length!",
                  array(select ts_rank('{1,1,1,1}', unpacked, lexeme) from term order by place) as "ranks!: Vec<f32>",
                  similarity, coalesce(fits, false) as "fits!"
           from (select document_kind, document_id, length, lexemes || '' as unpacked,
                        case when embedding_model_id = (select id from mem_embedding_models where name = $5)
                             then 1 - (embedding <=> $4::halfvec) end as similarity,
                        ($6::text is null or lexemes @@ $6::text::tsquery)
                        and ($7::bigint[] is null or project_id = any($7))
                        and ($8::text[] is null or document_kind = any($8))
                        and ($9::timestamptz is null or occurred_at >= $9)
                        and ($10::timestamptz is null or occurred_at <= $10)
                        and ($11::text is null and $12::text is null
                             or session_id in (select id from mem_sessions
                                               where coalesce(agent = $11, true)
                                                 and coalesce(branch = $12, $12 is null))) as fits
                 from mem_search_index
                 join unnest($1::text[], $2::bigint[]) as asked (document_kind, document_id)
                      using (document_kind, document_id)
                 offset 0) document"#,
        &kinds,
        &rows,
        &terms(query),
        meaning.map(|meaning| &meaning.vector) as Option<&HalfVector>,
        meaning.map(|meaning| meaning.model.as_str()),
        query.condition,
        projects.as_deref(),
        wanted_kinds.as_deref(),
        filter.from,
        filter.until,
        filter.agent,
        filter.branch,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let id = id(&row.document_kind, row.document_id)?;
            let counts =
                Counts { occurrences: row.ranks.into_iter().map(occurrences).collect(), length: f64::from(row.length) };
            Some((id, Seen { id, counts, similarity: row.similarity, fits: row.fits }))
        })
        .collect())
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

/// An empty choice means no choice, which SQL sees as null.
fn parameters(filter: &Filter) -> (Option<Vec<i64>>, Option<Vec<String>>) {
    let projects = filter.projects.iter().map(|id| id.0).collect::<Vec<_>>();
    let kinds = filter.kinds.iter().map(|kind| kind.as_str().to_owned()).collect::<Vec<_>>();
    ((!projects.is_empty()).then_some(projects), (!kinds.is_empty()).then_some(kinds))
}
