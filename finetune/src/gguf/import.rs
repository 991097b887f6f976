//! A GGUF back into a model's folder, in full precision: what is only published quantised can be a base too. The tokenizer comes from a
//! folder, because a GGUF keeps not all of one.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::DType;
use serde::Serialize;
use serde_json::Value as Json;

use super::verify::{config_of, known};
use super::vocabulary::{TokenType, Vocabulary};
use super::{Gguf, GgufError, TensorInfo, Value, names};
use crate::base::{ModelConfig, TOKENIZER_FILES, tensor_file};
use crate::files;

/// How many numbers are decoded at once; a multiple of every block.
const PART_ELEMENTS: u64 = 1 << 22;
/// The numbers that two tensors are compared by.
const SAMPLE_ELEMENTS: u64 = 1 << 20;
/// Of an embedding that was quantised twice, the squared difference is below a hundredth; of two unlike ones it is twice their size.
const SAME_WITHIN: f64 = 0.1;

#[derive(Debug, Clone, Serialize)]
pub struct Imported {
    pub folder: PathBuf,
    pub architecture: &'static str,
    pub parameters: u64,
    pub bytes: u64,
    /// The types that the numbers came from.
    pub types: Vec<&'static str>,
}

/// Makes the folder `out` of a file and a tokenizer's folder. The weights become F32: half of it would round a second time.
pub fn import(file: &Path, tokenizer: &Path, out: &Path) -> Result<Imported, GgufError> {
    let gguf = Gguf::open(file)?;
    let mut config = config_of(&gguf)?;
    known(&gguf, &config).map_err(|reason| GgufError::Malformed { path: file.to_owned(), reason })?;
    check_positions(&gguf)?;
    let head = gguf.tensor("output.weight").filter(|_| !config.tied);
    let head = head.map(|head| is_embedding(&gguf, head).map(|is_embedding| (head, is_embedding))).transpose()?;
    // Files of tied models may hold the embedding twice, and the head in the better type.
    let better = head.and_then(|(head, is_embedding)| is_embedding.then_some(head));
    config.tied |= better.is_some();
    check_tokenizer(&gguf, tokenizer, config.vocabulary)?;

    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| GgufError::Unwritable { path, source }
    };
    fs::create_dir_all(out).map_err(unwritable(out))?;
    let sources = sources(&gguf, &config, better)?;
    let weights = out.join("model.safetensors");
    files::replace(&weights, |partial| write_weights(&gguf, &sources, partial))
        .map_err(|error: GgufError| error.while_writing(&weights))?;
    for name in TOKENIZER_FILES {
        let from = tokenizer.join(name);
        if from.exists() {
            let to = out.join(name);
            files::copy(&from, &to).map_err(unwritable(&to))?;
        }
    }
    let path = out.join("config.json");
    let text =
        serde_json::to_vec_pretty(&config_json(&gguf, &config)).expect("JSON of numbers and texts can be written");
    files::write(&path, &text).map_err(unwritable(&path))?;
    let mut types: Vec<_> = sources.iter().map(|(_, tensor)| tensor.kind.name).collect();
    types.sort_unstable();
    types.dedup();
    let bytes = fs::metadata(&weights).map_err(unwritable(&weights))?.len();
    let (architecture, parameters) = (config.architecture.as_str(), config.parameters() as u64);
    Ok(Imported { folder: out.to_owned(), architecture, parameters, bytes, types })
}

/// A folder that said so could not be trained.
fn check_positions(gguf: &Gguf) -> Result<(), GgufError> {
    let key = format!("{}.rope.scaling.type", gguf.architecture()?);
    match gguf.value(&key).and_then(Value::as_str) {
        Some(value) if value != "none" => {
            Err(GgufError::Stretched { path: gguf.path.clone(), key, value: value.to_owned() })
        }
        _ => Ok(()),
    }
}

fn is_embedding(gguf: &Gguf, head: &TensorInfo) -> Result<bool, GgufError> {
    let Some(embedding) = gguf.tensor("token_embd.weight").filter(|embedding| embedding.shape == head.shape) else {
        return Ok(false);
    };
    let sample = 0..SAMPLE_ELEMENTS.min(head.elements());
    let (one, other) = (gguf.numbers(embedding, sample.clone())?, gguf.numbers(head, sample)?);
    let squares = one.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>();
    let differences = one.iter().zip(&other).map(|(one, other)| f64::from(one - other).powi(2)).sum::<f64>();
    Ok(differences <= SAME_WITHIN * squares)
}

/// Fails unless the folder's tokenizer has the same tokens at the same ids.
fn check_tokenizer(gguf: &Gguf, folder: &Path, rows: usize) -> Result<(), GgufError> {
    let ours = Vocabulary::read(folder, rows)?;
    let theirs = gguf.texts("tokens").unwrap_or_default();
    for (id, (token, kind)) in ours.tokens.iter().zip(&ours.types).enumerate() {
        // Ids without a token are named by whoever made the file.
        if *kind != TokenType::Unused && theirs.get(id) != Some(&token.as_str()) {
            return Err(GgufError::OtherTokenizer {
                folder: folder.to_owned(),
                path: gguf.path.clone(),
                id,
                found: token.clone(),
                expected: theirs.get(id).copied().unwrap_or_default().to_owned(),
            });
        }
    }
    Ok(())
}

/// Every tensor of the folder, by name, and where its numbers come from.
fn sources<'a>(
    gguf: &'a Gguf,
    config: &ModelConfig,
    better: Option<&'a TensorInfo>,
) -> Result<Vec<(String, &'a TensorInfo)>, GgufError> {
    let find = |(name, _): (String, Vec<usize>)| {
        let there = names::to_gguf(&name).ok_or_else(|| GgufError::Unnamed(name.clone()))?;
        let better = better.filter(|_| there == "token_embd.weight");
        let tensor = better.or_else(|| gguf.tensor(&there));
        let tensor = tensor.ok_or_else(|| GgufError::MissingTensor { path: gguf.path.clone(), name: there })?;
        Ok((name, tensor))
    };
    let mut tensors = config.tensors();
    tensors.sort();
    tensors.into_iter().map(find).collect()
}

fn write_weights(gguf: &Gguf, sources: &[(String, &TensorInfo)], path: &Path) -> Result<(), GgufError> {
    let planned = |(name, tensor): &(String, &TensorInfo)| (name.clone(), DType::F32, tensor.shape.clone());
    let planned: Vec<_> = sources.iter().map(planned).collect();
    let mut tensors = sources.iter().map(|(_, tensor)| *tensor);
    tensor_file::write(path, &planned, |_, output| {
        let Some(tensor) = tensors.next() else { return Ok(()) };
        for start in (0..tensor.elements()).step_by(PART_ELEMENTS as usize) {
            let end = tensor.elements().min(start + PART_ELEMENTS);
            output.floats(&gguf.numbers(tensor, start..end)?)?;
        }
        Ok(())
    })
}

fn config_json(gguf: &Gguf, config: &ModelConfig) -> Json {
    let id = |key: &str| gguf.of_tokenizer(key).and_then(Value::as_u64);
    let mut json = config.to_json();
    json["torch_dtype"] = "float32".into();
    json["bos_token_id"] = id("bos_token_id").into();
    json["eos_token_id"] = id("eos_token_id").into();
    if !config.states_head_width {
        json.as_object_mut().expect("a config is an object").remove("head_dim");
    }
    json
}
