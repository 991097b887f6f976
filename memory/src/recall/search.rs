//! The search itself: who comes in by words and by meaning, who stands around them, three rankings of all those, fused, as lines of an
//! index.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::bm25::{Weights, rarity};
use super::lookup::{self, Candidate, Meaning, Statistics};
use super::support::{self, Support};
use super::{Filter, Fused, Line, RankedList, RecallError, details, fuse, nearby, plan};
use crate::analyze::Query;
use crate::embed::QueryVector;
use crate::ids::DocumentId;
use crate::store::{Db, padded};

/// More lines than this are no index any more.
pub const MAX_LIMIT: usize = 100;

/// So many come in by their words, and so many by their meaning. On LoCoMo 15 did as well as 200.
const SEEDS: usize = 50;
/// How deep each ranking goes: enough for fusion to find what several hold.
const DEPTH: usize = 200;

/// What the rankings count in the fusion. Words decide: on LoCoMo meaning alone finds half as much. Chosen on its development half,
/// where the weights may be half or twice as much for a point of recall.
const WORDS: f64 = 2.0;
const MEANING: f64 = 0.5;
const MEANING_NEARBY: f64 = 0.5;

/// So many times as many hits as are wanted are looked at, since some of them say the same.
const WITH_REPEATS: usize = 2;

#[derive(Debug, Clone)]
pub struct SearchRequest {
    pub query: String,
    /// The query's vector; without one the search goes by words alone.
    pub vector: Option<QueryVector>,
    pub filter: Filter,
    /// How many hits at most, 1 to [`MAX_LIMIT`].
    pub limit: usize,
}

/// One hit: its line, which list ranked it where, and what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub line: Line,
    pub fused: Fused,
    pub support: Support,
    /// How many further documents say the same, and are left out for it.
    pub repeats: usize,
}

/// Searches; best hit first. An empty answer means that nothing matched: every failure is an error.
pub async fn search(db: &Db, request: SearchRequest) -> Result<Vec<Hit>, RecallError> {
    let text = request.query.trim();
    if text.is_empty() {
        return Err(RecallError::EmptyQuery);
    }
    let Found { lists, support } = find(db, text, request.vector, &request.filter).await?;
    let limit = request.limit.clamp(1, MAX_LIMIT);
    let mut fused = fuse(&lists);
    fused.truncate(limit * WITH_REPEATS);

    let ids: Vec<_> = fused.iter().map(|fused| fused.id).collect();
    let mut connection = db.acquire().await?;
    let mut lines = details::lines_with_content(&mut connection, &ids).await?;
    // A document that was deleted between the two statements has no line any more.
    let hits = fused.into_iter().filter_map(|fused| {
        let at = lines.iter().position(|(line, _)| line.id == fused.id)?;
        let support = *support.get(&fused.id)?;
        let (line, content) = lines.swap_remove(at);
        Some((Hit { line, fused, support, repeats: 0 }, content))
    });
    let mut hits = without_repeats(hits);
    hits.truncate(limit);
    Ok(hits)
}

/// The same command run twenty times is one hit: of those with the same content the best stays, and says for how many it stands.
fn without_repeats(hits: impl Iterator<Item = (Hit, u64)>) -> Vec<Hit> {
    let mut kept: Vec<Hit> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    for (hit, content) in hits {
        match places.entry(content) {
            Entry::Occupied(place) => kept[*place.get()].repeats += 1,
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push(hit);
            }
        }
    }
    kept
}

/// The rankings to be fused, and what speaks for each document in them.
struct Found {
    lists: Vec<RankedList>,
    support: HashMap<DocumentId, Support>,
}

/// The rankings that [`search`] fuses, each best first.
pub(super) async fn rankings(
    db: &Db,
    text: &str,
    vector: Option<QueryVector>,
    filter: &Filter,
) -> Result<Vec<RankedList>, RecallError> {
    Ok(find(db, text, vector, filter).await?.lists)
}

async fn find(db: &Db, text: &str, vector: Option<QueryVector>, filter: &Filter) -> Result<Found, RecallError> {
    let query = Query::parse(text);
    let meaning = vector.map(|vector| Meaning { vector: padded(vector.vector), model: vector.model });
    let mut connection = db.acquire().await?;
    let statistics = lookup::statistics(&mut connection, &query, filter).await?;
    let weights = weights(&statistics);
    let mut seeds = match plan::lookup(&statistics.terms, statistics.share) {
        Some(wanted) => best(lookup::by_words(&mut connection, &wanted, &query, filter).await?, &weights),
        None => BTreeSet::new(),
    };
    if let Some(meaning) = &meaning {
        seeds.extend(lookup::by_meaning(&mut connection, meaning, &query, filter, SEEDS as i64).await?);
    }
    let seeds: Vec<_> = seeds.into_iter().collect();
    let order = lookup::order(&mut connection, &seeds).await?;
    let around: BTreeSet<_> = seeds.into_iter().chain(order.documents()).collect();
    let around: Vec<_> = around.into_iter().collect();
    let mut seen = lookup::seen(&mut connection, &around, &query, meaning.as_ref(), filter).await?;
    let support = support::of_all(&seen, &order, &weights);
    for document in seen.values_mut() {
        document.fits &= support.contains_key(&document.id);
    }
    let ranked = |name, weight, mut documents: Vec<DocumentId>| {
        documents.truncate(DEPTH);
        RankedList { name, weight, documents }
    };
    let mut lists = vec![ranked("words", WORDS, nearby::by_words(&seen, &order, &weights))];
    if meaning.is_some() {
        lists.push(ranked("meaning", MEANING, nearby::by_meaning(&seen)));
        lists.push(ranked("meaning_nearby", MEANING_NEARBY, nearby::by_meaning_nearby(&seen, &order)));
    }
    Ok(Found { lists, support })
}

pub(super) fn weights(statistics: &Statistics) -> Weights {
    Weights {
        terms: statistics
            .terms
            .iter()
            .map(|counted| counted.term.weight * rarity(counted.documents, statistics.documents))
            .collect(),
        average_length: statistics.average_length,
    }
}

fn best(mut candidates: Vec<Candidate>, weights: &Weights) -> BTreeSet<DocumentId> {
    let score = |candidate: &Candidate| weights.score(&candidate.counts, 1.0);
    candidates.sort_by(|one, two| score(two).total_cmp(&score(one)).then(two.id.cmp(&one.id)));
    candidates.into_iter().take(SEEDS).map(|candidate| candidate.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::DocumentKind;

    fn hit(row: i64, content: u64) -> (Hit, u64) {
        let id = DocumentId { kind: DocumentKind::Call, row };
        let occurred_at = chrono::DateTime::UNIX_EPOCH;
        let line = Line { id, occurred_at, project: None, headline: "Bash: cargo test".to_owned(), failed: Some(true) };
        let support = Support { own_coverage: 1.0, coverage: 1.0, similarity: None };
        (Hit { line, fused: Fused { id, score: 1.0 / row as f64, ranks: Vec::new() }, support, repeats: 0 }, content)
    }

    #[test]
    fn gives_what_says_the_same_once_and_tells_how_often_it_was_there() {
        let kept = without_repeats([hit(1, 7), hit(2, 8), hit(3, 7), hit(4, 9), hit(5, 7)].into_iter());
        let told: Vec<_> = kept.iter().map(|hit| (hit.line.id.row, hit.repeats)).collect();
        assert_eq!(told, [(1, 2), (2, 0), (4, 0)]);
    }
}
