//! The fast model against the plain one, and against itself with and without what it keeps.

use candle_core::{DType, Device, Tensor, Var};

use super::*;
use crate::base::random::{Spread, random};
use crate::base::{Architecture, Linear, ModelConfig, Weights};

pub(super) fn config(architecture: Architecture, tied: bool) -> ModelConfig {
    ModelConfig {
        architecture,
        vocabulary: 320,
        hidden: 64,
        intermediate: 96,
        layers: 2,
        heads: 4,
        key_value_heads: 2,
        // Not hidden / heads, as in Qwen3.
        head_width: 32,
        states_head_width: true,
        rope_theta: 1e6,
        norm_epsilon: 1e-6,
        tied,
        context_length: 512,
    }
}

fn model(config: &ModelConfig, dtype: DType, storage: Storage) -> Model {
    let folder = tempfile::tempdir().unwrap();
    random(folder.path(), config, None, (dtype, Spread::SMALL, 7)).unwrap();
    let weights = Weights::open(folder.path()).unwrap();
    Model::load(config.clone(), &weights, storage, &Device::Cpu).unwrap()
}

/// With adapters that add something: a zero `b` would hide what is wrong with `a`.
fn adapted(config: &ModelConfig, dtype: DType, storage: Storage) -> Model {
    let mut model = model(config, dtype, storage);
    model.adapt(AdapterShape { rank: 4, alpha: 8.0 }, 1).unwrap();
    for (name, variable) in model.trainable().iter().filter(|(name, _)| name.ends_with("lora_B.weight")) {
        let (rows, rank) = variable.dims2().unwrap();
        let numbers = (0..rows * rank).map(|at| ((at * 37 + name.len()) % 19) as f32 / 400.0 - 0.02);
        variable.set(&Tensor::from_iter(numbers, &Device::Cpu).unwrap().reshape((rows, rank)).unwrap()).unwrap();
    }
    model
}

/// Two samples end to end.
fn sequence() -> Sequence {
    let ids = |from: u32, count: u32| (0..count).map(|at| (from + at * 97) % 320).collect::<Vec<_>>();
    let learnt = |count: u32| (0..count).map(|at| at % 3 != 0).collect::<Vec<_>>();
    let mut sequence = Sequence::of(&ids(5, 23), &learnt(23));
    sequence.append(&ids(11, 14), &learnt(14));
    sequence
}

fn greatest(tensor: &Tensor) -> f32 {
    tensor.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

fn relative(found: &Tensor, expected: &Tensor) -> f32 {
    greatest(&(found - expected).unwrap()) / greatest(expected).max(1e-12)
}

fn gradients(model: &Model, recompute: Recompute) -> (f64, Gradients) {
    let mut sums = Gradients::default();
    let loss = model.accumulate(&sequence(), 20.0, recompute, &mut sums).unwrap();
    (loss, sums)
}

const KINDS: [(Architecture, bool); 4] = [
    (Architecture::Qwen2, true),
    (Architecture::Qwen2, false),
    (Architecture::Qwen3, true),
    (Architecture::Qwen3, false),
];

#[test]
fn has_the_gradients_of_the_plain_model_for_every_adapter() {
    for (architecture, tied) in KINDS {
        for (dtype, storage) in
            [(DType::F32, Storage::AsStored), (DType::BF16, Storage::AsStored), (DType::F32, Storage::Q8_0)]
        {
            let model = adapted(&config(architecture, tied), dtype, storage);
            let plain = reference::loss(&model, &sequence(), 20.0).unwrap();
            let expected = plain.backward().unwrap();
            let plain = f64::from(plain.to_scalar::<f32>().unwrap());
            let by_hand = |recompute| gradients(&model, recompute);
            let in_graph = |recompute| {
                let mut sums = Gradients::default();
                let loss = model.accumulate_in_graph(&sequence(), 20.0, recompute, &mut sums).unwrap();
                (loss, sums)
            };
            let ways = [Recompute::Light, Recompute::All].map(|recompute| [by_hand(recompute), in_graph(recompute)]);
            for (loss, found) in ways.into_iter().flatten() {
                assert!((loss - plain).abs() < 1e-4 * plain, "{architecture:?} {storage:?}: {loss} and {plain}");
                let trained = model.trainable();
                assert_eq!(found.len(), trained.len());
                for (name, variable) in &trained {
                    let expected = expected.get(variable.as_tensor()).unwrap();
                    let difference = relative(found.get(name).unwrap(), expected);
                    assert!(difference < 1e-4, "{architecture:?} {storage:?} {name}: {difference:e}");
                }
            }
        }
    }
}

#[test]
fn keeps_products_without_changing_a_gradient() {
    let model = adapted(&config(Architecture::Qwen3, true), DType::F32, Storage::AsStored);
    let ((light, kept), (all, computed)) = (gradients(&model, Recompute::Light), gradients(&model, Recompute::All));
    assert_eq!(light.to_bits(), all.to_bits());
    for (name, gradient) in kept.iter() {
        assert!(relative(gradient, computed.get(name).unwrap()) < 1e-6, "{name}");
    }
}

#[test]
fn has_the_logits_of_the_plain_model() {
    for (architecture, tied) in KINDS {
        let model = adapted(&config(architecture, tied), DType::F32, Storage::AsStored);
        let difference =
            relative(&model.logits(&sequence()).unwrap(), &reference::logits(&model, &sequence()).unwrap());
        assert!(difference < 1e-5, "{architecture:?}: {difference:e}");
    }
}

#[test]
fn sees_samples_that_lie_end_to_end_as_it_sees_each_alone() {
    let model = adapted(&config(Architecture::Qwen3, true), DType::F32, Storage::AsStored);
    let both = sequence();
    let together = model.logits(&both).unwrap();
    let alone = [
        model.logits(&Sequence::unlabelled(&both.ids()[..23])),
        model.logits(&Sequence::unlabelled(&both.ids()[23..])),
    ];
    let alone = Tensor::cat(&alone.map(Result::unwrap), 0).unwrap();
    assert!(relative(&together, &alone) < 1e-5);
}

#[test]
fn writes_with_a_memory_what_it_would_write_without_one() {
    for architecture in [Architecture::Qwen2, Architecture::Qwen3] {
        let model = adapted(&config(architecture, true), DType::F32, Storage::AsStored);
        let prompt = [3, 200, 41, 77];
        let generated = Generator::new(&model).greedy(&prompt, &[], 12).unwrap();
        assert!(!generated.stopped);
        let mut text = prompt.to_vec();
        for id in &generated.ids {
            let logits = model.logits(&Sequence::unlabelled(&text)).unwrap();
            let next: u32 = logits.get(text.len() - 1).unwrap().argmax(0).unwrap().to_scalar().unwrap();
            assert_eq!(*id, next, "{architecture:?}");
            text.push(next);
        }
        let end = generated.ids[2];
        let before = generated.ids.iter().position(|id| *id == end).unwrap();
        let stopped = Generator::new(&model).greedy(&prompt, &[end], 12).unwrap();
        assert_eq!((stopped.ids.len(), stopped.stopped), (before, true));
    }
}

#[test]
fn adds_nothing_before_it_is_trained() {
    let config = config(Architecture::Qwen2, true);
    let mut model = model(&config, DType::F32, Storage::AsStored);
    let before = model.logits(&sequence()).unwrap();
    model.adapt(AdapterShape { rank: 4, alpha: 8.0 }, 1).unwrap();
    assert_eq!(greatest(&(model.logits(&sequence()).unwrap() - before).unwrap()).to_bits(), 0.0_f32.to_bits());
    assert_eq!(model.trainable().len(), config.layers * Linear::ALL.len() * 2);
}

/// What this room exists for: if candle mends one of these, the detour can go.
#[test]
fn the_fast_operations_of_candle_still_lose_gradients() {
    let input = Var::from_tensor(&Tensor::rand(0f32, 1f32, (4, 32), &Device::Cpu).unwrap()).unwrap();
    let weight = Tensor::ones(32, DType::F32, &Device::Cpu).unwrap();
    let half = Tensor::ones((4, 16), DType::F32, &Device::Cpu).unwrap();
    let four = input.as_tensor().reshape((1, 1, 4, 32)).unwrap();
    let results = [
        candle_nn::ops::rms_norm(input.as_tensor(), &weight, 1e-6),
        candle_nn::ops::softmax_last_dim(input.as_tensor()),
        candle_nn::rotary_emb::rope(&four, &half, &half),
    ];
    for result in results {
        let found = result.unwrap().sqr().unwrap().sum_all().unwrap().backward().unwrap();
        assert!(found.get(input.as_tensor()).is_none());
    }
}
