//! What a file says of its model, and whether its tensors are like that.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::Outcome;
use crate::base::{Architecture, ModelConfig};
use crate::gguf::{Gguf, GgufError, TensorInfo, Value, names};

/// What llama.cpp and mistralrs ask of every model below its architecture's name, or have wrong defaults for.
const NEEDED: [&str; 8] = [
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.layer_norm_rms_epsilon",
    "rope.freq_base",
];
const NEEDED_TOKENIZER: [&str; 5] = ["model", "tokens", "token_type", "merges", "eos_token_id"];
/// How many numbers are looked at at once; a multiple of every block.
const PART_ELEMENTS: u64 = 1 << 20;

pub(super) fn keys(gguf: &Gguf) -> Outcome {
    let architecture = gguf.architecture().map_err(|error| error.to_string())?;
    let mut needed: Vec<_> = NEEDED.iter().map(|key| format!("{architecture}.{key}")).collect();
    needed.extend(NEEDED_TOKENIZER.iter().map(|key| format!("tokenizer.ggml.{key}")));
    // Qwen3's heads are of a width of their own, which nothing else tells.
    if architecture == Architecture::Qwen3.as_str() {
        needed.extend(["key_length", "value_length"].map(|key| format!("{architecture}.attention.{key}")));
    }
    let is_known = Architecture::ALL.iter().any(|known| known.as_str() == architecture);
    if is_known {
        needed.push("tokenizer.ggml.pre".into());
    }
    let missing: Vec<_> = needed.into_iter().filter(|key| gguf.value(key).is_none()).collect();
    if missing.is_empty() {
        Ok(format!("{}, all that engines need", gguf.header.metadata.len()))
    } else {
        Err(format!("{} are missing", missing.join(", ")))
    }
}

/// llama.cpp refuses a file whose tensors do not lie one after the other.
pub(super) fn layout(gguf: &Gguf) -> Outcome {
    let header = &gguf.header;
    let mut expected = 0;
    for tensor in &header.tensors {
        if tensor.offset != expected {
            return Err(format!(
                "{} lies at {}; {expected} is where the one before it ends",
                tensor.name, tensor.offset
            ));
        }
        expected = (expected + tensor.bytes).next_multiple_of(header.alignment);
    }
    let end = header.data_start + expected;
    if gguf.bytes > end {
        return Err(format!("{} bytes stand after the last tensor", gguf.bytes - end));
    }
    Ok(format!("{} bytes, aligned to {}", gguf.bytes, header.alignment))
}

/// For the architectures that are written here every tensor is known; of others what all have.
pub(super) fn tensors(gguf: &Gguf) -> Outcome {
    let count = gguf.header.tensors.len();
    match config_of(gguf) {
        Ok(config) => {
            known(gguf, &config)?;
            Ok(format!("{count}, as {} layers of {} have them", config.layers, config.architecture.as_str()))
        }
        Err(GgufError::Architecture { found, .. }) => {
            let layers = generic(gguf)?;
            Ok(format!("{count} in {layers} layers of {found}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Fails unless there is every tensor that the config asks for, in its shape, and none besides.
pub(in crate::gguf) fn known(gguf: &Gguf, config: &ModelConfig) -> Result<(), String> {
    let mut expected: BTreeMap<_, _> = BTreeMap::new();
    for (name, shape) in config.tensors() {
        expected.insert(names::to_gguf(&name).ok_or_else(|| format!("{name} has no name in a GGUF"))?, shape);
    }
    for tensor in &gguf.header.tensors {
        match expected.remove(&tensor.name) {
            None => return Err(format!("{} is none that a {} has", tensor.name, config.architecture.as_str())),
            Some(shape) if shape != tensor.shape => {
                return Err(format!("{} is of shape {:?}; the metadata ask for {shape:?}", tensor.name, tensor.shape));
            }
            Some(_) => {}
        }
    }
    match expected.into_keys().next() {
        Some(missing) => Err(format!("{missing} is missing")),
        None => Ok(()),
    }
}

fn generic(gguf: &Gguf) -> Result<u64, String> {
    let said = |key| gguf.number(key).map_err(|error| error.to_string());
    let (layers, hidden) = (said("block_count")?, said("embedding_length")?);
    let mut in_layers: BTreeMap<usize, usize> = BTreeMap::new();
    for layer in gguf.header.tensors.iter().filter_map(|tensor| names::layer(&tensor.name)) {
        *in_layers.entry(layer).or_default() += 1;
    }
    if in_layers.len() as u64 != layers || in_layers.keys().next_back().is_some_and(|last| *last as u64 + 1 != layers) {
        return Err(format!("tensors of {} layers; {layers} are said", in_layers.len()));
    }
    let embedding = gguf.tensor("token_embd.weight").ok_or("token_embd.weight is missing")?;
    match embedding.shape.as_slice() {
        [_, width] if *width as u64 == hidden => Ok(layers),
        shape => Err(format!("token_embd.weight is of shape {shape:?}; {hidden} columns are said")),
    }
}

/// Every number of every tensor is one. What cannot be decoded here is said, and counts as neither.
pub(super) fn numbers(gguf: &Gguf) -> Result<Outcome, GgufError> {
    let (readable, others): (Vec<_>, Vec<_>) =
        gguf.header.tensors.iter().partition(|tensor| tensor.kind.candle().is_some());
    let parts = readable.par_iter().flat_map_iter(|tensor| {
        let elements = tensor.elements();
        (0..elements)
            .step_by(PART_ELEMENTS as usize)
            .map(move |start| (*tensor, start, elements.min(start + PART_ELEMENTS)))
    });
    let broken = parts.map(|(tensor, start, end): (&TensorInfo, u64, u64)| {
        let numbers = gguf.numbers(tensor, start..end)?;
        let at = numbers.iter().position(|number| !number.is_finite());
        Ok(at.map(|at| format!("{} holds {} at {}", tensor.name, numbers[at], start + at as u64)))
    });
    let broken: Vec<_> = broken.collect::<Result<Vec<_>, GgufError>>()?.into_iter().flatten().collect();
    let elements = readable.iter().fold(0u64, |sum, tensor| sum.saturating_add(tensor.elements()));
    Ok(match (broken.first(), others.first()) {
        (Some(first), _) => Err(format!("{first}, and so in {} parts", broken.len())),
        (None, None) => Ok(format!("{elements}, all finite")),
        (None, Some(other)) => Ok(format!(
            "{elements}, all finite; {} tensors of types such as {} not decoded",
            others.len(),
            other.kind.name
        )),
    })
}

pub(super) fn vocabulary(gguf: &Gguf) -> Outcome {
    let length = |key: &str| gguf.of_tokenizer(key).and_then(Value::as_array).map(<[_]>::len);
    let tokens = length("tokens").ok_or("no tokens")?;
    let types = length("token_type").unwrap_or(0);
    let rows = gguf.tensor("token_embd.weight").and_then(|tensor| tensor.shape.first().copied()).unwrap_or(0);
    if tokens == types && tokens == rows {
        Ok(format!("{tokens} tokens, each with a kind and a row"))
    } else {
        Err(format!("{tokens} tokens, {types} kinds, {rows} rows of the embedding"))
    }
}

/// The config that a file's metadata tell of; an error for architectures that are not trained here.
pub(in crate::gguf) fn config_of(gguf: &Gguf) -> Result<ModelConfig, GgufError> {
    let found = gguf.architecture()?;
    let architecture = Architecture::ALL.into_iter().find(|known| known.as_str() == found);
    let refused = || GgufError::Architecture { path: gguf.path.clone(), found: found.to_owned() };
    let architecture = architecture.ok_or_else(refused)?;
    let number = |key: &str| gguf.number(key).map(|number| number as usize);
    let malformed = |reason: String| GgufError::Malformed { path: gguf.path.clone(), reason };
    let (hidden, heads, layers) =
        (number("embedding_length")?, number("attention.head_count")?, number("block_count")?);
    // Each layer has tensors: a count beyond theirs would only take memory to list.
    if layers > gguf.header.tensors.len() || heads == 0 {
        return Err(malformed(format!("it tells of {layers} layers and {heads} heads")));
    }
    let embedding = gguf.tensor("token_embd.weight").map(|tensor| tensor.shape.as_slice());
    let Some(&[vocabulary, _]) = embedding else {
        return Err(malformed(format!("its token_embd.weight is of shape {embedding:?}")));
    };
    let head_width = number("attention.key_length").ok();
    let config = ModelConfig {
        architecture,
        vocabulary,
        hidden,
        intermediate: number("feed_forward_length")?,
        layers,
        heads,
        key_value_heads: number("attention.head_count_kv")?,
        head_width: head_width.unwrap_or(hidden / heads),
        states_head_width: head_width.is_some(),
        rope_theta: shortest(gguf.float("rope.freq_base")?),
        norm_epsilon: shortest(gguf.float("attention.layer_norm_rms_epsilon")?),
        tied: gguf.tensor("output.weight").is_none(),
        context_length: number("context_length")?,
    };
    let sizes = [config.heads, config.key_value_heads];
    if sizes.iter().any(|size| size.checked_mul(config.head_width).is_none()) {
        return Err(malformed(format!("it tells of {heads} heads of width {}", config.head_width)));
    }
    Ok(config)
}

/// The shortest decimal that means the number in 32 bits: 1e-6, as people wrote it, not what of it is left in them.
fn shortest(number: f64) -> f64 {
    (number as f32).to_string().parse().unwrap_or(number)
}
