//! `config.json`: the shape of a model, and whether it is one that can be trained here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelError;

const STRETCHED: &str = "positions are not stretched here; remove it to train on short texts";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// Qwen2 and Qwen2.5: biases on queries, keys and values.
    Qwen2,
    /// Qwen3: norms on queries and keys, and heads of a width of their own.
    Qwen3,
}

impl Architecture {
    pub const ALL: [Self; 2] = [Self::Qwen2, Self::Qwen3];

    /// As `config.json` and GGUF name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }

    /// The class that Hugging Face's transformers load.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
        }
    }
}

/// The linear maps of a layer: those that adapters stand beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Linear {
    Query,
    Key,
    Value,
    Output,
    Gate,
    Up,
    Down,
}

impl Linear {
    pub const ALL: [Self; 7] = [Self::Query, Self::Key, Self::Value, Self::Output, Self::Gate, Self::Up, Self::Down];

    /// Where it lies in a layer.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Query => "self_attn.q_proj",
            Self::Key => "self_attn.k_proj",
            Self::Value => "self_attn.v_proj",
            Self::Output => "self_attn.o_proj",
            Self::Gate => "mlp.gate_proj",
            Self::Up => "mlp.up_proj",
            Self::Down => "mlp.down_proj",
        }
    }

    /// The last part of its path, by which PEFT names what it adapts.
    pub fn module(self) -> &'static str {
        self.path().rsplit('.').next().unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    pub architecture: Architecture,
    pub vocabulary: usize,
    pub hidden: usize,
    pub intermediate: usize,
    pub layers: usize,
    pub heads: usize,
    pub key_value_heads: usize,
    pub head_width: usize,
    /// Whether `config.json` says it; converters write it into a GGUF only then.
    pub states_head_width: bool,
    pub rope_theta: f64,
    pub norm_epsilon: f64,
    /// The embedding is the head too.
    pub tied: bool,
    pub context_length: usize,
}

impl ModelConfig {
    pub fn read(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join("config.json");
        let bytes = std::fs::read(&path).map_err(|source| ModelError::Unreadable { path: path.clone(), source })?;
        let json = serde_json::from_slice(&bytes).map_err(|source| ModelError::Json { path: path.clone(), source })?;
        Self::of(&json, &path)
    }

    fn of(json: &Value, path: &Path) -> Result<Self, ModelError> {
        let reader = Reader { json, path };
        let architecture = match json["model_type"].as_str() {
            Some("qwen2") => Architecture::Qwen2,
            Some("qwen3") => Architecture::Qwen3,
            _ => return Err(reader.refuse("model_type", "qwen2 (also Qwen2.5) and qwen3 can be trained")),
        };
        if json["hidden_act"].as_str().is_some_and(|act| act != "silu") {
            return Err(reader.refuse("hidden_act", "only silu is built"));
        }
        if json["use_sliding_window"] == true {
            return Err(reader.refuse("use_sliding_window", "attention over the whole context is built only"));
        }
        let kind = |key: &str| json[key]["rope_type"].as_str().or(json[key]["type"].as_str());
        if !json["rope_scaling"].is_null() && kind("rope_scaling") != Some("default") {
            return Err(reader.refuse("rope_scaling", STRETCHED));
        }
        // Where transformers 5 keeps it, with `rope_theta` and always.
        if kind("rope_parameters").is_some_and(|kind| kind != "default") {
            return Err(reader.refuse("rope_parameters", STRETCHED));
        }
        let (hidden, heads) = (reader.number("hidden_size")?, reader.number("num_attention_heads")?);
        let head_width = json["head_dim"].as_u64().map(|width| width as usize);
        if heads == 0 || (head_width.is_none() && hidden % heads != 0) {
            return Err(reader.refuse("num_attention_heads", "it must divide hidden_size"));
        }
        let key_value_heads = reader.number("num_key_value_heads")?;
        if key_value_heads == 0 || heads % key_value_heads != 0 {
            return Err(reader.refuse("num_key_value_heads", "it must divide num_attention_heads"));
        }
        let theta = json["rope_theta"].as_f64().or(json["rope_parameters"]["rope_theta"].as_f64());
        Ok(Self {
            architecture,
            vocabulary: reader.number("vocab_size")?,
            hidden,
            intermediate: reader.number("intermediate_size")?,
            layers: reader.number("num_hidden_layers")?,
            heads,
            key_value_heads,
            head_width: head_width.unwrap_or(hidden / heads),
            states_head_width: head_width.is_some(),
            rope_theta: theta.ok_or_else(|| reader.refuse("rope_theta", "a number is expected"))?,
            norm_epsilon: json["rms_norm_eps"]
                .as_f64()
                .ok_or_else(|| reader.refuse("rms_norm_eps", "a number is expected"))?,
            tied: json["tie_word_embeddings"].as_bool().unwrap_or(false),
            context_length: reader.number("max_position_embeddings")?,
        })
    }

    /// As `config.json` has it.
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "architectures": [self.architecture.class()],
            "model_type": self.architecture.as_str(),
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_value_heads,
            "head_dim": self.head_width,
            "hidden_act": "silu",
            "attention_bias": self.architecture == Architecture::Qwen2,
            "max_position_embeddings": self.context_length,
            "rms_norm_eps": self.norm_epsilon,
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": self.tied,
            "use_sliding_window": false,
        })
    }

    /// Rows and columns of a linear map's weight.
    pub const fn shape(&self, linear: Linear) -> (usize, usize) {
        let (queries, keys) = (self.heads * self.head_width, self.key_value_heads * self.head_width);
        match linear {
            Linear::Query => (queries, self.hidden),
            Linear::Key | Linear::Value => (keys, self.hidden),
            Linear::Output => (self.hidden, queries),
            Linear::Gate | Linear::Up => (self.intermediate, self.hidden),
            Linear::Down => (self.hidden, self.intermediate),
        }
    }

    /// Every tensor of such a model, by name, with its shape.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let mut all = vec![
            ("model.embed_tokens.weight".to_owned(), vec![self.vocabulary, self.hidden]),
            ("model.norm.weight".to_owned(), vec![self.hidden]),
        ];
        if !self.tied {
            all.push(("lm_head.weight".to_owned(), vec![self.vocabulary, self.hidden]));
        }
        for layer in 0..self.layers {
            let mut add = |name: &str, shape: Vec<usize>| all.push((format!("model.layers.{layer}.{name}"), shape));
            for linear in Linear::ALL {
                let (rows, columns) = self.shape(linear);
                add(&format!("{}.weight", linear.path()), vec![rows, columns]);
                if self.has_bias(linear) {
                    add(&format!("{}.bias", linear.path()), vec![rows]);
                }
            }
            add("input_layernorm.weight", vec![self.hidden]);
            add("post_attention_layernorm.weight", vec![self.hidden]);
            if self.architecture == Architecture::Qwen3 {
                add("self_attn.q_norm.weight", vec![self.head_width]);
                add("self_attn.k_norm.weight", vec![self.head_width]);
            }
        }
        all
    }

    pub const fn has_bias(&self, linear: Linear) -> bool {
        matches!(self.architecture, Architecture::Qwen2)
            && matches!(linear, Linear::Query | Linear::Key | Linear::Value)
    }

    /// How many numbers its weights are.
    pub fn parameters(&self) -> usize {
        self.tensors().iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }
}

struct Reader<'a> {
    json: &'a Value,
    path: &'a Path,
}

impl Reader<'_> {
    fn number(&self, key: &'static str) -> Result<usize, ModelError> {
        self.json[key]
            .as_u64()
            .map(|number| number as usize)
            .ok_or_else(|| self.refuse(key, "a whole number is expected"))
    }

    fn refuse(&self, key: &'static str, why: &'static str) -> ModelError {
        ModelError::Unsupported { path: PathBuf::from(self.path), key, value: self.json[key].to_string(), why }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn qwen3() -> Value {
        json!({
            "model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072,
            "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
            "rope_theta": 1e6, "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "max_position_embeddings": 40960,
        })
    }

    fn read(json: &Value) -> Result<ModelConfig, ModelError> {
        ModelConfig::of(json, Path::new("config.json"))
    }

    #[test]
    fn counts_the_parameters_that_qwen3_is_published_with() {
        // https://huggingface.co/Qwen/Qwen3-0.6B: 0.6 B, of which 0.44 B are not embedding.
        let config = read(&qwen3()).unwrap();
        assert_eq!(config.parameters(), 596_049_920);
        assert_eq!(config.parameters() - config.vocabulary * config.hidden, 440_467_456);
    }

    #[test]
    fn says_which_setting_cannot_be_trained() {
        for (key, value) in [
            ("model_type", json!("llama")),
            ("hidden_act", json!("gelu")),
            ("use_sliding_window", json!(true)),
            ("rope_scaling", json!({"rope_type": "yarn", "factor": 4.0})),
            ("rope_parameters", json!({"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0})),
            ("num_key_value_heads", json!(7)),
            ("vocab_size", json!("many")),
            ("rms_norm_eps", json!(null)),
        ] {
            let mut config = qwen3();
            config[key] = value.clone();
            let error = read(&config).unwrap_err().to_string();
            assert!(error.contains(&format!("{key} = {value}")), "{error}");
        }
    }
}
