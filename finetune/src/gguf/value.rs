//! A value of a GGUF's metadata, and how it is written. The format is described at
//! <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    /// All of one kind, and none of them an array.
    Array(Vec<Value>),
}

/// How the format numbers what a value can be.
pub(super) mod kind {
    pub(in crate::gguf) const U8: u32 = 0;
    pub(in crate::gguf) const I8: u32 = 1;
    pub(in crate::gguf) const U16: u32 = 2;
    pub(in crate::gguf) const I16: u32 = 3;
    pub(in crate::gguf) const U32: u32 = 4;
    pub(in crate::gguf) const I32: u32 = 5;
    pub(in crate::gguf) const F32: u32 = 6;
    pub(in crate::gguf) const BOOL: u32 = 7;
    pub(in crate::gguf) const STRING: u32 = 8;
    pub(in crate::gguf) const ARRAY: u32 = 9;
    pub(in crate::gguf) const U64: u32 = 10;
    pub(in crate::gguf) const I64: u32 = 11;
    pub(in crate::gguf) const F64: u32 = 12;
}

impl Value {
    pub fn strings<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::Array(texts.into_iter().map(|text| Self::String(text.into())).collect())
    }

    /// As GGUF's own tools name it.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "UINT8",
            Self::I8(_) => "INT8",
            Self::U16(_) => "UINT16",
            Self::I16(_) => "INT16",
            Self::U32(_) => "UINT32",
            Self::I32(_) => "INT32",
            Self::U64(_) => "UINT64",
            Self::I64(_) => "INT64",
            Self::F32(_) => "FLOAT32",
            Self::F64(_) => "FLOAT64",
            Self::Bool(_) => "BOOL",
            Self::String(_) => "STRING",
            Self::Array(_) => "ARRAY",
        }
    }

    /// A whole number that is not negative, of any width: converters differ in which they choose.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(number) => Some(number.into()),
            Self::U16(number) => Some(number.into()),
            Self::U32(number) => Some(number.into()),
            Self::U64(number) => Some(number),
            Self::I8(number) => number.try_into().ok(),
            Self::I16(number) => number.try_into().ok(),
            Self::I32(number) => number.try_into().ok(),
            Self::I64(number) => number.try_into().ok(),
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(number) => Some(number.into()),
            Self::F64(number) => Some(number),
            _ => None,
        }
    }

    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    pub(super) const fn kind(&self) -> u32 {
        match self {
            Self::U8(_) => kind::U8,
            Self::I8(_) => kind::I8,
            Self::U16(_) => kind::U16,
            Self::I16(_) => kind::I16,
            Self::U32(_) => kind::U32,
            Self::I32(_) => kind::I32,
            Self::U64(_) => kind::U64,
            Self::I64(_) => kind::I64,
            Self::F32(_) => kind::F32,
            Self::F64(_) => kind::F64,
            Self::Bool(_) => kind::BOOL,
            Self::String(_) => kind::STRING,
            Self::Array(_) => kind::ARRAY,
        }
    }

    /// Without its kind, which stands before it; an array's once, before its length.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::U8(number) => to.push(*number),
            Self::I8(number) => to.extend(number.to_le_bytes()),
            Self::U16(number) => to.extend(number.to_le_bytes()),
            Self::I16(number) => to.extend(number.to_le_bytes()),
            Self::U32(number) => to.extend(number.to_le_bytes()),
            Self::I32(number) => to.extend(number.to_le_bytes()),
            Self::U64(number) => to.extend(number.to_le_bytes()),
            Self::I64(number) => to.extend(number.to_le_bytes()),
            Self::F32(number) => to.extend(number.to_le_bytes()),
            Self::F64(number) => to.extend(number.to_le_bytes()),
            Self::Bool(truth) => to.push((*truth).into()),
            Self::String(text) => write_text(text, to),
            Self::Array(values) => {
                // An empty array has no kind of its own; readers look at the length first.
                to.extend(values.first().map_or(kind::STRING, Self::kind).to_le_bytes());
                to.extend((values.len() as u64).to_le_bytes());
                for value in values {
                    value.write(to);
                }
            }
        }
    }
}

pub(super) fn write_text(text: &str, to: &mut Vec<u8>) {
    to.extend((text.len() as u64).to_le_bytes());
    to.extend(text.as_bytes());
}
