//! The table, and whether it is as it shall be.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Serialize;

use crate::output::{human_bytes, human_duration};

/// The tail in the largest index is at most so many times that in the smallest.
const MOST_GROWTH: f64 = 3.0;
/// A search in a small project takes at most so much of one in all: no longer, but for what this machine's noise is.
const MOST_SCOPED: f64 = 1.1;
const MOST_SERVER_BYTES: u64 = 350_000_000;
const MOST_MCP_BYTES: u64 = 40_000_000;

#[derive(Debug, Serialize)]
pub(crate) struct RecallBench {
    /// Recorded documents that all others were mixed of.
    pub(super) corpus: usize,
    pub(super) queries: usize,
    pub(super) sizes: Vec<Size>,
    pub(super) memory: Memory,
}

#[derive(Debug, Serialize)]
pub(super) struct Size {
    pub(super) documents: u64,
    pub(super) built_seconds: f64,
    /// By filter; the first goes without one, the second in a small project.
    pub(super) searches: Vec<Row>,
    pub(super) scans: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    /// Of all the time, the database's share and the model's.
    pub(super) database: f64,
    pub(super) embedding: f64,
    /// The median as a multiple of those of both scans together.
    pub(super) to_raw: Option<f64>,
}

/// What the programs hold, with the model loaded in the server alone; `None` where the system does not tell.
#[derive(Debug, Default, Serialize)]
pub(super) struct Memory {
    pub(super) server_idle_bytes: Option<u64>,
    pub(super) server_bytes: Option<u64>,
    pub(super) mcp_idle_bytes: Option<u64>,
    pub(super) mcp_bytes: Option<u64>,
}

impl Size {
    pub(super) fn built_in(self, took: Duration) -> Self {
        Self { built_seconds: took.as_secs_f64(), ..self }
    }
}

impl RecallBench {
    /// What is not as it shall be.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let tail = |size: &Size| size.searches.first().map_or(0.0, |row| row.p95_ms);
        if let (Some(first), Some(last)) = (self.sizes.first(), self.sizes.last())
            && tail(last) > MOST_GROWTH * tail(first)
        {
            complaints.push(format!(
                "p95 in {} documents is {:.1} times that in {}",
                last.documents,
                tail(last) / tail(first),
                first.documents
            ));
        }
        for size in &self.sizes {
            if let [unscoped, scoped, ..] = &size.searches[..]
                && scoped.p50_ms > MOST_SCOPED * unscoped.p50_ms
            {
                complaints.push(format!("in {} documents a small project is slower than all", size.documents));
            }
        }
        let Memory { server_bytes, mcp_bytes, .. } = self.memory;
        for (name, bytes, most) in
            [("server", server_bytes, MOST_SERVER_BYTES), ("MCP program", mcp_bytes, MOST_MCP_BYTES)]
        {
            if bytes.is_some_and(|bytes| bytes > most) {
                complaints.push(format!("the {name} holds more than {}", human_bytes(most)));
            }
        }
        complaints
    }
}

/// Markdown tables, which read as well in a terminal.
impl Display for RecallBench {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} queries a row, in documents mixed of {} recorded ones\n", self.queries, self.corpus)?;
        writeln!(
            formatter,
            "| documents | filter             |   p50 ms |   p95 ms | SQL | embedding | rest | x scans |"
        )?;
        writeln!(
            formatter,
            "| --------: | ------------------ | -------: | -------: | --: | --------: | ---: | ------: |"
        )?;
        for Size { documents, searches, scans, .. } in &self.sizes {
            for Row { name, p50_ms, p95_ms, database, embedding, to_raw } in scans.iter().chain(searches) {
                let percent = |share: f64| format!("{:.0} %", share * 100.0);
                let rest = percent((1.0 - database - embedding).max(0.0));
                let (database, embedding) = (percent(*database), percent(*embedding));
                let to_raw = to_raw.map(|to_raw| format!("{to_raw:.2}")).unwrap_or_default();
                writeln!(
                    formatter,
                    "| {documents:>9} | {name:<18} | {p50_ms:>8.2} | {p95_ms:>8.2} | {database} | {embedding} | {rest} | {to_raw:>7} |"
                )?;
            }
        }
        let tail = |size: &Size| size.searches.first().map_or(0.0, |row| row.p95_ms);
        if let [first, .., last] = &self.sizes[..] {
            writeln!(
                formatter,
                "\np95 without a filter in {} documents is {:.2} times that in {}.",
                last.documents,
                tail(last) / tail(first),
                first.documents
            )?;
        }
        let told = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), human_bytes);
        let Memory { server_idle_bytes, server_bytes, mcp_idle_bytes, mcp_bytes } = self.memory;
        writeln!(
            formatter,
            "Memory: the server with its model {} before, {} after all searches; the MCP program {} before, {} after {} searches.",
            told(server_idle_bytes),
            told(server_bytes),
            told(mcp_idle_bytes),
            told(mcp_bytes),
            self.queries
        )?;
        let built = self.sizes.iter().map(|size| {
            let took = human_duration(Duration::from_secs_f64(size.built_seconds));
            format!("{} in {took}", size.documents)
        });
        write!(formatter, "Made, copied, indexed and searched: {}.", built.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(p50_ms: f64, p95_ms: f64) -> Row {
        Row { name: "none".to_owned(), p50_ms, p95_ms, database: 0.5, embedding: 0.4, to_raw: Some(2.0) }
    }

    fn size(documents: u64, searches: [Row; 2]) -> Size {
        Size { documents, built_seconds: 1.0, searches: searches.into(), scans: Vec::new() }
    }

    #[test]
    fn complains_of_a_search_that_grows_with_the_index_or_slows_down_in_a_small_project() {
        let bench = |p95_ms, scoped_ms| RecallBench {
            corpus: 9,
            queries: 1,
            sizes: vec![
                size(10_000, [row(10.0, 20.0), row(10.0, 20.0)]),
                size(1_000_000, [row(10.0, p95_ms), row(scoped_ms, 20.0)]),
            ],
            memory: Memory { mcp_bytes: Some(41_000_000), ..Memory::default() },
        };
        assert_eq!(bench(59.0, 10.5).complaints().len(), 1, "{:?}", bench(59.0, 10.5).complaints());
        let complaints = bench(61.0, 12.0).complaints();
        assert!(complaints[0].contains("3.0 times") || complaints[0].contains("3.1 times"), "{complaints:?}");
        assert!(complaints[1].contains("small project") && complaints[2].contains("MCP program"), "{complaints:?}");
    }
}
