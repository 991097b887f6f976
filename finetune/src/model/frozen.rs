//! A weight that is not trained: as it was stored, or quantised.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Module as _, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::attach::attach;

/// How frozen weights lie in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Storage {
    /// In the precision of the base's files; made f32 when they are used.
    #[default]
    AsStored,
    /// Made f32 once: twice the memory of bf16, and no conversion in each step.
    F32,
    /// Quantised to eight bits (QLoRA): a quarter of f32. The adapters learn to make up for what is lost.
    Q8_0,
}

#[derive(Debug, Clone)]
pub(crate) enum Frozen {
    Dense(Tensor),
    Quantised { weight: Arc<QTensor>, product: QMatMul },
}

/// From so many rows on, making a quantised weight f32 and multiplying by that is faster than multiplying by it as it is.
const ROWS_WORTH_DEQUANTISING: usize = 8;

impl Frozen {
    pub(super) fn new(weight: Tensor, storage: Storage) -> Result<Self> {
        match storage {
            Storage::AsStored => Ok(Self::Dense(weight)),
            Storage::F32 => Ok(Self::Dense(weight.to_dtype(DType::F32)?)),
            // A row that is no whole number of blocks cannot be quantised.
            Storage::Q8_0 if !weight.dim(1)?.is_multiple_of(GgmlDType::Q8_0.block_size()) => Ok(Self::Dense(weight)),
            Storage::Q8_0 => Self::quantised(QTensor::quantize(&weight.to_dtype(DType::F32)?, GgmlDType::Q8_0)?),
        }
    }

    pub(crate) fn quantised(weight: QTensor) -> Result<Self> {
        if matches!(weight.dtype(), GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16) {
            return Ok(Self::Dense(weight.dequantize(&weight.device())?));
        }
        let weight = Arc::new(weight);
        Ok(Self::Quantised { product: QMatMul::from_arc(Arc::clone(&weight))?, weight })
    }

    /// The rows of an embedding.
    pub(super) fn rows(&self, ids: &Tensor) -> Result<Tensor> {
        match self {
            Self::Dense(weight) => weight.index_select(ids, 0)?.to_dtype(DType::F32),
            Self::Quantised { weight, .. } => weight.dequantize(&weight.device())?.index_select(ids, 0),
        }
    }

    pub(super) fn row_count(&self) -> Result<usize> {
        match self {
            Self::Dense(weight) => weight.dim(0),
            Self::Quantised { weight, .. } => Ok(weight.shape().dims()[0]),
        }
    }

    /// `input` (rows, columns of the weight) times the transposed weight, outside the graph.
    pub(super) fn product(&self, input: &Tensor) -> Result<Tensor> {
        match self {
            Self::Quantised { product, .. } if input.dim(0)? < ROWS_WORTH_DEQUANTISING => product.forward(input),
            _ => multiply(input, &self.dense()?.t()?),
        }
    }

    /// The same inside the graph: the gradient by the input is the gradient by the result times the weight. The weight gets none, and
    /// none is computed. `known` is the result, where it was computed before.
    pub(super) fn attached(&self, input: &Tensor, known: Option<Tensor>) -> Result<Tensor> {
        let result = match known {
            Some(known) => known,
            None => self.product(&input.detach())?,
        };
        let weight = self.clone();
        attach("frozen", input, result, move |_, _, gradient| multiply(&gradient.contiguous()?, &weight.dense()?))
    }

    /// Some of its rows, as they are used.
    pub(super) fn dense_rows(&self, from: usize, count: usize) -> Result<Tensor> {
        match self {
            Self::Dense(weight) => usable(&weight.narrow(0, from, count)?),
            Self::Quantised { .. } => self.dense()?.narrow(0, from, count),
        }
    }

    fn dense(&self) -> Result<Tensor> {
        match self {
            Self::Dense(weight) => usable(weight),
            Self::Quantised { weight, .. } => weight.dequantize(&weight.device()),
        }
    }
}

/// On a CPU products are in f32. An accelerator multiplies in the precision of the weight.
fn usable(weight: &Tensor) -> Result<Tensor> {
    if weight.device().is_cpu() { weight.to_dtype(DType::F32) } else { Ok(weight.clone()) }
}

pub(super) fn multiply(input: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if input.dtype() == weight.dtype() {
        return input.matmul(weight);
    }
    input.to_dtype(weight.dtype())?.matmul(weight)?.to_dtype(input.dtype())
}
