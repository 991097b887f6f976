//! What a GGUF is, on one screen.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Gguf, GgufError, Value, size_label};
use crate::dataset::row::hex;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    pub path: PathBuf,
    pub bytes: u64,
    pub version: u32,
    pub architecture: String,
    pub name: Option<String>,
    pub parameters: u64,
    pub layers: Option<u64>,
    pub hidden: Option<u64>,
    pub intermediate: Option<u64>,
    pub heads: Option<u64>,
    pub key_value_heads: Option<u64>,
    pub context_length: Option<u64>,
    pub tensors: usize,
    pub types: BTreeMap<&'static str, TypeShare>,
    pub metadata_keys: usize,
    pub tokens: Option<usize>,
    pub pre_tokenizer: Option<String>,
    /// By their part, `eos` for one: the token's id and text.
    pub special_tokens: BTreeMap<String, (u64, String)>,
    pub adds_bos: Option<bool>,
    /// Of the chat template's text, in hexadecimal.
    pub template_sha256: Option<String>,
}

/// What of a file is stored in one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TypeShare {
    pub tensors: usize,
    pub bytes: u64,
}

/// Reads the header only.
pub fn info(path: &Path) -> Result<Info, GgufError> {
    let gguf = Gguf::open(path)?;
    let header = &gguf.header;
    let mut types: BTreeMap<_, TypeShare> = BTreeMap::new();
    for tensor in &header.tensors {
        let share = types.entry(tensor.kind.name).or_default();
        share.tensors += 1;
        share.bytes += tensor.bytes;
    }
    let template = gguf.value("tokenizer.chat_template").and_then(Value::as_str);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    Ok(Info {
        path: gguf.path.clone(),
        bytes: gguf.bytes,
        version: header.version,
        architecture: gguf.architecture()?.to_owned(),
        name: text(gguf.value("general.name")),
        parameters: header.tensors.iter().fold(0, |sum, tensor| tensor.elements().saturating_add(sum)),
        layers: gguf.number("block_count").ok(),
        hidden: gguf.number("embedding_length").ok(),
        intermediate: gguf.number("feed_forward_length").ok(),
        heads: gguf.number("attention.head_count").ok(),
        key_value_heads: gguf.number("attention.head_count_kv").ok(),
        context_length: gguf.number("context_length").ok(),
        tensors: header.tensors.len(),
        types,
        metadata_keys: header.metadata.len(),
        tokens: gguf.of_tokenizer("tokens").and_then(Value::as_array).map(<[_]>::len),
        pre_tokenizer: text(gguf.of_tokenizer("pre")),
        special_tokens: special_tokens(&gguf),
        adds_bos: gguf.of_tokenizer("add_bos_token").and_then(Value::as_bool),
        template_sha256: template.map(|template| hex(&Sha256::digest(template))),
    })
}

fn special_tokens(gguf: &Gguf) -> BTreeMap<String, (u64, String)> {
    let texts = gguf.texts("tokens").unwrap_or_default();
    let special = gguf.header.metadata.iter().filter_map(|(key, value)| {
        let part = key.strip_prefix("tokenizer.ggml.")?.strip_suffix("_token_id")?;
        let id = value.as_u64()?;
        let text = texts.get(id as usize).copied().unwrap_or("no such token");
        Some((part.to_owned(), (id, text.to_owned())))
    });
    special.collect()
}

impl fmt::Display for Info {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        writeln!(to, "{}", self.path.display())?;
        let megabytes = self.bytes as f64 / 1e6;
        let parameters = size_label::of(self.parameters);
        writeln!(
            to,
            "  {} of {parameters} parameters, {megabytes:.1} MB, GGUF version {}",
            self.architecture, self.version
        )?;
        if let Some(name) = &self.name {
            writeln!(to, "  name        {name}")?;
        }
        let heads = format!("{}/{}", count(self.heads), count(self.key_value_heads));
        let (layers, hidden, intermediate) = (count(self.layers), count(self.hidden), count(self.intermediate));
        writeln!(to, "  shape       {layers} layers, hidden {hidden}, intermediate {intermediate}, heads {heads}")?;
        writeln!(to, "  context     {} tokens", count(self.context_length))?;
        for (name, share) in &self.types {
            let percent = 100.0 * share.bytes as f64 / self.bytes as f64;
            writeln!(to, "  {name:<11} {} tensors, {percent:.1} % of the file", share.tensors)?;
        }
        let pre = self.pre_tokenizer.as_deref().unwrap_or("?");
        writeln!(to, "  tokens      {}, cut as {pre}", count(self.tokens.map(|tokens| tokens as u64)))?;
        for (part, (id, text)) in &self.special_tokens {
            writeln!(to, "  {part:<11} {id} {text}")?;
        }
        let adds = self.adds_bos.map_or("not said", |adds| if adds { "yes" } else { "no" });
        writeln!(to, "  adds BOS    {adds}")?;
        let template = self.template_sha256.as_deref().unwrap_or("none");
        write!(to, "  template    {template}")
    }
}
