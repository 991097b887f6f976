//! The embedding model that an installation gets, where the run has one; and fakes of it, for what a real one cannot show.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{settings, summary};

/// The folder with the real model and the library that runs it. Nothing where there is none and none is required; the summary has the
/// reason.
pub fn folder() -> Result<Option<PathBuf>> {
    match settings::get(settings::MODELS).map(PathBuf::from).filter(|folder| folder.is_dir()) {
        Some(folder) => {
            summary::line("embedding model: the pinned one");
            Ok(Some(folder))
        }
        None if settings::clients_are_required() => {
            bail!("{} names no folder: `cargo xtask test` makes one", settings::MODELS)
        }
        None => {
            summary::line("embedding model: NOT TESTED, `cargo xtask test` could not install one");
            Ok(None)
        }
    }
}

/// The same model under another name, and therefore another model: vectors of the two are never compared.
pub fn renamed(models: &Path, into: &Path) -> Result<()> {
    copy(&models.join("onnxruntime"), &into.join("onnxruntime"))?;
    copy(&model_in(models)?, &into.join("renamed"))
}

/// A fake model that gives vectors of so many dimensions, which say nothing.
pub fn fake(models: &Path, into: &Path, dimensions: usize) -> Result<()> {
    copy(&models.join("onnxruntime"), &into.join("onnxruntime"))?;
    copy(&model_in(models)?, &into.join("fake"))?;
    std::fs::write(into.join("fake/model.onnx"), onnx::model(dimensions)).context("writing the fake model")
}

fn model_in(models: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(models).context("listing the models")?;
    let mut folders = entries.filter_map(Result::ok).map(|entry| entry.path());
    folders.find(|folder| folder.join("model.onnx").is_file()).context("there is no model")
}

fn copy(from: &Path, into: &Path) -> Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("making `{}`", into.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("listing `{}`", from.display()))? {
        let entry = entry?;
        std::fs::copy(entry.path(), into.join(entry.file_name())).context("copying a file of the model")?;
    }
    Ok(())
}

/// As much of the ONNX format (onnx.proto) as one small graph needs: each token's number times ones.
mod onnx {
    const FLOAT: u64 = 1;
    const INT64: u64 = 7;

    pub(super) fn model(dimensions: usize) -> Vec<u8> {
        let ones = 1.0_f32.to_le_bytes().repeat(dimensions);
        let last_axis = (-1_i64).to_le_bytes();
        let to_float = [text(1, "to"), number(3, FLOAT), number(20, 2)].concat();
        let graph = [
            message(1, node("Cast", &["input_ids"], "numbers", Some(to_float))),
            message(1, node("Unsqueeze", &["numbers", "last_axis"], "column", None)),
            message(1, node("Mul", &["column", "ones"], "last_hidden_state", None)),
            text(2, "fake"),
            message(5, tensor("last_axis", INT64, 1, &last_axis)),
            message(5, tensor("ones", FLOAT, dimensions, &ones)),
            message(11, value("input_ids", INT64, &["batch", "tokens"])),
            message(11, value("attention_mask", INT64, &["batch", "tokens"])),
            message(12, value("last_hidden_state", FLOAT, &["batch", "tokens", "dimensions"])),
        ];
        let operators = [text(1, ""), number(2, 13)].concat();
        [number(1, 8), message(7, graph.concat()), message(8, operators)].concat()
    }

    fn node(operator: &str, inputs: &[&str], output: &str, attribute: Option<Vec<u8>>) -> Vec<u8> {
        let inputs = inputs.iter().flat_map(|input| text(1, input)).collect();
        let attribute = attribute.map(|attribute| message(5, attribute)).unwrap_or_default();
        [inputs, text(2, output), text(4, operator), attribute].concat()
    }

    fn tensor(name: &str, kind: u64, length: usize, values: &[u8]) -> Vec<u8> {
        [number(1, length as u64), number(2, kind), text(8, name), message(9, values.to_vec())].concat()
    }

    fn value(name: &str, kind: u64, axes: &[&str]) -> Vec<u8> {
        let shape = axes.iter().flat_map(|axis| message(1, text(2, axis))).collect();
        let tensor = [number(1, kind), message(2, shape)].concat();
        [text(1, name), message(2, message(1, tensor))].concat()
    }

    fn text(field: u64, text: &str) -> Vec<u8> {
        message(field, text.as_bytes().to_vec())
    }

    fn message(field: u64, content: Vec<u8>) -> Vec<u8> {
        [varint(field << 3 | 2), varint(content.len() as u64), content].concat()
    }

    fn number(field: u64, value: u64) -> Vec<u8> {
        [varint(field << 3), varint(value)].concat()
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }
}
