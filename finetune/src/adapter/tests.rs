//! What is refused rather than merged wrongly. What is merged is held against PEFT in `tests/reference.rs`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use serde_json::{Value, json};

use super::*;
use crate::base::random::{Spread, random};
use crate::base::{Architecture, Fingerprint, ModelConfig, Weights};
use crate::model::{AdapterShape, Model, Storage};

const SHAPE: AdapterShape = AdapterShape { rank: 4, alpha: 8.0 };
const QUERY_B: &str = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight";

fn config() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Qwen3,
        vocabulary: 48,
        hidden: 32,
        intermediate: 48,
        layers: 2,
        heads: 2,
        key_value_heads: 1,
        head_width: 32,
        states_head_width: true,
        rope_theta: 1e6,
        norm_epsilon: 1e-6,
        tied: true,
        context_length: 128,
    }
}

/// A base, and an adapter that was trained on it, both as they lie in their folders.
struct Folders {
    place: tempfile::TempDir,
}

impl Folders {
    fn new() -> Self {
        let folders = Self { place: tempfile::tempdir().unwrap() };
        let base = folders.path("base");
        random(&base, &config(), None, (DType::F32, Spread::SMALL, 7)).unwrap();
        let mut model = Model::load(config(), &Weights::open(&base).unwrap(), Storage::AsStored, &Device::Cpu).unwrap();
        model.adapt(SHAPE, 1).unwrap();
        let base_sha256 = Fingerprint::of(&base).unwrap().sha256;
        let origin = Origin { base_sha256, base_name: "base".to_owned(), dataset_sha256: String::new() };
        write(&folders.path("adapter"), &model.trainable(), SHAPE, &origin).unwrap();
        folders
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(name)
    }

    fn read(&self) -> Result<AdapterFolder, AdapterError> {
        AdapterFolder::read(&self.path("adapter"), &config())
    }

    /// Why the adapter cannot be read.
    fn refusal(&self) -> AdapterError {
        self.read().map(|adapter| adapter.len()).expect_err("it must be refused")
    }

    fn set(&self, key: &str, value: Value) {
        let path = self.path("adapter/adapter_config.json");
        let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        json[key] = value;
        fs::write(path, json.to_string()).unwrap();
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, Tensor>)) {
        let path = self.path("adapter/adapter_model.safetensors");
        let mut tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
        change(&mut tensors);
        candle_core::safetensors::save(&tensors, path).unwrap();
    }
}

fn zeros(rows: usize, columns: usize) -> Tensor {
    Tensor::zeros((rows, columns), DType::F32, &Device::Cpu).unwrap()
}

#[test]
fn refuses_what_is_more_than_one_rank_beside_the_maps() {
    for (key, value) in [
        ("peft_type", json!("LOHA")),
        ("use_dora", json!(true)),
        ("bias", json!("all")),
        ("bias", json!("lora_only")),
        ("modules_to_save", json!(["lm_head"])),
        ("rank_pattern", json!({"q_proj": 8})),
        ("alpha_pattern", json!({"q_proj": 8})),
        ("fan_in_fan_out", json!(true)),
        ("trainable_token_indices", json!([1, 2])),
        ("layer_replication", json!([[0, 2], [1, 2]])),
        ("alora_invocation_tokens", json!([5])),
        ("kasa_config", json!({"beta": 0.1})),
        ("init_lora_weights", json!("pissa_niter_16")),
        ("init_lora_weights", json!("olora")),
        ("r", json!(0)),
        ("lora_alpha", json!(null)),
    ] {
        let folders = Folders::new();
        folders.set(key, value.clone());
        let error = folders.refusal();
        assert!(matches!(&error, AdapterError::Unsupported { key: found, .. } if *found == key), "{key}: {error}");
        assert!(error.to_string().contains(&format!("{key} = {value}")), "{error}");
    }
}

#[test]
fn reads_what_peft_writes_where_nothing_is_special() {
    let folders = Folders::new();
    for (key, value) in [
        ("use_dora", json!(false)),
        ("rank_pattern", json!({})),
        ("modules_to_save", json!(null)),
        ("layer_replication", json!(null)),
        ("init_lora_weights", json!("gaussian")),
        ("loftq_config", json!({})),
    ] {
        folders.set(key, value);
    }
    assert_eq!(folders.read().unwrap().len(), 14);
}

#[test]
fn merges_into_no_other_base_and_leaves_nothing_behind() {
    let folders = Folders::new();
    let (base, other, merged) = (folders.path("base"), folders.path("other"), folders.path("merged"));
    random(&other, &config(), None, (DType::F32, Spread::SMALL, 8)).unwrap();
    let adapter = folders.read().unwrap();
    let sha256 = Fingerprint::of(&other).unwrap().sha256;
    let error = merge(&other, &sha256, &adapter, &merged).unwrap_err();
    let trained_on = Fingerprint::of(&base).unwrap().sha256;
    assert!(
        matches!(&error, AdapterError::OtherBase { trained_on: told, this, .. } if *told == trained_on && *this == sha256),
        "{error}"
    );
    assert!(names(folders.place.path()).iter().all(|name| !name.starts_with("merged")));
    assert_eq!(merge(&base, &trained_on, &adapter, &merged).unwrap().changed, 14);
}

#[test]
fn refuses_a_damaged_file() {
    let folders = Folders::new();
    let path = folders.path("adapter/adapter_model.safetensors");
    let whole = fs::read(&path).unwrap();
    for length in [0, 5, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = folders.refusal();
        assert!(matches!(error, AdapterError::Model(ModelError::Truncated { .. })), "{length} bytes: {error}");
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(folders.refusal(), AdapterError::Model(ModelError::NoWeights(_))));
    fs::write(folders.path("adapter/adapter_config.json"), "{").unwrap();
    assert!(matches!(folders.refusal(), AdapterError::Json { .. }));
    fs::remove_file(folders.path("adapter/adapter_config.json")).unwrap();
    assert!(matches!(folders.refusal(), AdapterError::Unreadable { .. }));
}

#[test]
fn refuses_an_adapter_of_another_shape() {
    let folders = Folders::new();
    folders.set("r", json!(8));
    assert!(matches!(folders.refusal(), AdapterError::Shape { .. }), "another rank than its config tells");
    let folders = Folders::new();
    folders.change(|tensors| drop(tensors.insert(QUERY_B.to_owned(), zeros(32, 4))));
    let error = folders.refusal();
    assert!(
        matches!(&error, AdapterError::Shape { name, found, expected } if name == QUERY_B && *found == [32, 4] && *expected == [64, 4]),
        "{error}"
    );
}

#[test]
fn refuses_a_tensor_without_its_place_or_its_pair() {
    let place = |name: &str| QUERY_B.replace("layers.0.self_attn.q_proj.lora_B", name);
    for name in [
        place("layers.2.self_attn.q_proj.lora_B"),
        place("layers.0.self_attn.qkv_proj.lora_B"),
        place("layers.0.self_attn.q_proj.lora_magnitude_vector"),
        place("embed_tokens.lora_B"),
        QUERY_B.replace("lora_B.weight", "lora_B.bias"),
        QUERY_B.replace("base_model.model.", ""),
    ] {
        let folders = Folders::new();
        folders.change(|tensors| drop(tensors.insert(name.clone(), zeros(64, 4))));
        let error = folders.refusal();
        assert!(matches!(&error, AdapterError::NoPlace(found) if *found == name), "{error}");
    }
    let folders = Folders::new();
    folders.change(|tensors| drop(tensors.remove(QUERY_B)));
    assert!(matches!(folders.refusal(), AdapterError::NoPair(what) if what == "lora_B of layer 0's self_attn.q_proj"));
    folders.change(HashMap::clear);
    assert!(matches!(folders.refusal(), AdapterError::Empty(_)));
}

#[test]
fn refuses_numbers_that_are_not_finite() {
    for number in [f64::NAN, f64::INFINITY] {
        let folders = Folders::new();
        folders.change(|tensors| {
            let spoilt = zeros(64, 4).affine(1.0, number).unwrap();
            tensors.insert(QUERY_B.to_owned(), spoilt);
        });
        assert!(matches!(folders.refusal(), AdapterError::NotFinite(name) if name == QUERY_B));
    }
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
