//! How a search came to its hits: for who wonders about one, and for measurements.

use std::collections::BTreeMap;
use std::time::Duration;

use memory::recall::Hit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::tools::Found;

/// How a search went.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Explanation {
    /// How many documents there are in all projects.
    documents: i64,
    /// The query's words in the forms in which the index has them.
    terms: Vec<Term>,
    /// The forms that let documents in by their words; the others only counted in those.
    #[serde(skip_serializing_if = "Option::is_none")]
    looked_up: Option<String>,
    /// What had to match besides: phrases, the file, and words that must not occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    /// Of each hit that is shown, in their order, how it came to its place.
    places: Vec<Place>,
    milliseconds: Milliseconds,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Term {
    lexeme: String,
    /// How many documents hold it, as last counted.
    documents: i64,
    /// What it counts: its rarity times what it counts in the query.
    weight: f64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Place {
    /// The sum over the rankings, times `prior`.
    score: f64,
    rankings: BTreeMap<&'static str, Share>,
    /// More than 1 for what is recent, and for notes; less where five of its session stand before it.
    prior: f64,
    /// The share of the query's words that it holds itself, rare words weighing more.
    own_coverage: f64,
}

/// What one ranking gives a hit: `weight / (5 + rank)`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Share {
    rank: i64,
    score: f64,
}

/// How long what was waited for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Milliseconds {
    embedding: f64,
    database: f64,
    total: f64,
}

impl Explanation {
    pub(crate) fn of(found: &Found) -> Self {
        let course = &found.course;
        let terms = course.terms.iter().map(|term| Term {
            lexeme: term.lexeme.clone(),
            documents: term.documents as i64,
            weight: thousandths(term.weight),
        });
        Self {
            documents: course.documents as i64,
            terms: terms.collect(),
            looked_up: course.looked_up.clone(),
            condition: course.condition.clone(),
            places: found.hits.iter().map(Place::of).collect(),
            milliseconds: Milliseconds {
                embedding: milliseconds(found.embedding),
                database: milliseconds(course.database),
                total: milliseconds(found.total),
            },
        }
    }

    /// Without the hits that are not shown.
    pub(super) fn of_first(mut self, shown: usize) -> Self {
        self.places.truncate(shown);
        self
    }
}

impl Place {
    fn of(hit: &Hit) -> Self {
        let share = |rank: &memory::recall::Rank| Share { rank: rank.rank as i64, score: thousandths(rank.score) };
        Self {
            score: thousandths(hit.fused.score * hit.prior),
            rankings: hit.fused.ranks.iter().map(|rank| (rank.list, share(rank))).collect(),
            prior: thousandths(hit.prior),
            own_coverage: thousandths(hit.support.own_coverage),
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    thousandths(duration.as_secs_f64() * 1000.0)
}

fn thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
