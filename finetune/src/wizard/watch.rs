//! A run as the wizard shows it: what an unasked run tells, a mark of life in stages that cannot count, and the gates that a person
//! opens.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use finetune::stages::{Progress, Question, Record, Stage, Watch};
use indicatif::{ProgressBar, ProgressStyle};

use super::ask::{Asker, Likely};
use super::told;
use crate::told::Told;

/// The gate at which the person said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declined {
    Training,
    Installing,
}

pub(super) struct Watching {
    told: Told,
    asker: Box<dyn Asker + Send>,
    spinner: Option<ProgressBar>,
    declined: Arc<OnceLock<Declined>>,
}

impl Watching {
    pub(super) fn new(
        asker: Box<dyn Asker + Send>,
        cancelled: Arc<AtomicBool>,
        declined: Arc<OnceLock<Declined>>,
    ) -> Self {
        Self { told: Told::new(cancelled), asker, spinner: None, declined }
    }

    fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

/// What is being done.
const fn doing(stage: Stage) -> &'static str {
    match stage {
        Stage::Base => "Checking the base",
        Stage::Dataset => "Checking the dataset",
        Stage::Preflight => "Measuring how fast this machine learns",
        Stage::Lora => "Getting ready to train",
        Stage::Merge => "Merging the adapter into the base",
        Stage::Gguf => "Writing the model and its base as files",
        Stage::Verify => "Verifying the file",
        Stage::Smoke => "Letting mistralrs answer with it",
        Stage::Eval => "Getting ready to compare the model with its base",
        Stage::Report => "Writing the report",
        Stage::Install => "Installing it",
    }
}

impl Watch for Watching {
    fn began(&mut self, stage: Stage) {
        self.clear();
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        let spinner = ProgressBar::new_spinner().with_message(doing(stage));
        spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        spinner.enable_steady_tick(Duration::from_millis(200));
        self.spinner = Some(spinner);
        self.told.began(stage);
    }

    fn progressed(&mut self, stage: Stage, progress: &Progress<'_>) {
        self.clear();
        self.told.progressed(stage, progress);
    }

    fn finished(&mut self, record: &Record) {
        self.clear();
        self.told.finished(record);
    }

    fn passed_over(&mut self, stage: Stage, why: &str) {
        self.clear();
        self.told.passed_over(stage, why);
    }

    fn agrees(&mut self, question: &Question<'_>) -> bool {
        self.clear();
        let (figures, asked, gate) = match question {
            Question::Train(estimate) => (told::estimate(estimate), "Start the training?", Declined::Training),
            Question::Install(evaluation) => (told::evaluation(evaluation), "Install it?", Declined::Installing),
        };
        self.asker.tell(&figures);
        let agreed = self.asker.confirm(asked, Likely::Yes).unwrap_or(false);
        if !agreed {
            // Only the first no counts, and there is no second one: it ends the run.
            let _ = self.declined.set(gate);
        }
        agreed
    }

    fn is_cancelled(&self) -> bool {
        self.told.is_cancelled()
    }
}
