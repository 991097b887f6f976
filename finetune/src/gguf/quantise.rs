//! Which type each tensor of a file gets, and its numbers in that type.

use std::fmt;

use candle_core::quantized::{QStorage, QTensor};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{GgufError, TensorType, names};

/// As people name what they download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
pub enum Quantisation {
    #[value(name = "f32")]
    #[serde(rename = "f32")]
    F32,
    #[value(name = "f16")]
    #[serde(rename = "f16")]
    F16,
    #[value(name = "bf16")]
    #[serde(rename = "bf16")]
    Bf16,
    /// What a small model's tool calls still survive; half of what f16 takes.
    #[default]
    #[value(name = "q8_0")]
    #[serde(rename = "q8_0")]
    Q8_0,
    #[value(name = "q6_k")]
    #[serde(rename = "q6_k")]
    Q6K,
    #[value(name = "q5_k_m")]
    #[serde(rename = "q5_k_m")]
    Q5K,
    #[value(name = "q4_k_m")]
    #[serde(rename = "q4_k_m")]
    Q4K,
}

impl Quantisation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q6K => "q6_k",
            Self::Q5K => "q5_k_m",
            Self::Q4K => "q4_k_m",
        }
    }

    /// `general.file_type`: llama.cpp's `llama_ftype`.
    pub const fn file_type(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Bf16 => 32,
            Self::Q8_0 => 7,
            Self::Q6K => 18,
            Self::Q5K => 17,
            Self::Q4K => 15,
        }
    }

    /// The type of a tensor, by its name in the file.
    ///
    /// What has one dimension stays as it is. Of the mixed kinds, the embedding, the head and every other value and down projection get
    /// more bits, as llama.cpp's `llama_tensor_get_type` does it. A row that its blocks do not divide gets a type whose blocks do.
    pub fn of(self, name: &str, shape: &[usize], layers: usize) -> TensorType {
        let &[_, row] = shape else { return TensorType::F32 };
        let wanted = match self {
            Self::F32 => TensorType::F32,
            Self::F16 => TensorType::F16,
            Self::Bf16 => TensorType::BF16,
            Self::Q8_0 => TensorType::Q8_0,
            Self::Q6K => TensorType::Q6_K,
            Self::Q5K | Self::Q4K if gets_more_bits(name, layers) => TensorType::Q6_K,
            Self::Q5K => TensorType::Q5_K,
            Self::Q4K => TensorType::Q4_K,
        };
        let fitting = [wanted, TensorType::Q8_0].into_iter().find(|kind| row.is_multiple_of(kind.block_elements));
        fitting.unwrap_or(TensorType::F16)
    }
}

impl fmt::Display for Quantisation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

fn gets_more_bits(name: &str, layers: usize) -> bool {
    if name == "token_embd.weight" || name == "output.weight" {
        return true;
    }
    let is_mixed = name.ends_with(".attn_v.weight") || name.ends_with(".ffn_down.weight");
    // llama.cpp's `use_more_bits`: the first and the last eighth of the layers, and every third between.
    let eighth = layers / 8;
    let in_layer = |layer: usize| layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
    is_mixed && names::layer(name).is_some_and(in_layer)
}

/// The bytes that numbers become. They fill whole blocks.
pub(super) fn encode(name: &str, numbers: &[f32], kind: TensorType) -> Result<Vec<u8>, GgufError> {
    let limit = if kind == TensorType::F16 { f32::from(half::f16::MAX) } else { f32::MAX };
    if let Some(value) = numbers.iter().find(|number| !number.is_finite() || number.abs() > limit) {
        return Err(GgufError::Unrepresentable { name: name.to_owned(), value: *value, kind: kind.name });
    }
    if kind == TensorType::F32 {
        return Ok(numbers.iter().flat_map(|number| number.to_le_bytes()).collect());
    }
    let candle = kind.candle().expect("what is written is of candle's types");
    let mut blocks = candle.cpu_zeros(numbers.len());
    blocks.from_float(numbers);
    let encoded = QTensor::new(QStorage::Cpu(blocks), numbers.len());
    let bytes = encoded.and_then(|tensor| tensor.data().map(std::borrow::Cow::into_owned));
    bytes.map_err(|source| GgufError::Quantise { name: name.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_named_alike_everywhere() {
        for quantisation in Quantisation::value_variants() {
            let json = serde_json::to_value(quantisation).unwrap();
            let value = quantisation.to_possible_value().unwrap();
            assert_eq!((json.as_str(), value.get_name()), (Some(quantisation.as_str()), quantisation.as_str()));
        }
    }

    #[test]
    fn gives_a_type_whose_blocks_divide_the_row() {
        let of = |quantisation: Quantisation, row| quantisation.of("blk.1.attn_q.weight", &[4, row], 28);
        assert_eq!(of(Quantisation::Q4K, 1024), TensorType::Q4_K);
        assert_eq!(of(Quantisation::Q4K, 896), TensorType::Q8_0);
        assert_eq!(of(Quantisation::Q8_0, 80), TensorType::F16);
        assert_eq!(of(Quantisation::Bf16, 7), TensorType::BF16);
        assert_eq!(Quantisation::Q4K.of("blk.1.attn_norm.weight", &[1024], 28), TensorType::F32);
    }

    #[test]
    fn mixes_types_as_llama_cpp_does() {
        let more = |name: &str| Quantisation::Q4K.of(name, &[4, 1024], 28) == TensorType::Q6_K;
        assert!(more("token_embd.weight") && more("output.weight"));
        let layers: Vec<_> = (0..28).filter(|layer| more(&format!("blk.{layer}.ffn_down.weight"))).collect();
        assert_eq!(layers, [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 24, 25, 26, 27]);
        assert!(!more("blk.0.ffn_up.weight"));
    }

    #[test]
    fn refuses_numbers_that_the_type_does_not_have() {
        let error = encode("a", &[0.0, 1e6], TensorType::F16).unwrap_err().to_string();
        assert!(error.contains("1000000") && error.contains("F16"), "{error}");
        assert!(encode("a", &[f32::NAN; 32], TensorType::Q8_0).is_err());
        assert_eq!(encode("a", &[1.5, -2.0], TensorType::BF16).unwrap(), [0xc0, 0x3f, 0x00, 0xc0]);
    }

    #[test]
    fn keeps_numbers_as_well_as_the_type_can() {
        use candle_core::Device;
        use candle_core::quantized::ggml_file::qtensor_from_ggml;

        let numbers: Vec<f32> =
            (0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect();
        for (kind, within) in [
            (TensorType::F32, 0.0),
            (TensorType::F16, 0.001),
            (TensorType::BF16, 0.01),
            (TensorType::Q8_0, 0.01),
            (TensorType::Q6_K, 0.03),
            (TensorType::Q5_K, 0.05),
            (TensorType::Q4_K, 0.1),
        ] {
            let bytes = encode("a", &numbers, kind).unwrap();
            assert_eq!(Some(bytes.len() as u64), kind.bytes(4096));
            let tensor = qtensor_from_ggml(kind.candle().unwrap(), &bytes, vec![4096], &Device::Cpu).unwrap();
            let decoded = tensor.dequantize(&Device::Cpu).unwrap().to_vec1::<f32>().unwrap();
            let square = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|number| number * number).sum::<f32>();
            let differences = square(&mut numbers.iter().zip(&decoded).map(|(one, other)| one - other));
            let relative = (differences / square(&mut numbers.iter().copied())).sqrt();
            assert!(relative <= within, "{}: {relative}", kind.name);
        }
    }
}
