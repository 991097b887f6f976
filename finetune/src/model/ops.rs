//! The operations between the products, fast and with their derivatives.

use candle_core::{D, Result, Tensor};
use candle_nn::ops;
use candle_nn::rotary_emb::rope;

use super::attach::attach;

/// Root mean square normalisation over the last dimension (Zhang and Sennrich 2019), times `weight`.
pub(super) fn rms_norm(input: &Tensor, weight: &Tensor, epsilon: f64) -> Result<Tensor> {
    let result = ops::rms_norm(&input.detach().contiguous()?, weight, epsilon as f32)?;
    let weight = weight.clone();
    attach("rms-norm", input, result, move |input, _, gradient| {
        let width = input.dim(D::Minus1)? as f64;
        let inverse = ((input.sqr()?.sum_keepdim(D::Minus1)? / width)? + epsilon)?.sqrt()?.recip()?;
        let normal = input.broadcast_mul(&inverse)?;
        let weighted = gradient.broadcast_mul(&weight)?;
        let along = ((&weighted * &normal)?.sum_keepdim(D::Minus1)? / width)?;
        (weighted - normal.broadcast_mul(&along)?)?.broadcast_mul(&inverse)
    })
}

/// Softmax over the last dimension.
pub(super) fn softmax(input: &Tensor) -> Result<Tensor> {
    let result = ops::softmax_last_dim(&input.detach().contiguous()?)?;
    attach("softmax", input, result, |_, result, gradient| {
        let product = (gradient * result)?;
        let sum = product.sum_keepdim(D::Minus1)?;
        product - result.broadcast_mul(&sum)?
    })
}

/// `silu(gate) * up`, as the layers of Llama and Qwen have it.
pub(super) fn gated(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    gate.silu()? * up
}

/// Cosines and sines for rotating by position: (tokens, head width / 2) each.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    pub(super) cos: Tensor,
    pub(super) sin: Tensor,
}

impl Rotation {
    /// Su et al. 2021, in the halves of NEOX.
    pub(super) fn of(positions: &[u32], width: usize, theta: f64, device: &candle_core::Device) -> Result<Self> {
        let half = width / 2;
        // Frequencies and angles in f32, as transformers computes them.
        let frequencies: Vec<f32> =
            (0..half).map(|at| (1.0 / theta.powf(2.0 * at as f64 / width as f64)) as f32).collect();
        let angles =
            positions.iter().flat_map(|position| frequencies.iter().map(move |frequency| *position as f32 * frequency));
        let angles = Tensor::from_iter(angles, device)?.reshape((positions.len(), half))?;
        Ok(Self { cos: angles.cos()?, sin: angles.sin()? })
    }
}

/// Rotates (heads, tokens, width) by the tokens' positions.
pub(super) fn rotate(input: &Tensor, rotation: &Rotation) -> Result<Tensor> {
    let turn =
        |tensor: &Tensor, sin: &Tensor| rope(&tensor.contiguous()?.unsqueeze(0)?, &rotation.cos, sin)?.squeeze(0);
    let result = turn(&input.detach(), &rotation.sin)?;
    let (cos, back) = (rotation.cos.clone(), rotation.sin.neg()?);
    attach("rotate", input, result, move |_, _, gradient| {
        rope(&gradient.contiguous()?.unsqueeze(0)?, &cos, &back)?.squeeze(0)
    })
}
