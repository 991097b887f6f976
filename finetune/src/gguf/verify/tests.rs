//! Files with one thing wrong, and the way back into a folder.

use std::fs;
use std::path::PathBuf;

use candle_core::{DType, Device};
use tempfile::TempDir;

use super::{Verified, verify};
use crate::base::{Architecture, ModelConfig, Weights};
use crate::gguf::{Quantisation, import, info, sha256_file, tiny, write};

fn written() -> (TempDir, PathBuf) {
    let folder = tiny::folder(Architecture::Qwen2, DType::F32);
    let path = folder.path().join("model.gguf");
    write(folder.path(), &path, Quantisation::F32, "tiny").unwrap();
    (folder, path)
}

fn failed(verified: &Verified) -> Vec<&'static str> {
    verified.failed().map(|check| check.name).collect()
}

/// Replaces bytes by as many others, where they stand first.
fn replace(path: &PathBuf, from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from).expect("it stands in the file");
    bytes[at..at + to.len()].copy_from_slice(to);
    fs::write(path, bytes).unwrap();
}

#[test]
fn finds_what_was_changed_in_a_file() {
    for (from, to, expected) in [
        (&b"{%- if tools %}"[..], &b"{%- if fools %}"[..], &["template", "sha256"][..]),
        (b"qwen2.block_count", b"qwen2.block_kount", &["keys", "tensors", "sha256"]),
        (b"<|im_end|>", b"<|im_eng|>", &["end of turn", "tokens", "sha256"]),
        (
            b"tokenizer.ggml.add_bos_token\x07\0\0\0\0",
            b"tokenizer.ggml.add_bos_token\x07\0\0\0\x01",
            &["no BOS", "sha256"],
        ),
    ] {
        let (folder, path) = written();
        replace(&path, from, to);
        let verified = verify(&path, Some(folder.path())).unwrap();
        assert_eq!(failed(&verified), expected, "{verified}");
    }
}

#[test]
fn finds_a_number_that_is_none() {
    let (_folder, path) = written();
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let verified = verify(&path, None).unwrap();
    assert_eq!(failed(&verified), ["numbers", "sha256"]);
    assert!(verified.to_string().contains("output_norm.weight holds NaN at 63"), "{verified}");
}

#[test]
fn finds_a_merge_that_is_another() {
    let (folder, path) = written();
    let merge = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    replace(&path, &merge("i n"), &merge("n i"));
    let verified = verify(&path, Some(folder.path())).unwrap();
    assert_eq!(failed(&verified), ["tokens", "sha256"], "{verified}");
}

#[test]
fn writes_a_hash_that_sha256sum_reads() {
    let (_folder, path) = written();
    let text = fs::read_to_string(sha256_file(&path)).unwrap();
    let (hash, name) = text.split_once("  ").unwrap();
    assert_eq!((hash.len(), name), (64, "model.gguf\n"));
}

#[test]
fn comes_back_as_the_folder_it_was_made_of() {
    for architecture in Architecture::ALL {
        let folder = tiny::folder(architecture, DType::BF16);
        let (first, second) = (folder.path().join("a.gguf"), folder.path().join("b.gguf"));
        let written = write(folder.path(), &first, Quantisation::F32, "tiny").unwrap();
        let out = folder.path().join("imported");
        let imported = import(&first, folder.path(), &out).unwrap();
        assert_eq!((imported.parameters, imported.types.as_slice()), (written.parameters, &["F32"][..]));
        let again = write(&out, &second, Quantisation::F32, "tiny").unwrap();
        assert_eq!(again.sha256, written.sha256, "{}", architecture.as_str());
    }
}

#[test]
fn finds_the_embedding_that_a_file_holds_twice() {
    let folder = tiny::folder(Architecture::Qwen2, DType::F32);
    let (weights, path) = (folder.path().join("model.safetensors"), folder.path().join("model.gguf"));
    let mut tensors = candle_core::safetensors::load(&weights, &Device::Cpu).unwrap();
    let rounded = tensors["model.embed_tokens.weight"].to_dtype(DType::BF16).unwrap().to_dtype(DType::F32).unwrap();
    tensors.insert("lm_head.weight".into(), rounded);
    candle_core::safetensors::save(&tensors, &weights).unwrap();
    write(folder.path(), &path, Quantisation::F32, "tiny").unwrap();
    let out = folder.path().join("imported");
    import(&path, folder.path(), &out).unwrap();
    let config = ModelConfig::read(&out).unwrap();
    assert!(config.tied);
    let found = Weights::open(&out).unwrap().tensor("model.embed_tokens.weight", &Device::Cpu).unwrap();
    let expected = tensors["lm_head.weight"].to_vec2::<f32>().unwrap();
    assert_eq!(found.to_vec2::<f32>().unwrap(), expected, "the head's numbers are the better ones");
}

#[test]
fn imports_only_with_the_tokenizer_of_the_file() {
    let (folder, path) = written();
    let other = tiny::folder(Architecture::Qwen3, DType::F32);
    let out = folder.path().join("imported");
    let error = import(&path, other.path(), &out).unwrap_err().to_string();
    assert!(error.contains("token 574"), "{error}");
    replace(&path, b"\x05\0\0\0\0\0\0\0qwen2", b"\x05\0\0\0\0\0\0\0llama");
    let error = import(&path, folder.path(), &out).unwrap_err().to_string();
    assert!(error.contains("holds a llama"), "{error}");
    assert!(!out.exists(), "nothing is left of it");
}

#[test]
fn tells_what_a_file_is_on_one_screen() {
    let (folder, path) = written();
    write(folder.path(), &path, Quantisation::Q8_0, "tiny").unwrap();
    let info = info(&path).unwrap();
    assert_eq!((info.parameters, info.tokens, info.types["Q8_0"].tensors), (133_696, Some(608), 14));
    assert_eq!(info.special_tokens["eos"], (580, "<|im_end|>".to_owned()));
    let text = info.to_string();
    assert!(text.lines().count() < 24, "{text}");
    assert!(text.contains("qwen2 of 134K parameters") && text.contains("2 layers, hidden 64"), "{text}");
}
