//! The folder of a base model: its tokenizer and its chat template.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{ChatTemplate, Tokens};
use crate::dataset::clean::ControlTokens;
use crate::dataset::row::hex;

/// How the models of a family are told apart in names of folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Qwen3,
    #[serde(rename = "qwen2_5")]
    Qwen25,
}

impl Family {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Qwen3 => "qwen3",
            Self::Qwen25 => "qwen2_5",
        }
    }
}

#[derive(Debug)]
pub struct Base {
    pub family: Family,
    pub template: ChatTemplate,
    pub tokens: Tokens,
    pub control: ControlTokens,
    /// SHA-256 of the template's text and of the tokenizer's file, in hexadecimal.
    pub template_sha256: String,
    pub tokenizer_sha256: String,
}

#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    #[error("the base model's `{path}` cannot be read")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the base model's `{path}` is no JSON")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("`{0}` has no chat template: the base is no chat model")]
    NoTemplate(PathBuf),
    #[error("the base model's chat template cannot be read")]
    Template(#[from] minijinja::Error),
    #[error("the base model's `{path}` cannot be read as a tokenizer: {reason}")]
    Tokenizer { path: PathBuf, reason: String },
    #[error("the base model in `{0}` is no Qwen3 and no Qwen2.5: its chat template writes tool calls in another way")]
    Family(PathBuf),
}

/// What a template that writes calls in the Hermes style has in it.
const HERMES: [&str; 3] = ["<tool_call>", "<tool_response>", "<tools>"];

impl Base {
    pub fn load(folder: &Path) -> Result<Self, BaseError> {
        let tokenizer_file = folder.join("tokenizer.json");
        let json = read(&tokenizer_file)?;
        let tokens = Tokens::of(&json)
            .map_err(|error| BaseError::Tokenizer { path: tokenizer_file, reason: error.to_string() })?;
        let template = template_of(folder)?;
        let thinks = template.contains("<think>") || tokens.added().any(|token| token == "<think>");
        let family = is_hermes(&template).then_some(if thinks { Family::Qwen3 } else { Family::Qwen25 });
        let family = family.ok_or_else(|| BaseError::Family(folder.to_owned()))?;
        let tags = ["<tool_call>", "<tool_response>", "<tools>", "<think>"];
        let tags = tags.into_iter().flat_map(|tag| [tag.to_owned(), tag.replace('<', "</")]);
        let control = ControlTokens::of(tokens.added().chain(tags));
        Ok(Self {
            family,
            template_sha256: hex(&Sha256::digest(&template)),
            tokenizer_sha256: hex(&Sha256::digest(&json)),
            template: ChatTemplate::new(template)?,
            tokens,
            control,
        })
    }
}

/// From `chat_template.jinja`, else from `tokenizer_config.json`, where there may be several with a name each.
pub fn template_of(folder: &Path) -> Result<String, BaseError> {
    let file = folder.join("chat_template.jinja");
    if file.exists() {
        let bytes = read(&file)?;
        return String::from_utf8(bytes).map_err(|_| BaseError::NoTemplate(file));
    }
    let path = folder.join("tokenizer_config.json");
    let config: Value =
        serde_json::from_slice(&read(&path)?).map_err(|source| BaseError::Json { path: path.clone(), source })?;
    let template = match &config["chat_template"] {
        Value::String(template) => Some(template.clone()),
        Value::Array(named) => {
            let find = |name: &str| named.iter().find(|entry| entry["name"] == name);
            let template = find("tool_use").or_else(|| find("default"));
            template.and_then(|entry| entry["template"].as_str()).map(str::to_owned)
        }
        _ => None,
    };
    template.ok_or(BaseError::NoTemplate(path))
}

/// Whether a template writes calls as Qwen2.5 and Qwen3 do; Qwen3-Coder and Qwen3.5 write `<function=name>`. Which of the two it is, the
/// tokenizer tells: only Qwen3's knows of thinking, also where the model does not think.
fn is_hermes(template: &str) -> bool {
    let is_chatml = template.contains("<|im_start|>") && HERMES.iter().all(|tag| template.contains(tag));
    is_chatml && !template.contains("<function=")
}

fn read(path: &Path) -> Result<Vec<u8>, BaseError> {
    std::fs::read(path).map_err(|source| BaseError::Unreadable { path: path.to_owned(), source })
}
