//! A linear map: a frozen weight, perhaps a bias, perhaps an adapter.

use candle_core::{DType, Device, Result, Tensor, Var};
use rand::Rng as _;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::frozen::Frozen;
use super::memo::Memo;

/// Rank and weight of adapters (Hu et al. 2021).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AdapterShape {
    pub rank: usize,
    pub alpha: f64,
}

impl AdapterShape {
    pub fn scale(self) -> f64 {
        self.alpha / self.rank as f64
    }
}

/// `scale * b a`, added to a frozen weight: `a` is (rank, columns), `b` is (rows, rank), both f32.
#[derive(Debug, Clone)]
pub struct Adapter {
    pub a: Var,
    pub b: Var,
    pub scale: f64,
}

impl Adapter {
    /// `a` as PEFT draws it (uniform within one over the root of the columns, which is Kaiming's with a = √5), `b` zero: at first it
    /// adds nothing.
    pub(super) fn drawn(
        rows: usize,
        columns: usize,
        shape: AdapterShape,
        random: &mut StdRng,
        device: &Device,
    ) -> Result<Self> {
        let bound = 1.0 / (columns as f32).sqrt();
        let a: Vec<f32> = (0..shape.rank * columns).map(|_| random.random_range(-bound..bound)).collect();
        Ok(Self {
            a: Var::from_vec(a, (shape.rank, columns), device)?,
            b: Var::zeros((rows, shape.rank), DType::F32, device)?,
            scale: shape.scale(),
        })
    }

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let inner = input.matmul(&self.a.as_tensor().t()?)?;
        // The scale goes where the fewest numbers are.
        (inner * self.scale)?.matmul(&self.b.as_tensor().t()?)
    }

    /// Without a graph, where no gradient is wanted.
    fn forward_detached(&self, input: &Tensor) -> Result<Tensor> {
        let inner = input.matmul(&self.a.as_detached_tensor().t()?)?;
        (inner * self.scale)?.matmul(&self.b.as_detached_tensor().t()?)
    }
}

#[derive(Debug)]
pub(super) struct LinearMap {
    pub(super) weight: Frozen,
    pub(super) bias: Option<Tensor>,
    pub(super) adapter: Option<Adapter>,
}

impl LinearMap {
    /// `input` is (tokens, columns); the result (tokens, rows).
    pub(super) fn forward(&self, input: &Tensor, memo: &Memo<'_>) -> Result<Tensor> {
        let mut result = memo.product(&self.weight, input)?;
        if let Some(bias) = &self.bias {
            result = result.broadcast_add(bias)?;
        }
        match &self.adapter {
            None => Ok(result),
            Some(adapter) if memo.wants_graph() => result + adapter.forward(input)?,
            Some(adapter) => result + adapter.forward_detached(input)?,
        }
    }
}
