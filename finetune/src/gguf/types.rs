//! How the numbers of a tensor are stored: in blocks of so many, of so many bytes each.

use candle_core::quantized::GgmlDType;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorType {
    /// As the format numbers it.
    pub id: u32,
    pub name: &'static str,
    pub block_elements: usize,
    pub block_bytes: usize,
}

const fn new(id: u32, name: &'static str, block_elements: usize, block_bytes: usize) -> TensorType {
    TensorType { id, name, block_elements, block_bytes }
}

impl TensorType {
    pub const F32: Self = new(0, "F32", 1, 4);
    pub const F16: Self = new(1, "F16", 1, 2);
    pub const BF16: Self = new(30, "BF16", 1, 2);
    pub const Q8_0: Self = new(8, "Q8_0", 32, 34);
    pub const Q4_K: Self = new(12, "Q4_K", 256, 144);
    pub const Q5_K: Self = new(13, "Q5_K", 256, 176);
    pub const Q6_K: Self = new(14, "Q6_K", 256, 210);

    /// `GGML_QUANT_SIZES` in gguf-py's constants.py; what was taken out of the format again is not in it.
    const ALL: [Self; 35] = [
        Self::F32,
        Self::F16,
        new(2, "Q4_0", 32, 18),
        new(3, "Q4_1", 32, 20),
        new(6, "Q5_0", 32, 22),
        new(7, "Q5_1", 32, 24),
        Self::Q8_0,
        new(9, "Q8_1", 32, 36),
        new(10, "Q2_K", 256, 84),
        new(11, "Q3_K", 256, 110),
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        new(15, "Q8_K", 256, 292),
        new(16, "IQ2_XXS", 256, 66),
        new(17, "IQ2_XS", 256, 74),
        new(18, "IQ3_XXS", 256, 98),
        new(19, "IQ1_S", 256, 50),
        new(20, "IQ4_NL", 32, 18),
        new(21, "IQ3_S", 256, 110),
        new(22, "IQ2_S", 256, 82),
        new(23, "IQ4_XS", 256, 136),
        new(24, "I8", 1, 1),
        new(25, "I16", 1, 2),
        new(26, "I32", 1, 4),
        new(27, "I64", 1, 8),
        new(28, "F64", 1, 8),
        new(29, "IQ1_M", 256, 56),
        Self::BF16,
        new(34, "TQ1_0", 256, 54),
        new(35, "TQ2_0", 256, 66),
        new(39, "MXFP4", 32, 17),
        new(40, "NVFP4", 64, 36),
        new(41, "Q1_0", 128, 18),
        new(42, "Q2_0", 64, 18),
    ];

    pub fn of_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.id == id)
    }

    /// How many bytes so many numbers take; nothing if they fill no whole blocks.
    pub const fn bytes(self, elements: u64) -> Option<u64> {
        if elements.is_multiple_of(self.block_elements as u64) {
            (elements / self.block_elements as u64).checked_mul(self.block_bytes as u64)
        } else {
            None
        }
    }

    /// candle's name for it, where candle can read it.
    pub fn candle(self) -> Option<GgmlDType> {
        Some(match self.name {
            "F32" => GgmlDType::F32,
            "F16" => GgmlDType::F16,
            "BF16" => GgmlDType::BF16,
            "Q4_0" => GgmlDType::Q4_0,
            "Q4_1" => GgmlDType::Q4_1,
            "Q5_0" => GgmlDType::Q5_0,
            "Q5_1" => GgmlDType::Q5_1,
            "Q8_0" => GgmlDType::Q8_0,
            "Q2_K" => GgmlDType::Q2K,
            "Q3_K" => GgmlDType::Q3K,
            "Q4_K" => GgmlDType::Q4K,
            "Q5_K" => GgmlDType::Q5K,
            "Q6_K" => GgmlDType::Q6K,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_bytes_as_candle_does() {
        for known in TensorType::ALL {
            assert_eq!(TensorType::of_id(known.id), Some(known), "the number is its own");
            if let Some(candle) = known.candle() {
                assert_eq!(
                    (known.block_elements, known.block_bytes),
                    (candle.block_size(), candle.type_size()),
                    "{known:?}"
                );
            }
        }
        assert_eq!(TensorType::Q8_0.bytes(64), Some(68));
        assert_eq!(TensorType::Q8_0.bytes(65), None);
        assert_eq!(TensorType::F32.bytes(u64::MAX), None);
    }
}
