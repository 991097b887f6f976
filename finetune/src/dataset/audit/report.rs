//! The audit as a person reads it.

use std::fmt::Write as _;

use super::findings::{Audit, Histogram};

impl Audit {
    /// As Markdown: the verdict, the checks, and what the rows are.
    pub fn markdown(&self) -> String {
        let mut out = String::from("# Audit\n\n");
        let verdict = if self.passed { "passed" } else { "failed: this dataset is not trained on" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{} rows: {verdict}.\n", self.rows);
        out.push_str("| check | found | allowed | | rows |\n| --- | --: | --: | --- | --- |\n");
        for check in &self.checks {
            let verdict = if check.passed { "" } else { "**fails**" };
            let rows = check.rows.join(", ");
            let more = if check.count > check.rows.len() as u64 { ", ..." } else { "" };
            let _ =
                writeln!(out, "| {} | {:.4} | {} | {verdict} | {rows}{more} |", check.name, check.value, check.limit);
        }
        out.push_str("\nThe reasons of the checks are in docs/finetune/data-quality-gates.md.\n\n");
        out.push_str(&self.statistics());
        out
    }

    /// The histograms.
    pub fn statistics(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{} tokens, {} of them carry loss.\n", self.tokens, self.trained_tokens);
        let splits = self.splits.iter().map(|(split, rows)| (split.as_str().to_owned(), *rows));
        table(&mut out, "split", splits);
        table(&mut out, "ending", self.endings.iter().map(|(ending, rows)| (ending.as_str().to_owned(), *rows)));
        let lengths = self.lengths.iter().map(|(most, samples)| (format!("<= {most} tokens"), *samples));
        table(&mut out, "length", lengths);
        for (title, histogram) in [
            ("tool (trained calls)", &self.tools),
            ("project", &self.projects),
            ("agent", &self.agents),
            ("source model", &self.source_models),
            ("licence class", &self.licences),
        ] {
            table(&mut out, title, descending(histogram));
        }
        out
    }
}

fn descending(histogram: &Histogram) -> impl Iterator<Item = (String, u64)> {
    let mut counted: Vec<_> = histogram.0.iter().map(|(name, count)| (name.clone(), *count)).collect();
    counted.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    counted.into_iter()
}

fn table(out: &mut String, title: &str, rows: impl Iterator<Item = (String, u64)>) {
    let rows: Vec<_> = rows.collect();
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let _ = writeln!(out, "| {title} | count | share |\n| --- | --: | --: |");
    for (name, count) in rows {
        let _ = writeln!(out, "| {name} | {count} | {:.1} % |", count as f64 * 100.0 / all.max(1) as f64);
    }
    out.push('\n');
}
