//! Who stands around the documents that came in, and what is to be known of all of them.

use std::collections::HashMap;

use pgvector::HalfVector;
use sqlx::PgConnection;

use super::{Meaning, columns, id, parameters, terms};
use crate::analyze::Query;
use crate::ids::DocumentId;
use crate::recall::bm25::{Counts, occurrences};
use crate::recall::nearby::{Order, REACH, Seen};
use crate::recall::{Filter, RecallError};

/// Who stands around each of these in its session; a document without a session stands alone.
pub(in crate::recall) async fn order(
    connection: &mut PgConnection,
    seeds: &[DocumentId],
) -> Result<Order, RecallError> {
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
pub(in crate::recall) async fn seen(
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
