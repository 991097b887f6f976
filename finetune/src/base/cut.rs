//! A tokenizer with fewer words: a model of its vocabulary trains and converts in seconds, and still reads every text, calls and all.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::ModelError;
use crate::files;

/// Every byte is a word of a byte-level tokenizer, so that no text is beyond it.
const BYTES: usize = 256;

/// Makes a tokenizer of so many tokens of the one in `folder`: the bytes, the words that are merged first, and all that was added, under
/// new ids. Names and template stay as they are.
pub fn cut(folder: &Path, out: &Path, vocabulary: usize) -> Result<(), ModelError> {
    let refuse = |reason| ModelError::Cut { folder: folder.to_owned(), vocabulary, reason };
    let mut tokenizer = read(folder, "tokenizer.json")?;
    let mut settings = read(folder, "tokenizer_config.json")?;
    let added = tokenizer["added_tokens"].as_array().map_or(0, Vec::len);
    let words = vocabulary.checked_sub(added).filter(|words| *words >= BYTES);
    let words = words.ok_or_else(|| refuse("its bytes and what was added to them are more"))?;

    let known = tokenizer["model"]["vocab"].as_object_mut().ok_or_else(|| refuse("it has no vocabulary"))?;
    known.retain(|_, id| id.as_u64().is_some_and(|id| id < words as u64));
    if known.len() != words {
        return Err(refuse("it has fewer, or not every id is a word"));
    }
    let known: HashSet<_> = known.keys().cloned().collect();
    let merges = tokenizer["model"]["merges"].as_array_mut().ok_or_else(|| refuse("it has no merges"))?;
    merges.retain(|merge| {
        parts(merge).is_some_and(|(left, right)| {
            known.contains(left) && known.contains(right) && known.contains(&format!("{left}{right}"))
        })
    });

    let mut decoder = Map::new();
    for (token, id) in tokenizer["added_tokens"].as_array_mut().into_iter().flatten().zip(words..) {
        let old = std::mem::replace(&mut token["id"], id.into());
        if let Some(entry) = settings["added_tokens_decoder"].get(old.to_string()) {
            decoder.insert(id.to_string(), entry.clone());
        }
    }
    if !decoder.is_empty() {
        settings["added_tokens_decoder"] = decoder.into();
    }

    fs::create_dir_all(out).map_err(|source| ModelError::Unwritable { path: out.to_owned(), source })?;
    write(out, "tokenizer.json", tokenizer.to_string().as_bytes())?;
    write(out, "tokenizer_config.json", settings.to_string().as_bytes())?;
    let template = folder.join("chat_template.jinja");
    if template.exists() {
        let bytes = fs::read(&template).map_err(|source| ModelError::Unreadable { path: template, source })?;
        write(out, "chat_template.jinja", &bytes)?;
    }
    Ok(())
}

/// Older files have both parts in one text.
fn parts(merge: &Value) -> Option<(&str, &str)> {
    match merge {
        Value::String(both) => both.split_once(' '),
        Value::Array(pair) => Some((pair.first()?.as_str()?, pair.get(1)?.as_str()?)),
        _ => None,
    }
}

fn read(folder: &Path, name: &str) -> Result<Value, ModelError> {
    let path = folder.join(name);
    let bytes = fs::read(&path).map_err(|source| ModelError::Unreadable { path: path.clone(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| ModelError::Json { path, source })
}

fn write(out: &Path, name: &str, bytes: &[u8]) -> Result<(), ModelError> {
    let path = out.join(name);
    files::write(&path, bytes).map_err(|source| ModelError::Unwritable { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::render::{Tokens, template_of};

    /// Of Qwen3's tokenizer, already cut to 600 tokens.
    fn qwen3() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/gguf-reference/qwen3")
    }

    #[test]
    fn keeps_bytes_first_words_and_what_was_added() {
        let folder = tempfile::tempdir().unwrap();
        cut(&qwen3(), folder.path(), 300).unwrap();
        let tokens = Tokens::of(&fs::read(folder.path().join("tokenizer.json")).unwrap()).unwrap();
        let ids = |text: &str| tokens.encode(text).unwrap().ids;
        assert_eq!(ids("in"), [258], "the third word that is merged keeps its id");
        assert_eq!(ids("<|endoftext|>"), [274], "the first that was added stands after the words");
        assert_eq!(ids("</think>"), [299]);
        assert!(ids("世界 🦀").iter().all(|id| *id < 256), "every text can still be read");
        assert_eq!(template_of(folder.path()).unwrap(), template_of(&qwen3()).unwrap());
        let settings = read(folder.path(), "tokenizer_config.json").unwrap();
        assert_eq!(settings["added_tokens_decoder"]["276"]["content"], "<|im_end|>");
        assert_eq!(settings["eos_token"], "<|im_end|>");
    }

    #[test]
    fn says_when_too_little_would_be_left() {
        let folder = tempfile::tempdir().unwrap();
        let error = cut(&qwen3(), folder.path(), 281).unwrap_err().to_string();
        assert!(error.contains("281 tokens"), "{error}");
        assert!(cut(&qwen3(), folder.path(), 601).is_err(), "nor can it grow");
    }
}
