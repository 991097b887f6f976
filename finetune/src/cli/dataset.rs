//! What `dataset` takes: what is selected of the journal, and how rows are made of it.

use std::path::PathBuf;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::Args;
use finetune::dataset::{FailedCalls, Licence, Settings, StoppedCalls};

use super::Common;

#[derive(Debug, Default, Args)]
pub(crate) struct DatasetArgs {
    /// Folder of the base model: tokenizer.json, and tokenizer_config.json or chat_template.jinja
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Option<PathBuf>,
    /// How the trainers' configurations name the base: its id on the Hugging Face hub, or a folder
    #[arg(long, value_name = "NAME")]
    pub(crate) base_name: Option<String>,
    /// Where datasets lie; `<home>/data/processed` if not given
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// The schemas that agents were really offered: a JSON array in OpenAI's form
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Licence classes of models, before the built-in list; `sources.toml` among the settings if that is there
    #[arg(long, value_name = "FILE")]
    pub(crate) sources: Option<PathBuf>,
    /// A text that was planted in the journal and must be nowhere in the dataset; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) canary: Vec<String>,

    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    pub(crate) look: Look,
}

/// What is selected, and how rows are made of it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Choice {
    /// Only this project; may be repeated
    #[arg(long, value_name = "NAME")]
    project: Vec<String>,
    /// Not this project; may be repeated
    #[arg(long, value_name = "NAME")]
    without_project: Vec<String>,
    /// Only sessions of this agent (`claude-code`, `codex`); may be repeated
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Only what this model wrote; may be repeated
    #[arg(long, value_name = "MODEL")]
    source_model: Vec<String>,
    /// Licence classes that may be used; may be repeated
    #[arg(long, value_enum, value_name = "CLASS")]
    licence: Vec<Licence>,
    /// Only sessions that began on this day (UTC) or later
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    since: Option<DateTime<Utc>>,
    /// Only sessions that began before this day
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    until: Option<DateTime<Utc>>,
    /// Only turns in which every call worked
    #[arg(long)]
    only_successful: bool,
    /// What becomes of calls that failed
    #[arg(long, value_enum)]
    failed_calls: Option<FailedCalls>,
    /// What becomes of calls that a person, or a rule of theirs, stopped
    #[arg(long, value_enum)]
    stopped_calls: Option<StoppedCalls>,
    /// Train on calls of this memory's own tools too
    #[arg(long)]
    own_tools: bool,
    /// Use only this share of a project's rows, as in `widgets=0.3`; may be repeated
    #[arg(long, value_name = "PROJECT=SHARE", value_parser = weight)]
    weight: Vec<(String, f64)>,
    /// Decides everything that is left to chance
    #[arg(long)]
    seed: Option<u64>,
    /// The longest row, in tokens
    #[arg(long)]
    max_tokens: Option<usize>,
}

/// At a dataset that is there, instead of making one.
#[derive(Debug, Default, Args)]
pub(crate) struct Look {
    /// Which dataset: its folder; the latest if not given
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dataset: Option<PathBuf>,
    /// Where a row, session or prompt came from and what happened to it
    #[arg(long, value_name = "ID", conflicts_with_all = ["stats", "sample"])]
    pub(crate) explain: Option<String>,
    /// Print the histograms
    #[arg(long, conflicts_with = "sample")]
    pub(crate) stats: bool,
    /// Print some rows, with what is trained on between » and «
    #[arg(long, value_name = "COUNT")]
    pub(crate) sample: Option<usize>,
}

impl Look {
    pub(crate) const fn is_wanted(&self) -> bool {
        self.explain.is_some() || self.stats || self.sample.is_some()
    }
}

impl Choice {
    pub(crate) const fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Whether anything of it was said.
    pub(crate) fn is_given(&self) -> bool {
        let mut chosen = Settings::default();
        self.apply(&mut chosen);
        chosen.seed = Settings::default().seed;
        chosen != Settings::default()
    }

    /// Only these projects, if any is named, and only turns in which every call worked if that is asked for.
    pub(crate) fn narrow(&mut self, projects: Vec<String>, only_successful: bool) {
        self.project = projects;
        self.only_successful = only_successful;
    }

    /// Puts what was given in the place of what the settings say.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        fn replace<T: Clone>(with: &[T], list: &mut Vec<T>) {
            if !with.is_empty() {
                with.clone_into(list);
            }
        }
        let filter = &mut settings.filter;
        replace(&self.project, &mut filter.projects);
        replace(&self.without_project, &mut filter.without_projects);
        replace(&self.agent, &mut filter.agents);
        replace(&self.source_model, &mut filter.source_models);
        replace(&self.licence, &mut filter.licences);
        filter.since = self.since.or(filter.since);
        filter.until = self.until.or(filter.until);
        filter.only_successful |= self.only_successful;
        settings.failed_calls = self.failed_calls.unwrap_or(settings.failed_calls);
        settings.stopped_calls = self.stopped_calls.unwrap_or(settings.stopped_calls);
        settings.own_tools |= self.own_tools;
        settings.weights.extend(self.weight.iter().cloned());
        settings.seed = self.seed.unwrap_or(settings.seed);
        settings.max_tokens = self.max_tokens.unwrap_or(settings.max_tokens);
    }
}

fn day(text: &str) -> Result<DateTime<Utc>, String> {
    let day =
        NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|error| format!("{error}; 2026-11-30 would be a day"))?;
    Ok(day.and_time(NaiveTime::MIN).and_utc())
}

fn weight(text: &str) -> Result<(String, f64), String> {
    let (project, share) = text.rsplit_once('=').ok_or("a project and its share are expected, as in widgets=0.3")?;
    let share = share.parse().map_err(|error| format!("`{share}` is no share: {error}"))?;
    Ok((project.to_owned(), share))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Arguments, Command};

    fn parsed(arguments: &[&str]) -> DatasetArgs {
        let all = ["agent-memory-finetune", "dataset"].iter().chain(arguments);
        match Arguments::parse_from(all).command {
            Some(Command::Dataset(dataset)) => *dataset,
            _ => unreachable!("it was asked for a dataset"),
        }
    }

    #[test]
    fn goes_before_the_settings() {
        let mut settings = Settings::default();
        let given = ["--project", "widgets", "--weight", "a=b=0.5", "--since", "2026-01-02", "--licence", "unknown"];
        parsed(&given).common.choice.apply(&mut settings);
        assert_eq!(settings.filter.projects, ["widgets"]);
        assert_eq!(settings.weights["a=b"].to_string(), "0.5");
        assert_eq!(settings.filter.since.unwrap().to_rfc3339(), "2026-01-02T00:00:00+00:00");
        assert_eq!(settings.filter.licences, [Licence::Unknown]);
        assert_eq!(settings.seed, Settings::default().seed);
    }

    #[test]
    fn says_how_a_day_and_a_weight_are_written() {
        assert!(day("yesterday").unwrap_err().contains("2026-11-30"));
        assert!(weight("widgets").unwrap_err().contains("widgets=0.3"));
    }
}
