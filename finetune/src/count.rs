//! `dataset --dry-run`: what could become training rows, counted in the database.

use std::fmt::Write as _;

use anyhow::Context as _;
use memory::store::{self, Db, TrainableCount};

/// As a table, or as JSON.
pub(crate) async fn count(db: &Db, as_json: bool) -> anyhow::Result<String> {
    let counts = store::count_trainable(db).await.context("counting what could be trained on")?;
    Ok(if as_json { serde_json::to_string_pretty(&counts)? + "\n" } else { table(&counts) })
}

fn table(counts: &[TrainableCount]) -> String {
    if counts.is_empty() {
        return "No prompt in the journal has a joined tool call yet.\n".to_owned();
    }
    let model = |count: &TrainableCount| count.source_model.clone().unwrap_or_else(|| "unknown".to_owned());
    let project_width = counts.iter().map(|count| count.project.chars().count()).max().unwrap_or_default().max(7);
    let model_width = counts.iter().map(|count| model(count).chars().count()).max().unwrap_or_default().max(12);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{:project_width$}  {:model_width$}  {:>8}  {:>12}",
        "project", "source model", "prompts", "joined calls"
    );
    for count in counts {
        let (project, model) = (&count.project, model(count));
        let _ = writeln!(
            out,
            "{project:project_width$}  {model:model_width$}  {:>8}  {:>12}",
            count.prompts, count.joined_calls
        );
    }
    let prompts: i64 = counts.iter().map(|count| count.prompts).sum();
    let calls: i64 = counts.iter().map(|count| count.joined_calls).sum();
    let _ = writeln!(out, "{:project_width$}  {:model_width$}  {prompts:>8}  {calls:>12}", "all", "");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_each_project_and_model_and_the_sum() {
        let count = |project: &str, source_model: Option<&str>, prompts, joined_calls| TrainableCount {
            project: project.into(),
            source_model: source_model.map(str::to_owned),
            prompts,
            joined_calls,
        };
        let text = table(&[count("widgets", Some("model-a"), 3, 12), count("gadgets", None, 1, 2)]);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["widgets", "model-a", "3", "12"]);
        assert_eq!(words[2], ["gadgets", "unknown", "1", "2"]);
        assert_eq!(words[3], ["all", "4", "14"]);
    }

    #[test]
    fn says_when_there_is_nothing_yet() {
        assert!(table(&[]).starts_with("No prompt"));
    }
}
