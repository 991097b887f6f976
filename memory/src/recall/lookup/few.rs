//! Who comes in where the projects asked for hold few documents: each of them is looked at. To go through the indexes of all projects
//! and leave out what is of another costs more: always by meaning, and by words where the projects are a small part of all.

use pgvector::HalfVector;
use sqlx::PgConnection;

use super::incoming::{Candidate, Meaning};
use super::{id, parameters, terms};
use crate::analyze::Query;
use crate::ids::DocumentId;
use crate::recall::bm25::Counts;
use crate::recall::{Filter, RecallError};

/// What every document that fits has to do with the query.
#[derive(Default)]
pub(in crate::recall) struct Compared {
    /// Those that hold the words that let documents in, in no order, with which of all terms they hold.
    pub(in crate::recall) holding: Vec<Candidate>,
    /// The nearest by meaning, best first.
    pub(in crate::recall) nearest: Vec<DocumentId>,
}

/// Compares all documents of the projects asked for. `wanted` lets them in by their words, in the text form of a `tsquery`; without it
/// none is unpacked for its words.
pub(in crate::recall) async fn compare(
    connection: &mut PgConnection,
    wanted: Option<&str>,
    query: &Query,
    meaning: Option<&Meaning>,
    filter: &Filter,
    nearest: usize,
) -> Result<Compared, RecallError> {
    let (projects, kinds) = parameters(filter);
    let terms = terms(query);
    let rows = sqlx::query!(
        // `lexemes || ''` unpacks them once a document instead of once a term, and the offset keeps the planner from the indexes of all
        // projects.
        r#"with term as materialized (
               select lexeme::tsquery as lexeme, place from unnest($1::text[]) with ordinality as term (lexeme, place)
           )
           select document_kind as "document_kind!", document_id as "document_id!", length as "length!", similarity,
                  case when unpacked @@ $2::text::tsquery
                       then array(select place from term where unpacked @@ lexeme) end as "places: Vec<i64>"
           from (select document_kind, document_id, length, case when $2::text is not null then lexemes || '' end as unpacked,
                        case when embedding_model_id = (select id from mem_embedding_models where name = $4)
                             then 1 - (embedding <=> $3::halfvec) end as similarity
                 from mem_search_index
                 where project_id = any($5)
                   and ($6::text is null or lexemes @@ $6::text::tsquery)
                   and ($7::text[] is null or document_kind = any($7))
                   and ($8::timestamptz is null or occurred_at >= $8)
                   and ($9::timestamptz is null or occurred_at <= $9)
                   and ($10::text is null and $11::text is null
                        or session_id in (select id from mem_sessions
                                          where coalesce(agent = $10, true) and coalesce(branch = $11, $11 is null)))
                 offset 0) document"#,
        &terms,
        wanted,
        meaning.map(|meaning| &meaning.vector) as Option<&HalfVector>,
        meaning.map(|meaning| meaning.model.as_str()),
        projects.as_deref(),
        query.condition,
        kinds.as_deref(),
        filter.from,
        filter.until,
        filter.agent,
        filter.branch,
    )
    .fetch_all(connection)
    .await?;
    let mut holding = Vec::new();
    let mut similar = Vec::new();
    for row in rows {
        let Some(id) = id(&row.document_kind, row.document_id) else { continue };
        similar.extend(row.similarity.map(|similarity| (similarity, id)));
        if let Some(places) = row.places {
            let mut counts = Counts { occurrences: vec![0.0; terms.len()], length: f64::from(row.length) };
            for place in places {
                counts.occurrences[place as usize - 1] = 1.0;
            }
            holding.push(Candidate { id, counts });
        }
    }
    similar.sort_by(|one, two| two.0.total_cmp(&one.0).then(two.1.cmp(&one.1)));
    Ok(Compared { holding, nearest: similar.into_iter().take(nearest).map(|(_, id)| id).collect() })
}
