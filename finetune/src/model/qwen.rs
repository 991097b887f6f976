//! The whole model: embedding, layers, norm and head, with the adapters that are trained.

use candle_core::{DType, Device, Result, Tensor, Var};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::cpu::Buffers;
use super::frozen::{Frozen, Storage};
use super::layer::{Heads, Layer, Surroundings};
use super::linear::{Adapter, AdapterShape, LinearMap};
use super::memo::Memo;
use super::ops::{Rotation, rms_norm};
use super::sequence::Sequence;
use crate::base::{Linear, ModelConfig, ModelError, Weights};

#[derive(Debug)]
pub struct Model {
    pub config: ModelConfig,
    pub(super) device: Device,
    pub(super) embedding: Frozen,
    /// Nothing where the embedding is the head.
    head: Option<Frozen>,
    pub(super) norm: Tensor,
    pub(super) layers: Vec<Layer>,
    pub(super) buffers: Buffers,
}

impl Model {
    /// Reads a base's weights, without adapters.
    pub fn load(
        config: ModelConfig,
        weights: &Weights,
        storage: Storage,
        device: &Device,
    ) -> std::result::Result<Self, ModelError> {
        weights.check(&config)?;
        let mut source = |name: &str, is_map: bool| {
            let tensor = weights.tensor(name, device)?;
            let failed = |source| ModelError::Tensor { name: name.to_owned(), source };
            // Embedding and head stay as stored: a quantised head costs more than it saves.
            Frozen::new(tensor, if is_map || storage == Storage::F32 { storage } else { Storage::AsStored })
                .map_err(failed)
        };
        Self::assemble(config, device, &mut source)
    }

    /// From any source of weights, by their names in Hugging Face's files; it is told which of them are linear maps of a layer.
    pub(crate) fn assemble<E: From<ModelError>>(
        config: ModelConfig,
        device: &Device,
        source: &mut impl FnMut(&str, bool) -> std::result::Result<Frozen, E>,
    ) -> std::result::Result<Self, E> {
        let embedding = source("model.embed_tokens.weight", false)?;
        let head = if config.tied { None } else { Some(source("lm_head.weight", false)?) };
        let norm = vector(source, "model.norm.weight".to_owned())?;
        let layers =
            (0..config.layers).map(|number| layer(&config, number, source)).collect::<std::result::Result<_, E>>()?;
        Ok(Self { config, device: device.clone(), embedding, head, norm, layers, buffers: Buffers::default() })
    }

    pub(super) fn head(&self) -> &Frozen {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    /// Puts a fresh adapter beside every linear map; it changes nothing until it is trained.
    pub fn adapt(&mut self, shape: AdapterShape, seed: u64) -> Result<()> {
        let mut random = StdRng::seed_from_u64(seed);
        for layer in &mut self.layers {
            for linear in Linear::ALL {
                let (rows, columns) = self.config.shape(linear);
                layer.maps[linear as usize].adapter =
                    Some(Adapter::drawn(rows, columns, shape, &mut random, &self.device)?);
            }
        }
        Ok(())
    }

    /// Puts an adapter beside one linear map of one layer, or takes it away.
    pub fn set_adapter(&mut self, layer: usize, linear: Linear, adapter: Option<Adapter>) {
        self.layers[layer].maps[linear as usize].adapter = adapter;
    }

    /// Takes all adapters away.
    pub fn forget_adapters(&mut self) {
        for layer in &mut self.layers {
            for map in &mut layer.maps {
                map.adapter = None;
            }
        }
    }

    /// What is trained, by the names that PEFT gives it, always in the same order.
    pub fn trainable(&self) -> Vec<(String, Var)> {
        let mut all = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            for linear in Linear::ALL {
                if let Some(adapter) = &layer.maps[linear as usize].adapter {
                    let [a, b] = Self::adapter_names(number, linear);
                    all.push((a, adapter.a.clone()));
                    all.push((b, adapter.b.clone()));
                }
            }
        }
        all
    }

    pub(super) fn adapter_names(layer: usize, linear: Linear) -> [String; 2] {
        ["A", "B"].map(|half| format!("base_model.model.model.layers.{layer}.{}.lora_{half}.weight", linear.path()))
    }

    /// The logits (tokens, vocabulary) after each token, in f32.
    pub fn logits(&self, sequence: &Sequence) -> Result<Tensor> {
        let around = self.around(sequence)?;
        let mut state = self.embed(sequence.ids())?;
        for layer in &self.layers {
            state = layer.forward(&state, &around, Memo::Off)?.detach();
        }
        self.head().product(&rms_norm(&state, &self.norm, self.config.norm_epsilon)?)
    }

    pub(super) fn embed(&self, ids: &[u32]) -> Result<Tensor> {
        self.embedding.rows(&Tensor::new(ids, &self.device)?)
    }

    pub(super) fn around(&self, sequence: &Sequence) -> Result<Surroundings> {
        Ok(Surroundings { rotation: self.rotation(sequence.positions())?, mask: sequence.mask(&self.device)? })
    }

    pub(super) fn rotation(&self, positions: &[u32]) -> Result<Rotation> {
        Rotation::of(positions, self.config.head_width, self.config.rope_theta, &self.device)
    }
}

fn layer<E: From<ModelError>>(
    config: &ModelConfig,
    number: usize,
    source: &mut impl FnMut(&str, bool) -> std::result::Result<Frozen, E>,
) -> std::result::Result<Layer, E> {
    let name = |path: &str| format!("model.layers.{number}.{path}");
    let mut maps = Vec::with_capacity(Linear::ALL.len());
    for linear in Linear::ALL {
        let weight = source(&name(&format!("{}.weight", linear.path())), true)?;
        let bias = config.has_bias(linear).then(|| vector(source, name(&format!("{}.bias", linear.path()))));
        maps.push(LinearMap { weight, bias: bias.transpose()?, adapter: None });
    }
    let has_norms = config.architecture == crate::base::Architecture::Qwen3;
    let mut head_norm = |path: &str| has_norms.then(|| vector(source, name(path))).transpose();
    let (query_norm, key_norm) = (head_norm("self_attn.q_norm.weight")?, head_norm("self_attn.k_norm.weight")?);
    Ok(Layer {
        input_norm: vector(source, name("input_layernorm.weight"))?,
        middle_norm: vector(source, name("post_attention_layernorm.weight"))?,
        query_norm,
        key_norm,
        maps: maps.try_into().expect("there is one map for each kind"),
        shape: Heads {
            queries: config.heads,
            keys: config.key_value_heads,
            width: config.head_width,
            epsilon: config.norm_epsilon,
        },
    })
}

/// Norms and biases: few numbers, always in f32.
fn vector<E: From<ModelError>>(
    source: &mut impl FnMut(&str, bool) -> std::result::Result<Frozen, E>,
    name: String,
) -> std::result::Result<Tensor, E> {
    let made = match source(&name, false)? {
        Frozen::Dense(tensor) => tensor.to_dtype(DType::F32),
        Frozen::Quantised { weight, .. } => weight.dequantize(&weight.device()),
    };
    made.map_err(|source| ModelError::Tensor { name, source }.into())
}
