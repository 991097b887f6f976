//! Recall and reciprocal rank over all questions, for each list and for all of them fused.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Display};

use serde::Serialize;

/// How deep recall is told.
const CUTS: [usize; 3] = [5, 10, 20];
/// How deep the first piece of evidence is looked for.
const MRR_DEPTH: usize = 10;
const FUSED: &str = "fused";

#[derive(Debug, Serialize)]
pub(crate) struct LocomoBench {
    conversations: usize,
    questions: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    list: String,
    /// At each of [`CUTS`].
    recall: [f64; 3],
    mrr: f64,
}

/// What a question found: of each list, at which ranks its evidence stands, counted from 1.
#[derive(Debug)]
pub(super) struct Asked {
    evidence: usize,
    ranks: HashMap<String, Vec<usize>>,
}

impl Asked {
    /// `hits` are turns in fused order, each with its rank in the lists that hold it.
    pub(super) fn of(evidence: &[String], hits: Vec<(String, HashMap<String, usize>)>) -> Self {
        let mut ranks: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, (turn, matched)) in hits.into_iter().enumerate() {
            if !evidence.contains(&turn) {
                continue;
            }
            for (list, rank) in matched.into_iter().chain([(FUSED.to_owned(), at + 1)]) {
                ranks.entry(list).or_default().push(rank);
            }
        }
        Self { evidence: evidence.len(), ranks }
    }

    fn recall(&self, list: &str, cut: usize) -> f64 {
        let found = self.ranks.get(list).map_or(0, |ranks| ranks.iter().filter(|rank| **rank <= cut).count());
        found as f64 / self.evidence as f64
    }

    fn reciprocal_rank(&self, list: &str) -> f64 {
        let first = self.ranks.get(list).and_then(|ranks| ranks.iter().min());
        first.filter(|rank| **rank <= MRR_DEPTH).map_or(0.0, |rank| 1.0 / *rank as f64)
    }
}

impl LocomoBench {
    pub(super) fn of(conversations: usize, asked: &[Asked]) -> Self {
        let mut lists: Vec<_> = asked
            .iter()
            .flat_map(|asked| asked.ranks.keys().map(String::as_str))
            .filter(|list| *list != FUSED)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        lists.push(FUSED);
        let mean = |of: &dyn Fn(&Asked) -> f64| asked.iter().map(of).sum::<f64>() / asked.len().max(1) as f64;
        let rows = lists
            .into_iter()
            .map(|list| Row {
                list: list.to_owned(),
                recall: CUTS.map(|cut| mean(&|asked| asked.recall(list, cut))),
                mrr: mean(&|asked| asked.reciprocal_rank(list)),
            })
            .collect();
        Self { conversations, questions: asked.len(), rows }
    }
}

/// A Markdown table, which reads as well in a terminal.
impl Display for LocomoBench {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} questions about {} conversations\n", self.questions, self.conversations)?;
        writeln!(formatter, "| ranking         | recall@5 | recall@10 | recall@20 | MRR@{MRR_DEPTH} |")?;
        writeln!(formatter, "| --------------- | -------: | --------: | --------: | -----: |")?;
        for Row { list, recall: [five, ten, twenty], mrr } in &self.rows {
            writeln!(formatter, "| {list:<15} | {five:>8.3} | {ten:>9.3} | {twenty:>9.3} | {mrr:>6.3} |")?;
        }
        write!(formatter, "\nrecall: the mean over questions of the share of their evidence among the first hits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_share_of_the_evidence_and_the_rank_of_the_first_piece() {
        let hit = |turn: &str, words: usize| (turn.to_owned(), HashMap::from([("words".to_owned(), words)]));
        let evidence = ["a".to_owned(), "b".to_owned()];
        let first = Asked::of(&evidence, vec![hit("x", 1), hit("a", 7)]);
        let second = Asked::of(&evidence[..1], vec![]);
        let bench = LocomoBench::of(1, &[first, second]);
        let [words, fused] = &bench.rows[..] else { panic!("{bench:?}") };
        assert_eq!((words.recall, words.mrr), ([0.0, 0.25, 0.25], 1.0 / 7.0 / 2.0));
        assert_eq!((fused.list.as_str(), fused.recall, fused.mrr), (FUSED, [0.25; 3], 0.25));
    }
}
