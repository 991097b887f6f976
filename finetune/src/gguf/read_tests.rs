//! Files that are damaged, cut short, or were never a GGUF.

use std::path::Path;

use candle_core::DType;
use proptest::prelude::*;
use tempfile::TempDir;

use super::read::{ALIGNMENT, MAGIC};
use super::value::write_text;
use super::{Gguf, GgufError, Header, Quantisation, Value, info, tiny, verify, write};
use crate::base::Architecture;

fn read(bytes: &[u8]) -> Result<Header, GgufError> {
    Header::read(bytes, bytes.len() as u64, Path::new("a.gguf"))
}

fn written(quantisation: Quantisation) -> (TempDir, Vec<u8>) {
    let folder = tiny::folder(Architecture::Qwen3, DType::BF16);
    let path = folder.path().join("a.gguf");
    write(folder.path(), &path, quantisation, "tiny").unwrap();
    let bytes = std::fs::read(path).unwrap();
    (folder, bytes)
}

/// A header with metadata and no tensor.
fn header_of(metadata: &[(String, Value)]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        write_text(key, &mut bytes);
        bytes.extend(value.kind().to_le_bytes());
        value.write(&mut bytes);
    }
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
    bytes
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        (-1e9f32..1e9).prop_map(Value::F32),
        (-1e9f64..1e9).prop_map(Value::F64),
        any::<bool>().prop_map(Value::Bool),
        ".{0,12}".prop_map(Value::String),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let repeated = (scalar(), 1usize..5).prop_map(|(value, count)| Value::Array(vec![value; count]));
    prop_oneof![scalar(), repeated]
}

proptest! {
    #[test]
    fn reads_the_metadata_that_were_written(values in proptest::collection::vec(value(), 0..8)) {
        let metadata: Vec<_> = values.into_iter().enumerate().map(|(place, value)| (format!("key.{place}"), value)).collect();
        let bytes = header_of(&metadata);
        prop_assert_eq!(read(&bytes).unwrap().metadata, metadata);
    }

    #[test]
    fn survives_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = read(&bytes);
        let _ = read(&[&MAGIC[..], &3u32.to_le_bytes(), &bytes].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn survives_a_file_that_was_changed(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_header: bool,
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        thread_local!(static WRITTEN: (TempDir, Vec<u8>) = written(Quantisation::Q8_0));
        let (folder, mut bytes) = WRITTEN.with(|(folder, bytes)| (folder.path().to_owned(), bytes.clone()));
        // The counts, names and shapes stand at the ends of the header; the words between them are most of it.
        let places = if in_header { 256 } else { bytes.len() };
        for (place, byte) in changes {
            bytes[place.index(places)] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let path = folder.join("changed.gguf");
        std::fs::write(&path, &bytes).unwrap();
        if verify(&path, Some(&folder)).is_ok() {
            let shown = info(&path).map(|info| info.to_string());
            prop_assert!(shown.is_ok() || in_header);
        }
    }
}

#[test]
fn says_how_much_of_a_file_is_missing() {
    let (folder, bytes) = written(Quantisation::F32);
    let path = folder.path().join("short.gguf");
    for length in [0, 3, 20, 100, 5000, bytes.len() - 33, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = Gguf::open(&path).unwrap_err();
        assert!(matches!(error, GgufError::CutShort { found, .. } if found == length as u64), "{error}");
    }
    std::fs::write(&path, &bytes[..bytes.len() - 33]).unwrap();
    let error = Gguf::open(&path).unwrap_err().to_string();
    let expected = format!("cut short: {} bytes where the header tells of {}", bytes.len() - 33, bytes.len());
    assert!(error.ends_with(&expected), "{error}");
}

#[test]
fn believes_no_length_that_is_longer_than_the_file() {
    let head = |counts: [u64; 2]| {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        bytes
    };
    let with = |kind: u32, rest: &[u8]| {
        let mut bytes = head([0, 1]);
        write_text("key", &mut bytes);
        bytes.extend(kind.to_le_bytes());
        bytes.extend(rest);
        bytes.resize(bytes.len() + 64, 0);
        bytes
    };
    let long = u64::MAX.to_le_bytes();
    let array = |kind: u32, length: u64| [&kind.to_le_bytes()[..], &length.to_le_bytes()].concat();
    assert!(matches!(read(&with(8, &long)), Err(GgufError::CutShort { expected: u64::MAX, .. })));
    assert!(matches!(read(&with(9, &array(4, 1 << 40))), Err(GgufError::Malformed { .. })));
    assert!(matches!(read(&with(9, &array(4, 1 << 20))), Err(GgufError::CutShort { .. })));
    assert!(matches!(read(&with(9, &array(9, 1))), Err(GgufError::Malformed { .. })));
    assert!(matches!(read(&with(77, &[])), Err(GgufError::Malformed { .. })));
    assert!(matches!(read(&head([u64::MAX, 0])), Err(GgufError::CutShort { .. })));
    let mut old = head([0, 0]);
    old[4] = 1;
    assert!(read(&old).unwrap_err().to_string().contains("version is 1"));
}
