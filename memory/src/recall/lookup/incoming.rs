//! Who comes in by the indexes: by words, how often they hold them, and by meaning.

use std::collections::HashMap;

use pgvector::HalfVector;
use sqlx::PgConnection;

use super::{columns, id, parameters, terms};
use crate::analyze::Query;
use crate::ids::DocumentId;
use crate::recall::bm25::{Counts, occurrences};
use crate::recall::plan::{BUDGET, Wanted};
use crate::recall::{Filter, RecallError};

/// A document that may come in by its words.
pub(in crate::recall) struct Candidate {
    pub(in crate::recall) id: DocumentId,
    pub(in crate::recall) counts: Counts,
}

/// Documents that match, in no order, with which terms they hold: once each, since how often costs more to tell than all else.
pub(in crate::recall) async fn by_words(
    connection: &mut PgConnection,
    wanted: &Wanted,
    query: &Query,
    filter: &Filter,
) -> Result<Vec<Candidate>, RecallError> {
    /// A bound for what the statistics did not foresee.
    const MOST: i64 = BUDGET as i64;
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

/// How often documents hold each term.
pub(in crate::recall) async fn counts(
    connection: &mut PgConnection,
    ids: &[DocumentId],
    query: &Query,
) -> Result<Vec<Candidate>, RecallError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (kinds, rows) = columns(ids);
    let rows = sqlx::query!(
        // `lexemes || ''` unpacks them once a document instead of once a term.
        r#"with term as materialized (
               select lexeme::tsquery as lexeme, place from unnest($3::text[]) with ordinality as term (lexeme, place)
           )
           select document_kind as "document_kind!", document_id as "document_id!", length as "length!",
                  array(select ts_rank('{1,1,1,1}', unpacked, lexeme) from term order by place) as "ranks!: Vec<f32>"
           from (select document_kind, document_id, length, lexemes || '' as unpacked
                 from mem_search_index
                 join unnest($1::text[], $2::bigint[]) as asked (document_kind, document_id)
                      using (document_kind, document_id)
                 offset 0) document"#,
        &kinds,
        &rows,
        &terms(query),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let counts =
                Counts { occurrences: row.ranks.into_iter().map(occurrences).collect(), length: f64::from(row.length) };
            Some(Candidate { id: id(&row.document_kind, row.document_id)?, counts })
        })
        .collect())
}

/// A query's vector as it is stored, and its model.
pub(in crate::recall) struct Meaning {
    pub(in crate::recall) vector: HalfVector,
    pub(in crate::recall) model: String,
}

/// The nearest documents among those whose vectors the same model made.
pub(in crate::recall) async fn by_meaning(
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
