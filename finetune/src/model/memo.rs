//! What a layer's first pass keeps for its second one.
//!
//! Backwards, each layer is computed once more from its input (gradient checkpointing, Chen et al. 2016). Nearly all of that work would
//! be the products with the frozen weights, whose results are a small part of what a graph keeps: so those are kept, and the second
//! pass multiplies nothing.

use std::cell::RefCell;
use std::collections::VecDeque;

use candle_core::{Result, Tensor};

use super::frozen::Frozen;

/// The products of one layer, in the order in which they are computed.
pub(super) type Products = RefCell<VecDeque<Tensor>>;

#[derive(Debug, Clone, Copy)]
pub(super) enum Memo<'a> {
    /// No gradient is wanted.
    Off,
    /// The first pass: no graph; the products are kept here.
    Keep(&'a Products),
    /// The second pass, with a graph: the products are taken from here, and computed where there are none.
    Use(&'a Products),
}

impl Memo<'_> {
    pub(super) const fn wants_graph(self) -> bool {
        matches!(self, Self::Use(_))
    }

    pub(super) fn product(self, weight: &Frozen, input: &Tensor) -> Result<Tensor> {
        match self {
            Self::Off => weight.product(input),
            Self::Keep(products) => {
                let result = weight.product(input)?;
                products.borrow_mut().push_back(result.clone());
                Ok(result)
            }
            Self::Use(products) => {
                let known = products.borrow_mut().pop_front();
                weight.attached(input, known)
            }
        }
    }
}
