//! What decides beside the ranks where a hit stands: when it happened, who wrote it, whether another says the same, and how many of its
//! session stand before it. All of it is gentle: it orders what is about as good.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::details::Looked;
use super::{Fused, Hit, Support};
use crate::ids::DocumentKind;

/// What happened just now counts so much more than what happened long ago, and half of that after so many days.
const RECENT: f64 = 0.1;
const HALF_LIFE_DAYS: f64 = 30.0;
/// What somebody thought worth writing down counts so much more than what was recorded or told by itself.
const CURATED: f64 = 0.1;
/// So many hits of one session count in full.
const OF_A_SESSION: usize = 5;
/// Each further one counts so much of the one before it. On LoCoMo, whose evidence often stands close together, this costs half a point
/// of recall@10, and to put them behind all others two points.
const FURTHER: f64 = 0.8;

/// A document that was ranked, with its line.
pub(super) struct Ranked {
    pub(super) fused: Fused,
    pub(super) support: Support,
    pub(super) looked: Looked,
}

/// Hits in the order in which they are given, at most so many.
pub(super) fn arrange(ranked: Vec<Ranked>, now: DateTime<Utc>, limit: usize) -> Vec<Hit> {
    let hits = ranked.into_iter().map(|Ranked { fused, support, looked }| {
        let prior = prior(&looked, now);
        let Looked { line, content, session, .. } = looked;
        Weighed { hit: Hit { line, fused, support, prior, repeats: 0 }, content, session }
    });
    let mut hits = of_several_sessions(without_repeats(in_order(hits.collect())));
    hits.truncate(limit);
    hits.into_iter().map(|weighed| weighed.hit).collect()
}

struct Weighed {
    hit: Hit,
    content: u64,
    session: Option<u64>,
}

/// Stable: what counts the same stays in the order of the fusion.
fn in_order(mut hits: Vec<Weighed>) -> Vec<Weighed> {
    let score = |hit: &Hit| hit.fused.score * hit.prior;
    hits.sort_by(|one, two| score(&two.hit).total_cmp(&score(&one.hit)));
    hits
}

/// What a hit's score is multiplied by for when it happened and who wrote it.
fn prior(looked: &Looked, now: DateTime<Utc>) -> f64 {
    let days = (now - looked.line.occurred_at).num_seconds().max(0) as f64 / 86_400.0;
    let is_curated = looked.line.id.kind == DocumentKind::Note && !looked.is_digest;
    1.0 + RECENT * 0.5_f64.powf(days / HALF_LIFE_DAYS) + if is_curated { CURATED } else { 0.0 }
}

/// The same command run twenty times is one hit: of those with the same content the best stays, and says for how many it stands.
fn without_repeats(hits: Vec<Weighed>) -> Vec<Weighed> {
    let mut kept: Vec<Weighed> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    for weighed in hits {
        if let Some(place) = places.get(&weighed.content) {
            kept[*place].hit.repeats += 1;
        } else {
            places.insert(weighed.content, kept.len());
            kept.push(weighed);
        }
    }
    kept
}

/// What is more than a few hits of one session gives way to those of others that are about as good.
fn of_several_sessions(mut hits: Vec<Weighed>) -> Vec<Weighed> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for weighed in &mut hits {
        let Some(session) = weighed.session else { continue };
        let count = counts.entry(session).or_default();
        *count += 1;
        for _ in OF_A_SESSION..*count {
            weighed.hit.prior *= FURTHER;
        }
    }
    in_order(hits)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use chrono::TimeDelta;
    use proptest::prelude::*;

    use super::super::Line;
    use super::*;
    use crate::ids::DocumentId;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn ranked(row: i64, score: f64, content: u64, session: Option<u64>) -> Ranked {
        let id = DocumentId { kind: DocumentKind::Call, row };
        let line = Line {
            id,
            occurred_at: NOW - TimeDelta::days(1_000),
            project: None,
            headline: "Bash: cargo test".to_owned(),
            failed: Some(true),
        };
        Ranked {
            fused: Fused { id, score, ranks: Vec::new() },
            support: Support { own_coverage: 1.0, coverage: 1.0, similarity: None },
            looked: Looked { line, content, session, is_digest: false },
        }
    }

    fn rows(ranked: Vec<Ranked>) -> Vec<i64> {
        arrange(ranked, NOW, 100).into_iter().map(|hit| hit.line.id.row).collect()
    }

    #[test]
    fn gives_what_says_the_same_once_and_tells_how_often_it_was_there() {
        let hits = [(1, 7), (2, 8), (3, 7), (4, 9), (5, 7)];
        let hits = hits.map(|(row, content)| ranked(row, 1.0 / row as f64, content, None));
        let told: Vec<_> = arrange(hits.into(), NOW, 2).iter().map(|hit| (hit.line.id.row, hit.repeats)).collect();
        assert_eq!(told, [(1, 2), (2, 0)]);
    }

    #[test]
    fn prefers_the_newer_and_what_somebody_wrote_of_what_is_about_as_good() {
        let mut new = ranked(2, 0.98, 2, None);
        new.looked.line.occurred_at = NOW;
        assert_eq!(rows(vec![ranked(1, 1.0, 1, None), new]), [2, 1]);
        let note = |row, is_digest| {
            let mut note = ranked(row, 0.95, row.unsigned_abs(), None);
            note.looked.line.id.kind = DocumentKind::Note;
            note.looked.is_digest = is_digest;
            note
        };
        assert_eq!(rows(vec![ranked(1, 1.0, 1, None), note(3, true), note(2, false)]), [2, 1, 3]);
        assert_eq!(rows(vec![ranked(1, 1.2, 1, None), note(2, false)]), [1, 2], "what answers better stays first");
    }

    #[test]
    fn one_session_does_not_fill_the_answer() {
        let mut hits: Vec<_> = (1..=8).map(|row| ranked(row, 1.0, row.unsigned_abs(), Some(1))).collect();
        hits.extend([ranked(9, 0.9, 9, Some(2)), ranked(10, 0.7, 10, None), ranked(11, 0.5, 11, None)]);
        assert_eq!(rows(hits), [1, 2, 3, 4, 5, 9, 6, 10, 7, 8, 11]);
    }

    proptest! {
        #[test]
        fn loses_nothing_but_repeats(
            hits in prop::collection::vec((0.0..1.0_f64, 0_u64..20, prop::option::of(0_u64..3)), 0..40),
        ) {
            let contents: HashSet<_> = hits.iter().map(|(_, content, _)| *content).collect();
            let count = hits.len();
            let hits = hits.into_iter().zip(1..).map(|((score, content, session), row)| ranked(row, score, content, session));
            let arranged = arrange(hits.collect(), NOW, 100);
            prop_assert_eq!(arranged.len(), contents.len());
            prop_assert_eq!(arranged.iter().map(|hit| hit.repeats + 1).sum::<usize>(), count);
        }
    }
}
