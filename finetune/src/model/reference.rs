//! The same model from operations that candle differentiates by itself: slow, and plain enough to be read beside the paper. What the
//! fast one is held against.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::ops::{rms_norm_slow, softmax};
use candle_nn::rotary_emb::rope_slow;

use super::frozen::Frozen;
use super::linear::LinearMap;
use super::ops::Rotation;
use super::qwen::Model;
use super::sequence::Sequence;
use crate::base::Linear;

/// The sum of the cross-entropies of a sequence over `denominator`, with a graph over everything.
pub(super) fn loss(model: &Model, sequence: &Sequence, denominator: f64) -> Result<Tensor> {
    let (positions, targets) = sequence.targets();
    let chosen = logits(model, sequence)?.index_select(&Tensor::new(positions, &Device::Cpu)?, 0)?;
    let count = targets.len() as f64;
    candle_nn::loss::cross_entropy(&chosen, &Tensor::new(targets, &Device::Cpu)?)? * (count / denominator)
}

pub(super) fn logits(model: &Model, sequence: &Sequence) -> Result<Tensor> {
    let mut state = dense(&model.embedding)?.index_select(&Tensor::new(sequence.ids(), &Device::Cpu)?, 0)?;
    let rotation = model.rotation(sequence.positions())?;
    let mask = sequence.mask(&Device::Cpu)?;
    for number in 0..model.layers.len() {
        state = layer(model, number, &state, &rotation, &mask)?;
    }
    rms_norm_slow(&state, &model.norm, model.config.norm_epsilon as f32)?.matmul(&dense(model.head())?.t()?)
}

fn layer(model: &Model, number: usize, input: &Tensor, rotation: &Rotation, mask: &Tensor) -> Result<Tensor> {
    let (layer, epsilon) = (&model.layers[number], model.config.norm_epsilon as f32);
    let apply = |linear: Linear, input: &Tensor| map(&layer.maps[linear as usize], input);
    let normal = rms_norm_slow(input, &layer.input_norm, epsilon)?;
    let tokens = input.dim(0)?;
    let heads = |tensor: Tensor, heads: usize, norm: Option<&Tensor>| {
        let tensor = tensor.reshape((tokens, heads, model.config.head_width))?;
        let tensor = norm.map_or(Ok(tensor.clone()), |norm| rms_norm_slow(&tensor, norm, epsilon))?;
        tensor.transpose(0, 1)?.contiguous()
    };
    let (queries, groups) = (model.config.heads, model.config.key_value_heads);
    let turned = |tensor: Tensor| rope_slow(&tensor.unsqueeze(0)?, &rotation.cos, &rotation.sin)?.squeeze(0);
    let repeat = |tensor: Tensor| {
        let copies: Vec<_> = (0..queries).map(|head| tensor.get(head / (queries / groups))).collect::<Result<_>>()?;
        Tensor::stack(&copies, 0)
    };
    let query = turned(heads(apply(Linear::Query, &normal)?, queries, layer.query_norm.as_ref())?)?;
    let key = repeat(turned(heads(apply(Linear::Key, &normal)?, groups, layer.key_norm.as_ref())?)?)?;
    let value = repeat(heads(apply(Linear::Value, &normal)?, groups, None)?)?;
    let scores = (query.matmul(&key.t()?)? / (model.config.head_width as f64).sqrt())?.broadcast_add(mask)?;
    let mixed = softmax(&scores, D::Minus1)?.matmul(&value)?;
    let mixed = mixed.transpose(0, 1)?.contiguous()?.reshape((tokens, queries * model.config.head_width))?;
    let middle = (input + apply(Linear::Output, &mixed)?)?;
    let normal = rms_norm_slow(&middle, &layer.middle_norm, epsilon)?;
    let inner = (apply(Linear::Gate, &normal)?.silu()? * apply(Linear::Up, &normal)?)?;
    middle + apply(Linear::Down, &inner)?
}

fn map(map: &LinearMap, input: &Tensor) -> Result<Tensor> {
    let mut result = input.matmul(&dense(&map.weight)?.t()?)?;
    if let Some(bias) = &map.bias {
        result = result.broadcast_add(bias)?;
    }
    if let Some(adapter) = &map.adapter {
        let weight = (adapter.b.as_tensor().matmul(adapter.a.as_tensor())? * adapter.scale)?;
        result = (result + input.matmul(&weight.t()?)?)?;
    }
    Ok(result)
}

fn dense(weight: &Frozen) -> Result<Tensor> {
    match weight {
        Frozen::Dense(weight) => weight.to_dtype(DType::F32),
        Frozen::Quantised { weight, .. } => weight.dequantize(&Device::Cpu),
    }
}
