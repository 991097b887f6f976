//! The search itself: who comes in by words and by meaning, who stands around them, three rankings of all those, fused, as lines of an
//! index.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::time::{Duration, Instant};

use chrono::Utc;

use super::arrange::{Ranked, arrange};
use super::bm25::{Weights, rarity};
use super::lookup::{self, Candidate, Compared, Meaning, Statistics};
use super::support::{self, Support};
use super::{Filter, Fused, Line, RankedList, RecallError, details, fuse, nearby, plan};
use crate::analyze::Query;
use crate::embed::QueryVector;
use crate::ids::DocumentId;
use crate::store::{Db, padded, reading};

/// More lines than this are no index any more.
pub const MAX_LIMIT: usize = 100;

/// So many of those that hold the words are read, to tell how often they hold them.
const READ: usize = 100;
/// So many come in by their words, and so many by their meaning, and with each those around it. On LoCoMo, with all
/// that hold the words read, 15 did as well as 200.
const SEEDS: usize = 30;
/// How deep each ranking goes: enough for fusion to find what several hold.
const DEPTH: usize = 200;

/// What the rankings count in the fusion. Words decide: on LoCoMo meaning alone finds half as much. Chosen on its development half,
/// where the weights may be half or twice as much for a point of recall.
const WORDS: f64 = 2.0;
const MEANING: f64 = 0.5;
const MEANING_NEARBY: f64 = 0.5;

#[derive(Debug, Clone)]
pub struct SearchRequest {
    pub query: String,
    /// The query's vector; without one the search goes by words alone.
    pub vector: Option<QueryVector>,
    pub filter: Filter,
    /// How many hits at most, 1 to [`MAX_LIMIT`].
    pub limit: usize,
}

/// What a search found, best first, and how.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Empty means that nothing matched: every failure is an error.
    pub hits: Vec<Hit>,
    pub course: Course,
}

/// One hit: its line, which list ranked it where, and what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub line: Line,
    pub fused: Fused,
    pub support: Support,
    /// What its fused score was multiplied by, for when it happened, who wrote it, and how many of its session stand before it.
    pub prior: f64,
    /// How many further documents say the same, and are left out for it.
    pub repeats: usize,
}

/// How a search went: what its words are worth, which were looked up, and how long the database took.
#[derive(Debug, Clone)]
pub struct Course {
    /// How many documents there are in all.
    pub documents: f64,
    pub terms: Vec<CountedTerm>,
    /// What let documents in by their words, in the text form of a `tsquery`.
    pub looked_up: Option<String>,
    /// What had to match besides.
    pub condition: Option<String>,
    /// The share of all documents that have no vector of the present model yet, 0 to 1: they are found by their words only.
    pub without_vector: f64,
    /// How long the database was waited for.
    pub database: Duration,
}

/// A form of a word of the query.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedTerm {
    pub lexeme: String,
    /// How many documents hold it.
    pub documents: f64,
    /// What it adds at most to a document's score by words: its rarity times what it counts in the query.
    pub weight: f64,
}

/// Searches.
pub async fn search(db: &Db, request: SearchRequest) -> Result<Answer, RecallError> {
    let text = request.query.trim();
    if text.is_empty() {
        return Err(RecallError::EmptyQuery);
    }
    let found = Box::pin(find(db, text, request.vector, &request.filter));
    let Found { lists, mut support, mut course } = found.await?;
    let limit = request.limit.clamp(1, MAX_LIMIT);
    let mut clock = Clock(course.database);
    let mut connection = clock.of(db.acquire()).await?;
    let mut ranked = Vec::new();
    let mut contents = HashSet::new();
    let mut fused = fuse(&lists).into_iter();
    // Some of them say the same: twice as many as are wanted are looked at, and more where that is not enough.
    while contents.len() < limit {
        let next: Vec<_> = fused.by_ref().take(2 * limit).collect();
        if next.is_empty() {
            break;
        }
        let ids: Vec<_> = next.iter().map(|fused| fused.id).collect();
        let looked_at = clock.of(details::looked_at(&mut connection, &ids)).await?;
        let mut looked_at: HashMap<_, _> = looked_at.into_iter().map(|looked| (looked.line.id, looked)).collect();
        // A document that was deleted between the two statements has no line any more.
        ranked.extend(next.into_iter().filter_map(|fused| {
            let (support, looked) = (support.remove(&fused.id)?, looked_at.remove(&fused.id)?);
            contents.insert(looked.content);
            Some(Ranked { fused, support, looked })
        }));
    }
    course.database = clock.0;
    Ok(Answer { hits: arrange(ranked, Utc::now(), limit), course })
}

/// Adds up how long the database was waited for.
struct Clock(Duration);

impl Clock {
    async fn of<T>(&mut self, statement: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let result = statement.await;
        self.0 += started.elapsed();
        result
    }
}

/// The rankings to be fused, and what speaks for each document in them.
struct Found {
    lists: Vec<RankedList>,
    support: HashMap<DocumentId, Support>,
    course: Course,
}

/// The rankings that [`search`] fuses, each best first.
pub(super) async fn rankings(
    db: &Db,
    text: &str,
    vector: Option<QueryVector>,
    filter: &Filter,
) -> Result<Vec<RankedList>, RecallError> {
    Ok(Box::pin(find(db, text, vector, filter)).await?.lists)
}

async fn find(db: &Db, text: &str, vector: Option<QueryVector>, filter: &Filter) -> Result<Found, RecallError> {
    let query = filter.narrow(Query::parse(text))?;
    let meaning = vector.map(|vector| Meaning { vector: padded(vector.vector), model: vector.model });
    let mut clock = Clock(Duration::ZERO);
    let mut connection = clock.of(reading(db)).await?;
    let statistics = clock.of(lookup::statistics(&mut connection, &query, filter)).await?;
    let weights = weights(&statistics);
    // Where all words are common and there is a meaning to go by, they only count in what has come in by that.
    let wanted = plan::lookup(&statistics.terms, statistics.share)
        .filter(|wanted| meaning.is_none() || statistics.are_a_small_part || wanted.is_quick(&statistics.terms));
    let looked_up = wanted.as_ref().map(|wanted| wanted.tsquery(&statistics.terms));
    let mut compared = Compared::default();
    if statistics.are_few {
        let words = looked_up.as_deref().filter(|_| statistics.are_a_small_part);
        let few = lookup::compare(&mut connection, words, &query, meaning.as_ref(), filter, SEEDS);
        compared = clock.of(few).await?;
    } else if let Some(meaning) = &meaning {
        let nearest = lookup::by_meaning(&mut connection, meaning, &query, filter, SEEDS as i64);
        compared.nearest = clock.of(nearest).await?;
    }
    if let Some(wanted) = wanted.as_ref().filter(|_| !statistics.are_a_small_part) {
        compared.holding = clock.of(lookup::by_words(&mut connection, wanted, &query, filter)).await?;
    }
    let Compared { holding, nearest } = compared;
    let read = best(holding, &weights, READ);
    let read = clock.of(lookup::counts(&mut connection, &read, &query)).await?;
    let seeds: BTreeSet<_> = best(read, &weights, SEEDS).into_iter().chain(nearest).collect();
    let seeds: Vec<_> = seeds.into_iter().collect();
    let order = clock.of(lookup::order(&mut connection, &seeds)).await?;
    let around: BTreeSet<_> = seeds.into_iter().chain(order.documents()).collect();
    let around: Vec<_> = around.into_iter().collect();
    let seen = lookup::seen(&mut connection, &around, &query, meaning.as_ref(), filter);
    let mut seen = clock.of(seen).await?;
    clock.of(connection.end()).await?;
    let support = support::of_all(&seen, &order, &expected(&query, &statistics, &weights));
    for document in seen.values_mut() {
        document.fits &= support.contains_key(&document.id);
    }
    let ranked = |name, weight, mut documents: Vec<DocumentId>| {
        documents.truncate(DEPTH);
        RankedList::of(name, weight, documents)
    };
    let mut lists = vec![ranked("words", WORDS, nearby::by_words(&seen, &order, &weights))];
    if meaning.is_some() {
        // What has just happened, or what another model had embedded, has no vector of this model yet.
        let unknown: HashSet<_> =
            seen.values().filter(|document| document.similarity.is_none()).map(|document| document.id).collect();
        let by_meaning = [
            ranked("meaning", MEANING, nearby::by_meaning(&seen)),
            ranked("meaning_nearby", MEANING_NEARBY, nearby::by_meaning_nearby(&seen, &order)),
        ];
        lists.extend(by_meaning.map(|list| RankedList { unknown: unknown.clone(), ..list }));
    }
    let terms = statistics.terms.iter().zip(&weights.terms).map(|(counted, weight)| CountedTerm {
        lexeme: counted.term.lexeme.clone(),
        documents: counted.documents,
        weight: *weight,
    });
    let course = Course {
        documents: statistics.documents,
        terms: terms.collect(),
        looked_up,
        condition: query.condition,
        without_vector: (statistics.without_vector / statistics.documents).min(1.0),
        database: clock.0,
    };
    Ok(Found { lists, support, course })
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

/// What the query's words are worth where it is asked how many of them a document holds: a question in another language shares its
/// names and codes with what was done, and its words, where nobody has ever used them, are hardly to be expected there.
fn expected(query: &Query, statistics: &Statistics, weights: &Weights) -> Weights {
    /// On the recall set by words alone 60 of 101 questions are answered among the first five with 1, 62 with 0.5, 63 with 0.25 and 64
    /// with 0.1; two that nothing answers are in each case.
    const UNKNOWN: f64 = 0.1;
    let counts = |counted: &plan::Counted| if query.is_foreign && counted.is_unknown { UNKNOWN } else { 1.0 };
    let terms = statistics.terms.iter().zip(&weights.terms).map(|(counted, weight)| weight * counts(counted));
    Weights { terms: terms.collect(), ..weights.clone() }
}

fn best(mut candidates: Vec<Candidate>, weights: &Weights, count: usize) -> Vec<DocumentId> {
    let score = |candidate: &Candidate| weights.score(&candidate.counts, 1.0);
    candidates.sort_by(|one, two| score(two).total_cmp(&score(one)).then(two.id.cmp(&one.id)));
    candidates.into_iter().take(count).map(|candidate| candidate.id).collect()
}
