//! Opening a GGUF from anywhere. Nothing that its header says is believed before it was held against the length of the file, so that a
//! damaged or malicious one is an error, and takes no more memory than it is long.

use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::ggml_file::qtensor_from_ggml;

use super::value::kind;
use super::{GgufError, TensorType, Value};

pub(super) const MAGIC: [u8; 4] = *b"GGUF";
/// What is written. Version 2 is laid out alike; version 1 had shorter lengths.
pub(super) const VERSION: u32 = 3;
pub(super) const ALIGNMENT: u64 = 32;

/// ggml's `GGML_MAX_DIMS`.
const MOST_DIMENSIONS: u32 = 4;
/// Values take more room in memory than in the file. The largest vocabularies have 262,144 tokens, with as many kinds, scores and twice
/// as many merges.
const MOST_VALUES: u64 = 1 << 23;

/// A file whose header was read, and whose tensors all lie in it.
#[derive(Debug)]
pub struct Gguf {
    pub path: PathBuf,
    pub bytes: u64,
    pub header: Header,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    pub version: u32,
    pub alignment: u64,
    /// In the file's order; no key twice.
    pub metadata: Vec<(String, Value)>,
    pub tensors: Vec<TensorInfo>,
    /// Where the first tensor begins, in bytes.
    pub data_start: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    /// Rows first, as in Hugging Face's folders; the file has them the other way round.
    pub shape: Vec<usize>,
    pub kind: TensorType,
    /// From the start of the data.
    pub offset: u64,
    pub bytes: u64,
}

impl TensorInfo {
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|size| *size as u64).product()
    }
}

impl Gguf {
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let unreadable = |source| GgufError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        let header = Header::read(BufReader::new(file), bytes, path)?;
        Ok(Self { path: path.to_owned(), bytes, header })
    }

    /// Some numbers of a tensor. The range starts at a block and ends at one.
    pub fn numbers(&self, tensor: &TensorInfo, range: Range<u64>) -> Result<Vec<f32>, GgufError> {
        let unreadable = |source| GgufError::Unreadable { path: self.path.clone(), source };
        let kind = tensor.kind;
        let Some(candle) = kind.candle() else {
            let name = tensor.name.clone();
            return Err(GgufError::UnreadableType { path: self.path.clone(), name, kind: kind.name });
        };
        let at = |elements| kind.bytes(elements).expect("the range is of whole blocks");
        let mut bytes = vec![0; at(range.end - range.start) as usize];
        let mut file = File::open(&self.path).map_err(unreadable)?;
        file.seek(SeekFrom::Start(self.header.data_start + tensor.offset + at(range.start))).map_err(unreadable)?;
        file.read_exact(&mut bytes).map_err(unreadable)?;
        let elements = (range.end - range.start) as usize;
        let decoded = qtensor_from_ggml(candle, &bytes, vec![elements], &Device::Cpu)
            .and_then(|tensor| tensor.dequantize(&Device::Cpu)?.to_vec1());
        decoded.map_err(|source| GgufError::Decode { name: tensor.name.clone(), source })
    }

    /// A whole tensor in the type that it is stored in.
    pub(super) fn stored(&self, tensor: &TensorInfo, device: &Device) -> Result<QTensor, GgufError> {
        let unreadable = |source| GgufError::Unreadable { path: self.path.clone(), source };
        let Some(kind) = tensor.kind.candle() else {
            let (name, kind) = (tensor.name.clone(), tensor.kind.name);
            return Err(GgufError::UnreadableType { path: self.path.clone(), name, kind });
        };
        let mut bytes = vec![0; tensor.bytes as usize];
        let mut file = File::open(&self.path).map_err(unreadable)?;
        file.seek(SeekFrom::Start(self.header.data_start + tensor.offset)).map_err(unreadable)?;
        file.read_exact(&mut bytes).map_err(unreadable)?;
        qtensor_from_ggml(kind, &bytes, tensor.shape.clone(), device)
            .map_err(|source| GgufError::Decode { name: tensor.name.clone(), source })
    }

    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.header.tensors.iter().find(|tensor| tensor.name == name)
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.header.metadata.iter().find_map(|(known, value)| (known == key).then_some(value))
    }

    pub fn architecture(&self) -> Result<&str, GgufError> {
        let key = "general.architecture";
        self.value(key).and_then(Value::as_str).ok_or_else(|| self.missing(key))
    }

    /// A whole number that stands below the architecture's name.
    pub fn number(&self, key: &str) -> Result<u64, GgufError> {
        let key = format!("{}.{key}", self.architecture()?);
        self.value(&key).and_then(Value::as_u64).ok_or_else(|| self.missing(&key))
    }

    pub fn float(&self, key: &str) -> Result<f64, GgufError> {
        let key = format!("{}.{key}", self.architecture()?);
        self.value(&key).and_then(Value::as_f64).ok_or_else(|| self.missing(&key))
    }

    /// Something the tokenizer needs.
    pub fn of_tokenizer(&self, key: &str) -> Option<&Value> {
        self.value(&format!("tokenizer.ggml.{key}"))
    }

    /// A list of texts of the tokenizer; what is no text is an empty one.
    pub fn texts(&self, key: &str) -> Option<Vec<&str>> {
        let values = self.of_tokenizer(key)?.as_array()?;
        Some(values.iter().map(|value| value.as_str().unwrap_or_default()).collect())
    }

    fn missing(&self, key: &str) -> GgufError {
        GgufError::MissingKey { path: self.path.clone(), key: key.to_owned() }
    }
}

impl Header {
    /// Reads from the start of a file that is so many bytes long; the path is for errors.
    pub fn read(from: impl Read, file_bytes: u64, path: &Path) -> Result<Self, GgufError> {
        let mut source = Source { from, path, position: 0, file_bytes, values_left: MOST_VALUES };
        if source.take::<4>()? != MAGIC {
            return Err(source.malformed("it does not begin with GGUF".into()));
        }
        let version = source.u32()?;
        if !(2..=VERSION).contains(&version) {
            return Err(source.malformed(format!("its version is {version}; 2 and 3 can be read")));
        }
        let (tensor_count, value_count) = (source.u64()?, source.u64()?);
        let mut metadata: Vec<(String, Value)> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for _ in 0..value_count {
            source.count(1)?;
            let key = source.text()?;
            if !known.insert(key.clone()) {
                return Err(source.malformed(format!("the key {key:?} stands in it twice")));
            }
            let kind = source.u32()?;
            metadata.push((key, source.value(kind, Nesting::Outside)?));
        }
        known.clear();
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            source.count(1)?;
            let tensor = source.tensor()?;
            if !known.insert(tensor.name.clone()) {
                return Err(source.malformed(format!("the tensor {:?} stands in it twice", tensor.name)));
            }
            tensors.push(tensor);
        }
        let alignment = metadata.iter().find(|(key, _)| key == "general.alignment");
        let alignment = alignment.map_or(Some(ALIGNMENT), |(_, value)| value.as_u64());
        let Some(alignment) = alignment.filter(|bytes| bytes.is_power_of_two() && u32::try_from(*bytes).is_ok()) else {
            return Err(source.malformed("its alignment is no power of two".into()));
        };
        let data_start = source.position.next_multiple_of(alignment);
        let header = Self { version, alignment, metadata, tensors, data_start };
        let expected =
            header.expected_bytes().ok_or_else(|| source.malformed("a tensor lies beyond all files".into()))?;
        if expected > file_bytes {
            return Err(GgufError::CutShort { path: path.to_owned(), found: file_bytes, expected });
        }
        Ok(header)
    }

    /// Where the last tensor ends.
    pub fn expected_bytes(&self) -> Option<u64> {
        let mut ends =
            self.tensors.iter().map(|tensor| self.data_start.checked_add(tensor.offset)?.checked_add(tensor.bytes));
        ends.try_fold(self.data_start, |last, end| Some(last.max(end?)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Outside,
    InArray,
}

/// What is read from, and how much of it there is.
struct Source<'a, R> {
    from: R,
    path: &'a Path,
    position: u64,
    file_bytes: u64,
    values_left: u64,
}

impl<R: Read> Source<'_, R> {
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, GgufError> {
        self.reserve(length)?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        self.reserve(N as u64)?;
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Fails unless there are so many bytes left.
    fn reserve(&self, length: u64) -> Result<(), GgufError> {
        let expected = self.position.saturating_add(length);
        if expected <= self.file_bytes {
            return Ok(());
        }
        Err(GgufError::CutShort { path: self.path.to_owned(), found: self.file_bytes, expected })
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        let read = self.from.read_exact(bytes);
        read.map_err(|source| GgufError::Unreadable { path: self.path.to_owned(), source })?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        self.take().map(u64::from_le_bytes)
    }

    /// Takes so many values off what a header may hold.
    fn count(&mut self, values: u64) -> Result<(), GgufError> {
        let too_many = || self.malformed(format!("its header holds more than {MOST_VALUES} values"));
        self.values_left = self.values_left.checked_sub(values).ok_or_else(too_many)?;
        Ok(())
    }

    /// Vocabularies in the wild hold pieces of characters; they are replaced.
    fn text(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        let bytes = self.bytes(length)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn value(&mut self, kind: u32, nesting: Nesting) -> Result<Value, GgufError> {
        Ok(match kind {
            kind::U8 => Value::U8(u8::from_le_bytes(self.take()?)),
            kind::I8 => Value::I8(i8::from_le_bytes(self.take()?)),
            kind::U16 => Value::U16(u16::from_le_bytes(self.take()?)),
            kind::I16 => Value::I16(i16::from_le_bytes(self.take()?)),
            kind::U32 => Value::U32(self.u32()?),
            kind::I32 => Value::I32(i32::from_le_bytes(self.take()?)),
            kind::U64 => Value::U64(self.u64()?),
            kind::I64 => Value::I64(i64::from_le_bytes(self.take()?)),
            kind::F32 => Value::F32(f32::from_le_bytes(self.take()?)),
            kind::F64 => Value::F64(f64::from_le_bytes(self.take()?)),
            kind::BOOL => Value::Bool(self.take::<1>()? != [0]),
            kind::STRING => Value::String(self.text()?),
            kind::ARRAY if nesting == Nesting::Outside => {
                let (kind, length) = (self.u32()?, self.u64()?);
                self.count(length)?;
                // No value is shorter than a byte.
                self.reserve(length)?;
                let values = (0..length).map(|_| self.value(kind, Nesting::InArray));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            kind::ARRAY => return Err(self.malformed("it holds an array of arrays".into())),
            unknown => return Err(self.malformed(format!("a value is of the unknown kind {unknown}"))),
        })
    }

    fn tensor(&mut self) -> Result<TensorInfo, GgufError> {
        let name = self.text()?;
        let dimensions = self.u32()?;
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return Err(self.malformed(format!("the tensor {name:?} has {dimensions} dimensions")));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(self.u64()? as usize);
        }
        let id = self.u32()?;
        let offset = self.u64()?;
        let kind = TensorType::of_id(id)
            .ok_or_else(|| self.malformed(format!("the tensor {name:?} is of the unknown type {id}")))?;
        let elements = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size as u64));
        let has_whole_rows = shape[0].is_multiple_of(kind.block_elements);
        let bytes = elements.filter(|count| *count > 0 && has_whole_rows).and_then(|count| kind.bytes(count));
        let bytes = bytes.ok_or_else(|| {
            self.malformed(format!("the tensor {name:?} of type {} cannot be of shape {shape:?}", kind.name))
        })?;
        shape.reverse();
        Ok(TensorInfo { name, shape, kind, offset, bytes })
    }

    fn malformed(&self, reason: String) -> GgufError {
        GgufError::Malformed { path: self.path.to_owned(), reason }
    }
}
