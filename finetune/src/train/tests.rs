//! The loop on models so small that a run takes a second.

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::{DType, Device, Tensor};

use super::*;
use crate::base::random::{Spread, random, tiny};
use crate::base::{Architecture, Weights};
use crate::model::{Model, Storage};

fn model(settings: &TrainSettings) -> Model {
    let config = tiny(Architecture::Qwen3, 48);
    let folder = tempfile::tempdir().unwrap();
    random(folder.path(), &config, None, (DType::F32, Spread::SMALL, 3)).unwrap();
    let weights = Weights::open(folder.path()).unwrap();
    let mut model = Model::load(config, &weights, Storage::AsStored, &Device::Cpu).unwrap();
    model.adapt(settings.adapter(), settings.seed).unwrap();
    model
}

/// Counting on by a step that the first token tells.
fn examples(count: u32) -> Vec<Example> {
    let example = |number: u32| Example {
        row: format!("row{number}"),
        ids: (0..8).map(|at| if at == 0 { number % 3 } else { (number + at * (1 + number % 3)) % 48 }).collect(),
        carries_loss: (0..8).map(|at| at > 2).collect(),
    };
    (0..count).map(example).collect()
}

fn settings() -> TrainSettings {
    TrainSettings {
        rank: 4,
        alpha: 8.0,
        learning_rate: 2e-2,
        epochs: 5,
        sequence_tokens: 20,
        sequences_per_step: 2,
        evaluate_every: 4,
        checkpoint_every: 3,
        patience: 100,
        ..TrainSettings::default()
    }
}

fn run(
    model: &Model,
    settings: &TrainSettings,
    folder: &Path,
    stop_after: Option<usize>,
) -> Result<Outcome, TrainError> {
    let (train_set, validation) = (examples(12), examples(4));
    let identity = "this run".to_owned();
    let job = Job { model, train: &train_set, validation: &validation, settings, folder, identity };
    train(&job, &mut |event| match event {
        Event::Logged(record) if Some(record.step()) == stop_after => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
}

/// What does not depend on the clock.
fn curve(folder: &Path) -> Vec<(usize, u64)> {
    let bits = |record: &Record| match record {
        Record::Step { loss, .. } | Record::Validation { loss, .. } => loss.to_bits(),
    };
    read_log(&folder.join("log.jsonl")).unwrap().iter().map(|record| (record.step(), bits(record))).collect()
}

fn weights(model: &Model) -> Vec<Vec<f32>> {
    let numbers = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1().unwrap();
    model.trainable().iter().map(|(_, variable)| numbers(variable.as_tensor())).collect()
}

#[test]
fn learns_and_keeps_the_best() {
    let (settings, folder) = (settings(), tempfile::tempdir().unwrap());
    let model = model(&settings);
    let outcome = run(&model, &settings, folder.path(), None).unwrap();
    assert!(outcome.last_loss < 0.5 * outcome.first_loss, "{outcome:?}");
    let best = outcome.best.unwrap();
    let validations = read_log(&folder.path().join("log.jsonl")).unwrap();
    let lowest = validations.iter().filter_map(|record| match record {
        Record::Validation { loss, .. } => Some(*loss),
        Record::Step { .. } => None,
    });
    assert_eq!(Some(best.loss.to_bits()), lowest.min_by(f64::total_cmp).map(f64::to_bits));
}

#[test]
fn goes_on_after_a_stop_as_if_there_had_been_none() {
    let settings = settings();
    let (unbroken, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = model(&settings);
    let outcome = run(&whole, &settings, unbroken.path(), None).unwrap();
    for stop_after in [1, 4, 7] {
        let stopped = run(&model(&settings), &settings, broken.path(), Some(stop_after));
        assert!(matches!(stopped, Err(TrainError::Interrupted(step)) if step == stop_after));
    }
    let resumed = model(&settings);
    assert_eq!(run(&resumed, &settings, broken.path(), None).unwrap(), outcome);
    assert_eq!(curve(broken.path()), curve(unbroken.path()));
    assert_eq!(weights(&resumed), weights(&whole));
}

#[test]
fn goes_back_to_the_last_checkpoint_when_it_was_killed() {
    let settings = settings();
    let (unbroken, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(&model(&settings), &settings, unbroken.path(), None).unwrap();
    let (train_set, validation) = (examples(12), examples(4));
    let model_of_killed = model(&settings);
    let job = Job {
        model: &model_of_killed,
        train: &train_set,
        validation: &validation,
        settings: &settings,
        folder: killed.path(),
        identity: "this run".to_owned(),
    };
    // A step after the checkpoint of step 6, and no chance to keep anything.
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        train(&job, &mut |event| match event {
            Event::Logged(record) if record.step() == 8 => panic!("killed"),
            _ => ControlFlow::Continue(()),
        })
    }));
    assert!(died.is_err());
    run(&model(&settings), &settings, killed.path(), None).unwrap();
    assert_eq!(curve(killed.path()), curve(unbroken.path()));
}

#[test]
fn does_not_go_on_from_the_checkpoint_of_another_run() {
    let (settings, folder) = (settings(), tempfile::tempdir().unwrap());
    assert!(run(&model(&settings), &settings, folder.path(), Some(6)).is_err());
    let other = model(&settings);
    let (train_set, validation) = (examples(12), Vec::new());
    let identity = "another run".to_owned();
    let job = Job {
        model: &other,
        train: &train_set,
        validation: &validation,
        settings: &settings,
        folder: folder.path(),
        identity,
    };
    let mut begun = None;
    train(&job, &mut |event| {
        if let Event::Started { done, .. } = event {
            begun = Some(*done);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(begun, Some(0));
}

#[test]
fn names_the_row_whose_loss_is_no_number() {
    let (settings, folder) = (settings(), tempfile::tempdir().unwrap());
    let model = model(&settings);
    // An adapter that is no number spoils every row; it is found in the first step.
    let (_, variable) = &model.trainable()[0];
    variable.set(&(variable.as_detached_tensor() * f64::NAN).unwrap()).unwrap();
    let error = run(&model, &settings, folder.path(), None).unwrap_err();
    assert!(matches!(&error, TrainError::NotFinite { step: 1, rows, .. } if rows.starts_with("row row")), "{error}");
}

#[test]
fn ends_when_the_validation_loss_no_longer_falls() {
    let mut settings = settings();
    (settings.learning_rate, settings.patience, settings.evaluate_every, settings.epochs) = (0.5, 2, 1, 40);
    let folder = tempfile::tempdir().unwrap();
    let outcome = run(&model(&settings), &settings, folder.path(), None).unwrap();
    assert!(outcome.stopped_early && outcome.steps < outcome.planned_steps, "{outcome:?}");
    let best = outcome.best.unwrap();
    assert_eq!(outcome.steps, best.step + settings.patience);
}

#[test]
fn says_why_there_is_nothing_to_learn() {
    let settings = TrainSettings { sequence_tokens: 4, ..settings() };
    let folder = tempfile::tempdir().unwrap();
    let error = run(&model(&settings), &settings, folder.path(), None).unwrap_err();
    assert!(matches!(error, TrainError::NothingToLearn { left_out: 12, sequence_tokens: 4 }), "{error}");
}
