//! What a GGUF says of a model besides its weights: the keys, types and order of llama.cpp's `convert_hf_to_gguf.py`.
//!
//! What that program guesses from the name of the folder and from a model card (base name, version, licence, tags) is left out: a folder
//! made here is named as the operator likes.

use std::path::Path;

use serde_json::Value as Json;

use super::vocabulary::Vocabulary;
use super::{GgufError, Quantisation, Value, size_label};
use crate::base::{ModelConfig, ModelError};
use crate::dataset::render;

/// The form of the quantised blocks; it has been this since 2023.
const QUANTISATION_VERSION: u32 = 2;

pub(super) type Metadata = Vec<(String, Value)>;

pub(super) fn of(
    folder: &Path,
    config: &ModelConfig,
    quantisation: Quantisation,
    name: &str,
) -> Result<Metadata, GgufError> {
    let architecture = config.architecture.as_str();
    let mut all: Metadata = vec![
        ("general.architecture".into(), Value::String(architecture.into())),
        ("general.type".into(), Value::String("model".into())),
    ];
    all.extend(sampling(&optional(folder, "generation_config.json")?));
    all.push(("general.name".into(), Value::String(name.into())));
    all.push(("general.size_label".into(), Value::String(size_label::of(config.parameters() as u64))));
    all.extend(shape(config).into_iter().map(|(key, value)| (format!("{architecture}.{key}"), value)));
    all.push(("general.file_type".into(), Value::U32(quantisation.file_type())));
    all.push(("general.quantization_version".into(), Value::U32(QUANTISATION_VERSION)));
    all.extend(tokenizer(Vocabulary::read(folder, config.vocabulary)?));
    all.push(("tokenizer.chat_template".into(), Value::String(render::template_of(folder)?)));
    Ok(all)
}

/// How the model's makers advise to sample.
fn sampling(generation: &Json) -> Metadata {
    let float = |key: &str| generation[key].as_f64().map(|number| Value::F32(number as f32));
    let repeat = float("penalty_repeat").or_else(|| float("repetition_penalty"));
    let all = [
        ("top_k", generation["top_k"].as_i64().map(|number| Value::I32(number as i32))),
        ("top_p", float("top_p")),
        ("min_p", float("min_p")),
        ("temp", float("temperature")),
        ("penalty_repeat", repeat),
    ];
    let said = all.into_iter().filter_map(|(key, value)| Some((key, value?)));
    said.map(|(key, value)| (format!("general.sampling.{key}"), value)).collect()
}

fn shape(config: &ModelConfig) -> Vec<(&'static str, Value)> {
    let number = |number: usize| Value::U32(number as u32);
    let mut all = vec![
        ("block_count", number(config.layers)),
        ("context_length", number(config.context_length)),
        ("embedding_length", number(config.hidden)),
        ("feed_forward_length", number(config.intermediate)),
        ("attention.head_count", number(config.heads)),
        ("attention.head_count_kv", number(config.key_value_heads)),
        ("rope.freq_base", Value::F32(config.rope_theta as f32)),
        ("attention.layer_norm_rms_epsilon", Value::F32(config.norm_epsilon as f32)),
    ];
    if config.states_head_width {
        all.push(("attention.key_length", number(config.head_width)));
        all.push(("attention.value_length", number(config.head_width)));
    }
    all
}

fn tokenizer(vocabulary: Vocabulary) -> Metadata {
    let types = vocabulary.types.into_iter().map(|kind| Value::I32(kind as i32)).collect();
    let mut all = vec![
        ("model", Value::String("gpt2".into())),
        ("pre", Value::String("qwen2".into())),
        ("tokens", Value::strings(vocabulary.tokens)),
        ("token_type", Value::Array(types)),
        ("merges", Value::strings(vocabulary.merges)),
    ];
    all.extend(vocabulary.special.into_iter().map(|(key, id)| (key, Value::U32(id))));
    all.extend(vocabulary.adds.into_iter().map(|(key, adds)| (key, Value::Bool(adds))));
    all.into_iter().map(|(key, value)| (format!("tokenizer.ggml.{key}"), value)).collect()
}

/// A JSON file of the folder.
pub(super) fn json(folder: &Path, name: &str) -> Result<Json, ModelError> {
    let path = folder.join(name);
    let bytes = std::fs::read(&path).map_err(|source| ModelError::Unreadable { path: path.clone(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| ModelError::Json { path, source })
}

/// The same for one that need not be there.
pub(super) fn optional(folder: &Path, name: &str) -> Result<Json, ModelError> {
    if folder.join(name).exists() { json(folder, name) } else { Ok(Json::Null) }
}
