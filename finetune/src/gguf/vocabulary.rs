//! A tokenizer as a GGUF holds it: every id's text and kind, the merges, and which ids mean something.

use std::path::Path;

use serde_json::Value as Json;

use super::GgufError;
use super::metadata::{json, optional};

/// How Qwen's tokenizers cut a text before they merge; llama.cpp's name for it is `qwen2`.
pub(super) const QWEN2_SPLIT: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// llama.cpp's `llama_token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenType {
    Normal = 1,
    /// Never shown: ends and heads of turns.
    Control = 3,
    /// Added to the vocabulary, and text all the same: `<tool_call>`.
    UserDefined = 4,
    Unused = 5,
}

#[derive(Debug)]
pub(super) struct Vocabulary {
    pub(super) tokens: Vec<String>,
    pub(super) types: Vec<TokenType>,
    /// `left right`, the earlier the sooner.
    pub(super) merges: Vec<String>,
    /// Keys below `tokenizer.ggml.`, in the order they are found in.
    pub(super) special: Vec<(&'static str, u32)>,
    pub(super) adds: Vec<(&'static str, bool)>,
}

/// A token's part, as the tokenizer's files name it and as a GGUF does.
const PARTS: [(&str, &str); 6] = [
    ("bos", "bos_token_id"),
    ("eos", "eos_token_id"),
    ("unk", "unknown_token_id"),
    // As it is spelled in the format.
    ("sep", "seperator_token_id"),
    ("pad", "padding_token_id"),
    ("mask", "mask_token_id"),
];

const ADDS: [(&str, &str); 3] = [("bos", "add_bos_token"), ("eos", "add_eos_token"), ("sep", "add_sep_token")];

impl Vocabulary {
    /// The tokenizer of a folder, for a model that has `rows` embeddings: there may be more of them than tokens.
    pub(super) fn read(folder: &Path, rows: usize) -> Result<Self, GgufError> {
        let refuse = |reason: String| GgufError::Tokenizer { folder: folder.to_owned(), reason };
        let tokenizer = json(folder, "tokenizer.json")?;
        let settings = optional(folder, "tokenizer_config.json")?;
        let config = optional(folder, "config.json")?;
        if tokenizer["model"]["type"] != "BPE" {
            return Err(refuse(format!("its model is {}; BPE is written only", tokenizer["model"]["type"])));
        }
        let split = &tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
        if split != QWEN2_SPLIT {
            return Err(refuse(format!("it cuts texts by {split}, which is not how Qwen2 and Qwen3 do it")));
        }
        let (tokens, types) = tokens(&tokenizer, rows).map_err(refuse)?;
        let merges = merges(&tokenizer).ok_or_else(|| refuse("it has no merges that can be read".into()))?;
        Ok(Self {
            tokens,
            types,
            merges,
            special: special(&tokenizer, &settings, &config),
            adds: adds(&tokenizer, &settings),
        })
    }
}

fn tokens(tokenizer: &Json, rows: usize) -> Result<(Vec<String>, Vec<TokenType>), String> {
    let mut found: Vec<Option<(&str, TokenType)>> = vec![None; rows];
    let mut put = |text, id: Option<u64>, kind| {
        let place = id.and_then(|id| found.get_mut(id as usize));
        *place.ok_or_else(|| format!("the token {text:?} has the id {id:?}, and the model has {rows} rows"))? =
            Some((text, kind));
        Ok::<_, String>(())
    };
    for (text, id) in tokenizer["model"]["vocab"].as_object().into_iter().flatten() {
        put(text.as_str(), id.as_u64(), TokenType::Normal)?;
    }
    for token in added(tokenizer) {
        let text = token["content"].as_str().unwrap_or_default();
        let is_control = token["special"] == true || (text.starts_with("<|") && text.ends_with("|>"));
        put(text, token["id"].as_u64(), if is_control { TokenType::Control } else { TokenType::UserDefined })?;
    }
    let filled = found.into_iter().enumerate().map(|(id, token)| match token {
        Some((text, kind)) => (text.to_owned(), kind),
        None => (format!("[PAD{id}]"), TokenType::Unused),
    });
    Ok(filled.unzip())
}

fn added(tokenizer: &Json) -> impl Iterator<Item = &Json> {
    tokenizer["added_tokens"].as_array().into_iter().flatten()
}

/// Newer files have pairs, in which a space would stand for itself; between the two of a text it would not.
fn merges(tokenizer: &Json) -> Option<Vec<String>> {
    let spelled = |part: &Json| Some(part.as_str()?.replace(' ', "Ġ"));
    let merge = |merge: &Json| match merge {
        Json::String(text) => Some(text.clone()),
        Json::Array(pair) => Some(format!("{} {}", spelled(pair.first()?)?, spelled(pair.get(1)?)?)),
        _ => None,
    };
    tokenizer["model"]["merges"].as_array()?.iter().map(merge).collect()
}

/// First what the tokenizer's settings name by text, then what `config.json` names by number.
fn special(tokenizer: &Json, settings: &Json, config: &Json) -> Vec<(&'static str, u32)> {
    let by_text = PARTS.into_iter().filter_map(|(part, key)| {
        let entry = &settings[format!("{part}_token")];
        let text = entry.as_str().or(entry["content"].as_str())?;
        let token = added(tokenizer).find(|token| token["content"] == text)?;
        Some((key, token["id"].as_u64()? as u32))
    });
    let mut found: Vec<_> = by_text.collect();
    for (part, key) in PARTS {
        let id = config[format!("{part}_token_id")].as_u64();
        if let Some(id) = id.filter(|_| found.iter().all(|(known, _)| *known != key)) {
            found.push((key, id as u32));
        }
    }
    found
}

/// Whether engines are to add tokens of their own. A byte-level tokenizer adds none, whatever the settings say.
fn adds(tokenizer: &Json, settings: &Json) -> Vec<(&'static str, bool)> {
    let after = &tokenizer["post_processor"];
    let mut processors =
        after["processors"].as_array().map_or_else(|| vec![after], |all| all.iter().collect()).into_iter();
    let is_byte_level = processors.any(|processor| processor["type"] == "ByteLevel");
    let adds = |part: &str| settings[format!("add_{part}_token")].as_bool();
    let mut found = Vec::new();
    for (part, key) in ADDS {
        let is_settled = is_byte_level && part != "sep";
        if let Some(adds) = if is_settled { Some(false) } else { adds(part) } {
            found.push((key, adds));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tells_control_tokens_from_words_that_were_added() {
        let tokenizer = json!({
            "model": {"vocab": {"a": 0, "b": 1}},
            "added_tokens": [
                {"id": 2, "content": "<|im_end|>", "special": true},
                {"id": 3, "content": "<|fim_pad|>", "special": false},
                {"id": 5, "content": "<tool_call>", "special": false},
            ],
        });
        let (tokens, types) = tokens(&tokenizer, 7).unwrap();
        assert_eq!(tokens, ["a", "b", "<|im_end|>", "<|fim_pad|>", "[PAD4]", "<tool_call>", "[PAD6]"]);
        assert_eq!(types.into_iter().map(|kind| kind as i32).collect::<Vec<_>>(), [1, 1, 3, 3, 5, 4, 5]);
        let error = super::tokens(&tokenizer, 5).unwrap_err();
        assert!(error.contains("<tool_call>") && error.contains("5 rows"), "{error}");
    }

    #[test]
    fn reads_merges_of_both_forms() {
        let merges = |merges: Json| super::merges(&json!({"model": {"merges": merges}}));
        assert_eq!(merges(json!(["Ġ t", "h e"])).unwrap(), ["Ġ t", "h e"]);
        assert_eq!(merges(json!([["Ġ", "t"], ["a b", "c"]])).unwrap(), ["Ġ t", "aĠb c"]);
        assert_eq!(merges(json!([["only one"]])), None);
    }

    #[test]
    fn prefers_the_tokenizers_own_words_for_what_ends_a_turn() {
        let tokenizer =
            json!({"added_tokens": [{"id": 7, "content": "<|im_end|>"}, {"id": 8, "content": "<|endoftext|>"}]});
        let settings = json!({"eos_token": {"content": "<|im_end|>"}, "pad_token": "<|endoftext|>", "bos_token": null});
        let config = json!({"bos_token_id": 8, "eos_token_id": 8});
        assert_eq!(
            special(&tokenizer, &settings, &config),
            [("eos_token_id", 7), ("padding_token_id", 8), ("bos_token_id", 8)]
        );
    }
}
