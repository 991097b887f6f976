//! Our model, adapters and merges, held against what PyTorch, transformers and PEFT computed of the same folders
//! (`tests/finetune-reference/make.py`, versions beside it). What is trained and written here stays in cargo's folder for tests, where
//! `make.py check` has PEFT load it.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "everything here is a test")]

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use finetune::adapter::{AdapterFolder, Merged, Origin, merge, write};
use finetune::base::{Fingerprint, ModelConfig, Weights};
use finetune::model::{Gradients, Model, Recompute, Sequence, Storage};
use finetune::train::{Example, Job, TrainSettings, train};
use serde::Deserialize;

/// Absolute, of logits up to 12.
const LOGITS_WITHIN: f32 = 1e-4;
/// Absolute, of weights up to 1.5.
const WEIGHTS_WITHIN: f32 = 1e-6;
/// Of a tensor's greatest gradient.
const GRADIENTS_WITHIN: f32 = 1e-4;

/// A folder of what was computed, the base and the adapter it was computed of, and how many weights that adapter changes.
struct Case {
    expected: &'static str,
    base: &'static str,
    adapter: &'static str,
    changed: usize,
}

const QWEN2: Case = Case { expected: "qwen2", base: "qwen2/base", adapter: "qwen2/adapter", changed: 14 };
const QWEN2_BF16: Case =
    Case { expected: "qwen2-bf16", base: "qwen2-bf16/base", adapter: "qwen2/adapter", changed: 14 };
const QWEN3: Case = Case { expected: "qwen3", base: "qwen3/base", adapter: "qwen3/adapter", changed: 14 };
/// Scaled by alpha over the root of the rank, on two of the maps, and with `.default.` in the tensors' names.
const QWEN3_RSLORA: Case =
    Case { expected: "qwen3-rslora", base: "qwen3/base", adapter: "qwen3-rslora/adapter", changed: 4 };
const ALL: [Case; 4] = [QWEN2, QWEN2_BF16, QWEN3, QWEN3_RSLORA];

impl Case {
    fn base(&self) -> PathBuf {
        references().join(self.base)
    }

    fn adapter(&self) -> AdapterFolder {
        AdapterFolder::read(&references().join(self.adapter), &ModelConfig::read(&self.base()).unwrap()).unwrap()
    }

    fn adapted(&self) -> Model {
        let mut model = load(&self.base());
        self.adapter().apply(&mut model).unwrap();
        model
    }

    fn expected(&self) -> HashMap<String, Tensor> {
        let path = references().join(self.expected).join("expected.safetensors");
        candle_core::safetensors::load(path, &Device::Cpu).unwrap()
    }
}

fn references() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/finetune-reference")
}

fn load(folder: &Path) -> Model {
    let config = ModelConfig::read(folder).unwrap();
    Model::load(config, &Weights::open(folder).unwrap(), Storage::AsStored, &Device::Cpu).unwrap()
}

#[derive(Deserialize)]
struct Tokens {
    ids: Vec<u32>,
    learnt: Vec<bool>,
}

fn tokens() -> Tokens {
    serde_json::from_slice(&std::fs::read(references().join("tokens.json")).unwrap()).unwrap()
}

fn sequence() -> Sequence {
    let Tokens { ids, learnt } = tokens();
    Sequence::of(&ids, &learnt)
}

fn logits(model: &Model) -> Tensor {
    model.logits(&sequence()).unwrap()
}

fn greatest(tensor: &Tensor) -> f32 {
    tensor.to_dtype(DType::F32).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

fn apart(found: &Tensor, expected: &Tensor) -> f32 {
    assert_eq!((found.dims(), found.dtype()), (expected.dims(), expected.dtype()));
    greatest(&(found.to_dtype(DType::F32).unwrap() - expected.to_dtype(DType::F32).unwrap()).unwrap())
}

/// Prints what was seen, which `--nocapture` shows, and fails above `within`.
fn check(what: &str, difference: f32, within: f32) {
    println!("{what}: {difference:.1e}");
    assert!(difference <= within, "{what}: {difference:e} apart, {within:e} at most");
}

#[test]
fn has_the_logits_of_transformers() {
    for case in [QWEN2, QWEN2_BF16, QWEN3] {
        let difference = apart(&logits(&load(&case.base())), &case.expected()["logits.base"]);
        check(&format!("{} base", case.expected), difference, LOGITS_WITHIN);
    }
}

#[test]
fn has_the_logits_of_peft_with_the_adapter() {
    for case in ALL {
        let difference = apart(&logits(&case.adapted()), &case.expected()["logits.adapter"]);
        check(&format!("{} adapter", case.expected), difference, LOGITS_WITHIN);
    }
}

#[test]
fn merges_to_the_weights_and_logits_of_peft() {
    for case in ALL {
        let folder = tempfile::tempdir().unwrap();
        let merged = folder.path().join("merged");
        let fingerprint = Fingerprint::of(&case.base()).unwrap();
        let done = merge(&case.base(), &fingerprint.sha256, &case.adapter(), &merged).unwrap();
        let (weights, before) = (Weights::open(&merged).unwrap(), Weights::open(&case.base()).unwrap());
        assert_eq!(done, Merged { changed: case.changed, tensors: before.names().count() });
        let expected = case.expected();
        let mut furthest = 0.0_f32;
        for name in before.names() {
            let found = weights.tensor(name, &Device::Cpu).unwrap();
            match expected.get(&format!("weight.{name}")) {
                Some(expected) => furthest = furthest.max(apart(&found, expected)),
                None => assert_eq!(apart(&found, &before.tensor(name, &Device::Cpu).unwrap()).to_bits(), 0, "{name}"),
            }
        }
        let weights_expected = expected.keys().filter(|name| name.starts_with("weight.")).count();
        assert_eq!((weights_expected, weights.names().count()), (case.changed, done.tensors));
        check(&format!("{} merged weights", case.expected), furthest, WEIGHTS_WITHIN);
        let difference = apart(&logits(&load(&merged)), &expected["logits.merged"]);
        check(&format!("{} merged", case.expected), difference, LOGITS_WITHIN);
    }
}

#[test]
fn has_the_loss_and_every_gradient_of_pytorch() {
    let sequence = sequence();
    for case in [QWEN2, QWEN2_BF16, QWEN3] {
        let (model, expected) = (case.adapted(), case.expected());
        for recompute in [Recompute::Light, Recompute::All] {
            let mut found = Gradients::default();
            let loss = model.accumulate(&sequence, sequence.learnt() as f64, recompute, &mut found).unwrap();
            let expected_loss = f64::from(expected["loss"].to_vec1::<f32>().unwrap()[0]);
            check(&format!("{} {recompute:?} loss", case.expected), (loss - expected_loss).abs() as f32, LOGITS_WITHIN);
            let mut furthest = 0.0_f32;
            for (name, variable) in model.trainable() {
                let (found, expected) = (found.get(&name).unwrap(), &expected[&format!("gradient.{name}")]);
                assert_eq!(found.dims(), variable.dims());
                let relative = apart(found, expected) / greatest(expected);
                assert!(relative <= GRADIENTS_WITHIN, "{} {recompute:?} {name}: {relative:e}", case.expected);
                furthest = furthest.max(relative);
            }
            let count = expected.keys().filter(|name| name.starts_with("gradient.")).count();
            assert_eq!((found.len(), count), (28, 28));
            check(&format!("{} {recompute:?} gradients", case.expected), furthest, GRADIENTS_WITHIN);
        }
    }
}

/// Trains on the one text until the adapter says something, writes it, reads it again and merges it: three ways to the same logits.
/// They stay for `make.py check`.
#[test]
fn trains_writes_and_merges_an_adapter_that_is_one_and_the_same() {
    for case in [QWEN2, QWEN3] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("finetune-reference").join(case.expected);
        let run = tempfile::tempdir().unwrap();
        let mut model = load(&case.base());
        let base = logits(&model);
        let settings = settings();
        model.adapt(settings.adapter(), settings.seed).unwrap();
        let Tokens { ids, learnt } = tokens();
        let examples = [Example { row: "row".to_owned(), ids, carries_loss: learnt }];
        let identity = case.expected.to_owned();
        let job =
            Job { model: &model, train: &examples, validation: &[], settings: &settings, folder: run.path(), identity };
        let outcome = train(&job, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(outcome.last_loss < 0.5 * outcome.first_loss, "{outcome:?}");
        let trained = logits(&model);

        let fingerprint = Fingerprint::of(&case.base()).unwrap().sha256;
        let origin =
            Origin { base_sha256: fingerprint.clone(), base_name: "base".to_owned(), dataset_sha256: String::new() };
        let (adapter, merged) = (folder.join("adapter"), folder.join("merged"));
        write(&adapter, &model.trainable(), settings.adapter(), &origin).unwrap();
        let read = AdapterFolder::read(&adapter, &model.config).unwrap();
        assert_eq!((read.origin.as_ref(), read.shape, read.len()), (Some(&origin), settings.adapter(), 14));
        let mut again = load(&case.base());
        read.apply(&mut again).unwrap();
        assert_eq!(apart(&logits(&again), &trained).to_bits(), 0, "what was written is what was trained");
        merge(&case.base(), &fingerprint, &read, &merged).unwrap();
        let of_merged = logits(&load(&merged));
        check(&format!("{} trained and merged", case.expected), apart(&of_merged, &trained), LOGITS_WITHIN);

        let ours = [("base", base), ("adapter", trained), ("merged", of_merged)];
        let ours = ours.map(|(name, logits)| (name.to_owned(), logits)).into_iter().collect();
        candle_core::safetensors::save(&ours, folder.join("logits.safetensors")).unwrap();
    }
}

fn settings() -> TrainSettings {
    TrainSettings {
        rank: 8,
        alpha: 16.0,
        learning_rate: 1e-2,
        epochs: 30,
        sequences_per_step: 1,
        ..TrainSettings::default()
    }
}
