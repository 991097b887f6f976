//! The loop.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use candle_core::Var;
use serde::{Deserialize, Serialize};

use super::checkpoint::{self, Best, Checkpoint, State};
use super::examples::Example;
use super::log::{Log, Record};
use super::optimizer::AdamW;
use super::plan::{Plan, pack, sequence};
use super::schedule::learning_rate;
use super::settings::TrainSettings;
use crate::adapter::{self, AdapterError};
use crate::model::{Gradients, Model};

/// The adapter of the lowest validation loss, in the run's folder.
const BEST_FILE: &str = "best.safetensors";
const LOG_FILE: &str = "log.jsonl";
const CHECKPOINTS: &str = "checkpoints";

#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error("no sample can be trained on: {left_out} are longer than {sequence_tokens} tokens or carry no loss")]
    NothingToLearn { left_out: usize, sequence_tokens: usize },
    #[error(
        "{count} of {all} adapter tensors got no gradient, {first} among them: an operation without a derivative is in their path"
    )]
    NoGradient { count: usize, all: usize, first: String },
    #[error("{what} is not finite in step {step}; it comes from {rows}")]
    NotFinite { what: &'static str, step: usize, rows: String },
    #[error("`{path}` cannot be read")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{path}` cannot be written")]
    Unwritable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    #[error("computing")]
    Tensor(#[from] candle_core::Error),
    #[error("stopped in step {0}; the next run goes on from the last checkpoint")]
    Interrupted(usize),
}

impl TrainError {
    pub(super) fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), source }
    }

    pub(super) fn unwritable(path: &Path, source: io::Error) -> Self {
        Self::Unwritable { path: path.to_owned(), source }
    }
}

/// What is trained on what.
#[derive(Debug)]
pub struct Job<'a> {
    /// With the adapters that are trained, as they were drawn.
    pub model: &'a Model,
    pub train: &'a [Example],
    pub validation: &'a [Example],
    pub settings: &'a TrainSettings,
    /// Where log, checkpoints and the best adapter lie.
    pub folder: &'a Path,
    /// Of base, dataset and settings: only a checkpoint with the same one is gone on from.
    pub identity: String,
}

/// What a run tells while it goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// It goes on after so many steps, of so many.
    Started {
        done: usize,
        steps: usize,
    },
    Logged(&'a Record),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub steps: usize,
    pub planned_steps: usize,
    pub left_out: usize,
    pub first_loss: f64,
    pub last_loss: f64,
    /// Nothing without a validation set: then the last adapter is taken.
    pub best: Option<Best>,
    pub stopped_early: bool,
}

/// Trains until the plan, or the patience, is at its end, and leaves the best adapter in the model. `watch` may stop it.
pub fn train(job: &Job<'_>, watch: &mut dyn FnMut(&Event<'_>) -> ControlFlow<()>) -> Result<Outcome, TrainError> {
    let settings = job.settings;
    let plan = Plan::new(job.train, settings);
    if plan.is_empty() {
        let sequence_tokens = settings.sequence_tokens;
        return Err(TrainError::NothingToLearn { left_out: plan.left_out, sequence_tokens });
    }
    std::fs::create_dir_all(job.folder).map_err(|source| TrainError::unwritable(job.folder, source))?;
    let mut run = Run::begin(job, plan)?;
    let _ = watch(&Event::Started { done: run.state.steps, steps: run.plan.len() });
    while run.state.steps < run.plan.len() && !run.state.stopped_early {
        let record = run.step()?;
        let mut flow = run.tell(&record, watch)?;
        let is_last = run.state.steps == run.plan.len();
        if (is_last || run.state.steps.is_multiple_of(settings.evaluate_every))
            && let Some(record) = run.look()?
            && run.tell(&record, watch)?.is_break()
        {
            flow = ControlFlow::Break(());
        }
        let is_over = is_last || run.state.stopped_early;
        if is_over || flow.is_break() || run.state.steps.is_multiple_of(settings.checkpoint_every) {
            run.keep()?;
        }
        if flow.is_break() && !is_over {
            return Err(TrainError::Interrupted(run.state.steps));
        }
    }
    run.finish()
}

struct Run<'a> {
    job: &'a Job<'a>,
    plan: Plan,
    trained: Vec<(String, Var)>,
    optimizer: AdamW,
    validation: Vec<Vec<usize>>,
    log: Log,
    state: State,
}

impl<'a> Run<'a> {
    fn begin(job: &'a Job<'a>, plan: Plan) -> Result<Self, TrainError> {
        let trained = job.model.trainable();
        let mut optimizer = AdamW::new(trained.clone(), job.settings.weight_decay)?;
        let checkpoint = Checkpoint::last(&job.folder.join(CHECKPOINTS), &job.identity)?;
        let state = match checkpoint {
            Some(checkpoint) => {
                checkpoint.restore(&trained)?;
                optimizer.restore(checkpoint.state.steps, &checkpoint.moments)?;
                checkpoint.state
            }
            None => {
                State { identity: job.identity.clone(), steps: 0, best: None, without_gain: 0, stopped_early: false }
            }
        };
        let path = job.folder.join(LOG_FILE);
        let log = Log::resume(&path, state.steps).map_err(|source| TrainError::unwritable(&path, source))?;
        let fits = |index: &usize| job.validation[*index].ids.len() <= job.settings.sequence_tokens;
        let order: Vec<_> = (0..job.validation.len()).filter(fits).take(job.settings.validation_samples).collect();
        let validation = pack(&order, job.validation, job.settings.sequence_tokens);
        Ok(Self { job, plan, trained, optimizer, validation, log, state })
    }

    fn step(&mut self) -> Result<Record, TrainError> {
        let (settings, number, start) = (self.job.settings, self.state.steps, Instant::now());
        let sequences: Vec<_> =
            self.plan.step(number).iter().map(|indices| sequence(indices, self.job.train)).collect();
        let learnt: usize = sequences.iter().map(crate::model::Sequence::learnt).sum();
        let mut gradients = Gradients::default();
        let mut loss = 0.0;
        for sequence in &sequences {
            loss += self.job.model.accumulate(sequence, learnt as f64, settings.recompute, &mut gradients)?;
        }
        let norm = gradients.norm()?;
        for (what, value) in [("the loss", loss), ("the gradient", norm)] {
            if !value.is_finite() {
                return Err(TrainError::NotFinite { what, step: number + 1, rows: self.culprits(number)? });
            }
        }
        if number == 0 {
            self.check_gradients(&gradients)?;
        }
        let rate = learning_rate(number, self.plan.len(), settings.warm_up, settings.learning_rate);
        let factor = if norm > settings.clip { settings.clip / norm } else { 1.0 };
        self.optimizer.step(&gradients, factor, rate)?;
        self.state.steps += 1;
        let tokens = sequences.iter().map(crate::model::Sequence::len).sum();
        Ok(Record::Step {
            step: self.state.steps,
            loss,
            learning_rate: rate,
            gradient_norm: norm,
            tokens,
            tokens_per_second: tokens as f64 / start.elapsed().as_secs_f64(),
            peak_bytes: memory::process::peak_bytes(),
        })
    }

    /// An adapter without a gradient would stay as it was drawn, and the loss would fall all the same.
    fn check_gradients(&self, gradients: &Gradients) -> Result<(), TrainError> {
        let lost = self.trained.iter().filter(|(name, _)| gradients.get(name).is_none());
        let lost: Vec<_> = lost.map(|(name, _)| name.clone()).collect();
        match lost.first() {
            None => Ok(()),
            Some(first) => {
                Err(TrainError::NoGradient { count: lost.len(), all: self.trained.len(), first: first.clone() })
            }
        }
    }

    /// The rows of a step that give no finite loss by themselves; all of its rows if each does.
    fn culprits(&self, number: usize) -> Result<String, TrainError> {
        let indices: Vec<_> = self.plan.step(number).iter().flatten().copied().collect();
        let mut found = Vec::new();
        for index in &indices {
            if !self.job.model.loss(&sequence(&[*index], self.job.train))?.is_finite() {
                found.push(*index);
            }
        }
        let (told, which) = if found.is_empty() { (indices, "one of the rows") } else { (found, "row") };
        let ids: Vec<_> = told.iter().map(|index| self.job.train[*index].row.as_str()).collect();
        Ok(format!("{which} {}", ids.join(", ")))
    }

    /// Looks at the validation set, and keeps the adapter if it was never better.
    fn look(&mut self) -> Result<Option<Record>, TrainError> {
        if self.validation.is_empty() {
            return Ok(None);
        }
        let (mut sum, mut learnt) = (0.0, 0);
        for indices in &self.validation {
            let sequence = sequence(indices, self.job.validation);
            sum += self.job.model.loss(&sequence)? * sequence.learnt() as f64;
            learnt += sequence.learnt();
        }
        let loss = sum / learnt.max(1) as f64;
        let step = self.state.steps;
        let is_best = self.state.best.is_none_or(|best| loss < best.loss);
        if is_best {
            adapter::save(&self.job.folder.join(BEST_FILE), &self.trained)?;
            self.state.best = Some(Best { step, loss });
            self.state.without_gain = 0;
        } else {
            self.state.without_gain += 1;
            self.state.stopped_early = self.state.without_gain >= self.job.settings.patience;
        }
        Ok(Some(Record::Validation { step, loss, is_best }))
    }

    fn tell(
        &mut self,
        record: &Record,
        watch: &mut dyn FnMut(&Event<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TrainError> {
        let path = self.job.folder.join(LOG_FILE);
        self.log.append(record).map_err(|source| TrainError::unwritable(&path, source))?;
        Ok(watch(&Event::Logged(record)))
    }

    fn keep(&self) -> Result<(), TrainError> {
        checkpoint::write(&self.job.folder.join(CHECKPOINTS), &self.state, &self.trained, &self.optimizer.state())
    }

    fn finish(self) -> Result<Outcome, TrainError> {
        let path = self.job.folder.join(LOG_FILE);
        let records = super::log::read(&path).map_err(|source| TrainError::unreadable(&path, source))?;
        let losses = records.iter().filter_map(|record| match record {
            Record::Step { loss, .. } => Some(*loss),
            Record::Validation { .. } => None,
        });
        let losses: Vec<_> = losses.collect();
        if self.state.best.is_some() {
            let best = candle_core::safetensors::load(self.job.folder.join(BEST_FILE), &candle_core::Device::Cpu)?;
            for (name, variable) in &self.trained {
                let tensor = best.get(name).ok_or_else(|| AdapterError::NoPair(name.clone()))?;
                variable.set(tensor)?;
            }
        }
        Ok(Outcome {
            steps: self.state.steps,
            planned_steps: self.plan.len(),
            left_out: self.plan.left_out,
            first_loss: losses.first().copied().unwrap_or(f64::NAN),
            last_loss: losses.last().copied().unwrap_or(f64::NAN),
            best: self.state.best,
            stopped_early: self.state.stopped_early,
        })
    }
}
