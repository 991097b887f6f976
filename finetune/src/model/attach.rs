//! Hooks a result that was computed outside the graph into it, with a derivative written by hand.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

/// Makes `result`, computed from `input.detach()`, a node of the graph. `derivative` gets the input, the result and the gradient of the
/// loss by the result, and gives the gradient by the input. The result must be contiguous and begin where its storage begins.
pub(super) fn attach<F>(name: &'static str, input: &Tensor, result: Tensor, derivative: F) -> Result<Tensor>
where
    F: Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
{
    if !input.track_op() {
        return Ok(result);
    }
    input.apply_op2(&result, Attached { name, derivative })
}

struct Attached<F> {
    name: &'static str,
    derivative: F,
}

impl<F> CustomOp2 for Attached<F>
where
    F: Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor> + Send + Sync,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, result: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((result.clone(), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        _: &candle_core::CudaStorage,
        _: &Layout,
        result: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        use candle_core::backend::BackendStorage as _;
        Ok((result.try_clone(layout)?, layout.shape().clone()))
    }

    #[cfg(feature = "metal")]
    fn metal_fwd(
        &self,
        _: &candle_core::MetalStorage,
        _: &Layout,
        result: &candle_core::MetalStorage,
        layout: &Layout,
    ) -> Result<(candle_core::MetalStorage, Shape)> {
        use candle_core::backend::BackendStorage as _;
        Ok((result.try_clone(layout)?, layout.shape().clone()))
    }

    fn bwd(
        &self,
        input: &Tensor,
        _: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((Some((self.derivative)(input, result, gradient)?), None))
    }
}
