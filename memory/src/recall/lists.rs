//! The two rankings that a search fuses: by words and by meaning.

use sqlx::PgConnection;

use super::{Filter, RankedList, RecallError};
use crate::embed::QueryVector;
use crate::ids::{DocumentId, DocumentKind};
use crate::store::padded;

/// How deep each list goes: enough for fusion to find what both hold, few enough to be read in milliseconds.
const DEPTH: i64 = 100;

/// Documents that hold any word of the query, by how densely they hold them.
pub(super) async fn by_words(
    connection: &mut PgConnection,
    query: &str,
    filter: &Filter,
) -> Result<RankedList, RecallError> {
    let (projects, kinds) = parameters(filter);
    let rows = sqlx::query!(
        // Stop words are in most documents: they would make a query read them all and rank by them. They count only where a query
        // holds nothing else.
        r#"with word as (
               select lexeme, ts_lexize('english_stem', lexeme) = '{}' as is_stop_word
               from unnest(to_tsvector('english', $1) || to_tsvector('simple', $1))
           ), query as (
               select string_agg(quote_literal(lexeme), ' | ')::tsquery as words from word
               where not is_stop_word or not exists (select from word where not is_stop_word)
           )
           select document_kind, document_id
           from mem_search_index, query
           where lexemes @@ query.words
             and ($2::bigint[] is null or project_id = any($2))
             and ($3::text[] is null or document_kind = any($3))
             and ($4::timestamptz is null or occurred_at >= $4)
             and ($5::timestamptz is null or occurred_at <= $5)
           order by ts_rank_cd(lexemes, query.words, 1) desc, occurred_at desc
           limit $6"#,
        crate::analyze::searchable(query),
        projects.as_deref(),
        kinds.as_deref(),
        filter.from,
        filter.until,
        DEPTH,
    )
    .fetch_all(connection)
    .await?;
    Ok(ranked("words", rows.into_iter().map(|row| (row.document_kind, row.document_id))))
}

/// Documents whose vectors, made by the same model, are nearest to the query's.
pub(super) async fn by_meaning(
    connection: &mut PgConnection,
    query: QueryVector,
    filter: &Filter,
) -> Result<RankedList, RecallError> {
    let (projects, kinds) = parameters(filter);
    let rows = sqlx::query!(
        r#"select document_kind, document_id
           from mem_search_index
           where embedding_model_id = (select id from mem_embedding_models where name = $2)
             and ($3::bigint[] is null or project_id = any($3))
             and ($4::text[] is null or document_kind = any($4))
             and ($5::timestamptz is null or occurred_at >= $5)
             and ($6::timestamptz is null or occurred_at <= $6)
           order by embedding <=> $1
           limit $7"#,
        padded(query.vector) as pgvector::Vector,
        query.model,
        projects.as_deref(),
        kinds.as_deref(),
        filter.from,
        filter.until,
        DEPTH,
    )
    .fetch_all(connection)
    .await?;
    Ok(ranked("meaning", rows.into_iter().map(|row| (row.document_kind, row.document_id))))
}

/// An empty choice means no choice, which SQL sees as null.
fn parameters(filter: &Filter) -> (Option<Vec<i64>>, Option<Vec<String>>) {
    let projects = filter.projects.iter().map(|id| id.0).collect::<Vec<_>>();
    let kinds = filter.kinds.iter().map(|kind| kind.as_str().to_owned()).collect::<Vec<_>>();
    ((!projects.is_empty()).then_some(projects), (!kinds.is_empty()).then_some(kinds))
}

fn ranked(name: &'static str, rows: impl Iterator<Item = (String, i64)>) -> RankedList {
    let documents =
        rows.filter_map(|(kind, row)| Some(DocumentId { kind: kind.parse::<DocumentKind>().ok()?, row })).collect();
    RankedList { name, documents }
}
