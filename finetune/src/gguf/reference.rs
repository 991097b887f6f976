//! What is written here, held against what llama.cpp's own converter wrote of the same models (`tests/gguf-reference/make.py`): keys,
//! their order, types and values, every tensor's bytes, and with them the whole file. No field differs.

use std::collections::BTreeSet;
use std::path::Path;

use candle_core::DType;
use clap::ValueEnum as _;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::{Gguf, Quantisation, Value, tiny, verify, write};
use crate::base::Architecture;
use crate::dataset::row::hex;

const STORED: [(&str, DType); 2] = [("f32", DType::F32), ("bf16", DType::BF16)];
/// Those that the converter writes itself; the others are llama.cpp's quantiser's.
const OUT_TYPES: [Quantisation; 4] = [Quantisation::F32, Quantisation::F16, Quantisation::Bf16, Quantisation::Q8_0];

fn type_of(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("ARRAY/{}", values[0].type_name()),
        other => other.type_name().to_owned(),
    }
}

fn check_metadata(gguf: &Gguf, reference: &Json, quantisation: Quantisation) {
    let expected = reference["metadata"].as_array().unwrap();
    assert_eq!(gguf.header.metadata.len(), expected.len());
    for ((key, value), expected) in gguf.header.metadata.iter().zip(expected) {
        let [expected_key, kind, expected] = expected.as_array().unwrap().as_slice() else { panic!("three of each") };
        assert_eq!(key.as_str(), expected_key, "the order is the converter's");
        assert_eq!(&type_of(value), kind, "{key}");
        let expected =
            if key == "general.file_type" { &reference["file_types"][quantisation.as_str()] } else { expected };
        // Python shows numbers of 32 bits with the digits of 64.
        let shown = if let Value::F32(number) = value { json!(f64::from(*number)) } else { json!(value) };
        assert_eq!(&shown, expected, "{key}");
    }
}

fn check_tensors(gguf: &Gguf, bytes: &[u8], expected: &Json) {
    let expected = expected.as_object().unwrap();
    assert_eq!(gguf.header.tensors.len(), expected.len());
    for (tensor, (name, expected)) in gguf.header.tensors.iter().zip(expected) {
        let start = (gguf.header.data_start + tensor.offset) as usize;
        let hash = hex(&Sha256::digest(&bytes[start..start + tensor.bytes as usize]));
        assert_eq!(&tensor.name, name, "the order is the converter's");
        assert_eq!(&json!([tensor.kind.name, tensor.shape, hash]), expected, "{name}");
    }
}

#[test]
fn writes_what_llama_cpps_converter_writes() {
    let reference = std::fs::read(tiny::reference().join("reference.json")).unwrap();
    let reference: Json = serde_json::from_slice(&reference).unwrap();
    for architecture in Architecture::ALL {
        let reference = &reference["models"][architecture.as_str()];
        for (stored, dtype) in STORED {
            let folder = tiny::folder(architecture, dtype);
            for quantisation in OUT_TYPES {
                let out = folder.path().join("model.gguf");
                let written = write(folder.path(), &out, quantisation, "tiny").unwrap();
                let (gguf, bytes) = (Gguf::open(&out).unwrap(), std::fs::read(&out).unwrap());
                let case = format!("{stored} to {quantisation}");
                check_metadata(&gguf, reference, quantisation);
                check_tensors(&gguf, &bytes, &reference["tensors"][&case]);
                assert_eq!(written.sha256, reference["files"][&case], "{case}: the whole file");
                assert_eq!(written.bytes, bytes.len() as u64);
            }
        }
    }
}

#[test]
fn verifies_what_it_wrote_in_every_type() {
    for architecture in Architecture::ALL {
        let folder = tiny::folder(architecture, DType::BF16);
        check_all(folder.path(), &["F32", "F16", "BF16", "Q8_0"]);
    }
}

#[test]
fn verifies_blocks_of_256_where_rows_are_wide_enough() {
    let folder = tiny::folder(Architecture::Qwen3, DType::BF16);
    let config = folder.path().join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace(r#""hidden_size":64"#, r#""hidden_size":256"#)).unwrap();
    tiny::write_weights(folder.path(), DType::BF16);
    check_all(folder.path(), &["F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K", "Q4_K"]);
}

/// Writes and verifies a folder in every type there is, which are to be these.
fn check_all(folder: &Path, expected: &[&'static str]) {
    let mut types = BTreeSet::new();
    for quantisation in Quantisation::value_variants() {
        let out = folder.join(format!("{quantisation}.gguf"));
        types.extend(write(folder, &out, *quantisation, "tiny").unwrap().types.into_keys());
        let verified = verify(&out, Some(folder)).unwrap();
        assert!(verified.passed(), "{verified}");
        assert_eq!(verified.checks.len(), 11);
    }
    assert_eq!(types, expected.iter().copied().collect());
}
