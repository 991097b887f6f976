//! PEFT's folder: `adapter_config.json` and `adapter_model.safetensors`, and beside them what the adapter was trained on, which PEFT
//! does not keep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor, Var};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AdapterError;
use crate::base::{Linear, ModelConfig, Weights, tensor_file};
use crate::files;
use crate::model::{Adapter, AdapterShape, Model};

const CONFIG_FILE: &str = "adapter_config.json";
const ORIGIN_FILE: &str = "agent-memory.json";
const WEIGHTS_FILE: &str = "adapter_model.safetensors";
/// What PEFT puts before the names of the base's modules.
const PREFIX: &str = "base_model.model.";
/// What PEFT can do besides, and why it is not merged here.
const UNKNOWN: [(&str, &str); 9] = [
    ("use_dora", "DoRA scales the weights too"),
    ("fan_in_fan_out", "Qwen's weights are not transposed"),
    ("rank_pattern", "one rank for all maps is expected"),
    ("alpha_pattern", "one alpha for all maps is expected"),
    ("modules_to_save", "whole modules were trained, and stand in no adapter"),
    ("trainable_token_indices", "rows of the embedding were trained, and stand in no adapter"),
    ("layer_replication", "it has more layers than its base"),
    ("alora_invocation_tokens", "it is at work in a part of each text only"),
    ("kasa_config", "KaSA takes something away from the weights"),
];

/// What an adapter was trained on. Adapters made elsewhere have none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// [`crate::base::Fingerprint::sha256`] of the base.
    pub base_sha256: String,
    pub base_name: String,
    /// Of the dataset's manifest.
    pub dataset_sha256: String,
}

/// Writes an adapter, whole or not at all; an old one in its place is replaced file by file, its weights last.
pub fn write(
    folder: &Path,
    trained: &[(String, Var)],
    shape: AdapterShape,
    origin: &Origin,
) -> Result<(), AdapterError> {
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| AdapterError::Unwritable { path, source }
    };
    std::fs::create_dir_all(folder).map_err(unwritable(folder))?;
    let modules: Vec<_> = Linear::ALL.iter().map(|linear| linear.module()).collect();
    let config = json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": origin.base_name,
        "r": shape.rank,
        "lora_alpha": shape.alpha,
        "lora_dropout": 0.0,
        "target_modules": modules,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "init_lora_weights": true,
        "modules_to_save": null,
    });
    let write_json = |name: &str, value: &Value| {
        let path = folder.join(name);
        let text = serde_json::to_vec_pretty(value).expect("names and numbers are JSON");
        files::write(&path, &text).map_err(unwritable(&path))
    };
    write_json(CONFIG_FILE, &config)?;
    write_json(ORIGIN_FILE, &json!(origin))?;
    save(&folder.join(WEIGHTS_FILE), trained)
}

/// Writes variables as safetensors.
pub(crate) fn save(path: &Path, variables: &[(String, Var)]) -> Result<(), AdapterError> {
    let tensors = || variables.iter().map(|(name, variable)| (name.as_str(), variable.as_tensor()));
    files::replace(path, |partial| tensor_file::write_all(partial, tensors()))
        .map_err(|source| AdapterError::Unwritable { path: path.to_owned(), source })
}

/// An adapter as it lies in a folder, whoever made it.
#[derive(Debug)]
pub struct AdapterFolder {
    folder: PathBuf,
    pub shape: AdapterShape,
    /// Nothing where it was made elsewhere.
    pub origin: Option<Origin>,
    pub base_name: Option<String>,
    scale: f64,
    pairs: BTreeMap<(usize, Linear), (Tensor, Tensor)>,
}

impl AdapterFolder {
    /// Reads an adapter for a base of the given shape; every tensor must have its place there.
    pub fn read(folder: &Path, config: &ModelConfig) -> Result<Self, AdapterError> {
        let path = folder.join(CONFIG_FILE);
        let json = read_json(&path)?;
        let shape = shape(&json, &path)?;
        let origin_file = folder.join(ORIGIN_FILE);
        let origin = if origin_file.exists() {
            let json = read_json(&origin_file)?;
            Some(serde_json::from_value(json).map_err(|source| AdapterError::Json { path: origin_file, source })?)
        } else {
            None
        };
        let root_stabilised = json["use_rslora"] == true;
        let scale = if root_stabilised { shape.alpha / (shape.rank as f64).sqrt() } else { shape.scale() };
        let base_name = json["base_model_name_or_path"].as_str().map(str::to_owned);
        Ok(Self { folder: folder.to_owned(), shape, origin, base_name, scale, pairs: pairs(folder, shape, config)? })
    }

    /// Fails if the adapter tells that it was trained on another base than the one with this fingerprint.
    pub fn check_base(&self, base_sha256: &str) -> Result<(), AdapterError> {
        match &self.origin {
            Some(origin) if origin.base_sha256 != base_sha256 => Err(AdapterError::OtherBase {
                folder: self.folder.clone(),
                trained_on: origin.base_sha256.clone(),
                this: base_sha256.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Puts it beside the weights of a model.
    pub fn apply(&self, model: &mut Model) -> Result<(), AdapterError> {
        model.forget_adapters();
        for ((layer, linear), (a, b)) in &self.pairs {
            let variable = |tensor: &Tensor| Var::from_tensor(tensor).map_err(AdapterError::tensor(linear.path()));
            let adapter = Adapter { a: variable(a)?, b: variable(b)?, scale: self.scale };
            model.set_adapter(*layer, *linear, Some(adapter));
        }
        Ok(())
    }

    /// What it adds to the weight of this name, in f32: `scale * b a`. Nothing where it adapts another.
    pub(super) fn delta(&self, name: &str) -> Result<Option<Tensor>, AdapterError> {
        let Some(place) = name.strip_suffix(".weight").and_then(place) else { return Ok(None) };
        let Some((a, b)) = self.pairs.get(&place) else { return Ok(None) };
        let delta = b.matmul(a).and_then(|product| product * self.scale);
        delta.map(Some).map_err(AdapterError::tensor(name))
    }

    /// How many linear maps it adapts.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

fn read_json(path: &Path) -> Result<Value, AdapterError> {
    let bytes = std::fs::read(path).map_err(|source| AdapterError::Unreadable { path: path.to_owned(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| AdapterError::Json { path: path.to_owned(), source })
}

/// Refuses what would be merged wrongly rather than merging it.
fn shape(json: &Value, path: &Path) -> Result<AdapterShape, AdapterError> {
    let refuse = |key: &'static str, why: &'static str| AdapterError::Unsupported {
        path: path.to_owned(),
        key,
        value: json[key].to_string(),
        why,
    };
    if json["peft_type"] != "LORA" {
        return Err(refuse("peft_type", "only LORA is known"));
    }
    let is_set = |key: &str| match &json[key] {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(values) => !values.is_empty(),
        _ => true,
    };
    if let Some((key, why)) = UNKNOWN.into_iter().find(|(key, _)| is_set(key)) {
        return Err(refuse(key, why));
    }
    if json["bias"].as_str().is_some_and(|bias| bias != "none") {
        return Err(refuse("bias", "biases were trained too"));
    }
    // PiSSA, OLoRA, CorDA, LoftQ and LoRA-GA begin by changing the base.
    let init = json["init_lora_weights"].as_str().unwrap_or_default();
    if !["", "gaussian", "eva", "orthogonal", "mica"].contains(&init) {
        return Err(refuse("init_lora_weights", "the base was changed when it was made, and is another one"));
    }
    let rank = json["r"].as_u64().filter(|rank| *rank > 0).ok_or_else(|| refuse("r", "a rank is expected"))?;
    let alpha = json["lora_alpha"].as_f64().ok_or_else(|| refuse("lora_alpha", "a number is expected"))?;
    Ok(AdapterShape { rank: rank as usize, alpha })
}

type Pairs = BTreeMap<(usize, Linear), (Tensor, Tensor)>;

fn pairs(folder: &Path, shape: AdapterShape, config: &ModelConfig) -> Result<Pairs, AdapterError> {
    let weights = Weights::open(folder)?;
    let mut found: BTreeMap<(usize, Linear), [Option<Tensor>; 2]> = BTreeMap::new();
    for name in weights.names() {
        // Some exports leave the adapter's name in.
        let plain = name.replace(".default.weight", ".weight");
        let no_place = || AdapterError::NoPlace(name.to_owned());
        let (path, which) = if let Some(path) = plain.strip_suffix(".lora_A.weight") {
            (path, 0)
        } else {
            (plain.strip_suffix(".lora_B.weight").ok_or_else(no_place)?, 1)
        };
        let place = path.strip_prefix(PREFIX).and_then(place).filter(|(layer, _)| *layer < config.layers);
        let (layer, linear) = place.ok_or_else(no_place)?;
        let tensor = weights.tensor(name, &Device::Cpu)?.to_dtype(DType::F32).map_err(AdapterError::tensor(name))?;
        let (rows, columns) = config.shape(linear);
        let expected = if which == 0 { vec![shape.rank, columns] } else { vec![rows, shape.rank] };
        if tensor.dims() != expected {
            return Err(AdapterError::Shape { name: name.to_owned(), found: tensor.dims().to_vec(), expected });
        }
        let sum =
            tensor.abs().and_then(|tensor| tensor.sum_all()?.to_scalar::<f32>()).map_err(AdapterError::tensor(name))?;
        if !sum.is_finite() {
            return Err(AdapterError::NotFinite(name.to_owned()));
        }
        found.entry((layer, linear)).or_default()[which] = Some(tensor);
    }
    let whole = found.into_iter().map(|((layer, linear), pair)| match pair {
        [Some(a), Some(b)] => Ok(((layer, linear), (a, b))),
        [a, _] => Err(AdapterError::NoPair(format!(
            "lora_{} of layer {layer}'s {}",
            if a.is_none() { 'A' } else { 'B' },
            linear.path()
        ))),
    });
    let pairs: Pairs = whole.collect::<Result<_, _>>()?;
    if pairs.is_empty() { Err(AdapterError::Empty(folder.to_owned())) } else { Ok(pairs) }
}

/// The layer and the map that `model.layers.3.mlp.up_proj` names.
fn place(path: &str) -> Option<(usize, Linear)> {
    let (layer, module) = path.strip_prefix("model.layers.")?.split_once('.')?;
    let linear = Linear::ALL.into_iter().find(|linear| linear.path() == module)?;
    Some((layer.parse().ok()?, linear))
}
