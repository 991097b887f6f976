//! AdamW (Loshchilov and Hutter 2019). candle's own keeps its state to itself, and a run that is to go on needs it.

use std::collections::HashMap;

use candle_core::{Result, Tensor, Var};

use crate::model::Gradients;

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

#[derive(Debug)]
pub(super) struct AdamW {
    weight_decay: f64,
    steps: usize,
    variables: Vec<Moments>,
}

#[derive(Debug)]
struct Moments {
    name: String,
    variable: Var,
    first: Var,
    second: Var,
}

impl AdamW {
    pub(super) fn new(trained: Vec<(String, Var)>, weight_decay: f64) -> Result<Self> {
        let moments = |(name, variable): (String, Var)| {
            let zero = || Var::zeros(variable.shape(), variable.dtype(), variable.device());
            Ok(Moments { name, first: zero()?, second: zero()?, variable })
        };
        Ok(Self { weight_decay, steps: 0, variables: trained.into_iter().map(moments).collect::<Result<_>>()? })
    }

    /// One step against gradients that are multiplied by `factor`. What has no gradient stays as it is.
    pub(super) fn step(&mut self, gradients: &Gradients, factor: f64, rate: f64) -> Result<()> {
        self.steps += 1;
        let steps = self.steps as i32;
        let (correct_first, correct_second) = (1.0 - BETA_1.powi(steps), 1.0 - BETA_2.powi(steps));
        for Moments { name, variable, first, second } in &self.variables {
            let Some(gradient) = gradients.get(name) else { continue };
            let gradient = (gradient * factor)?;
            first.set(&((first.as_detached_tensor() * BETA_1)? + (&gradient * (1.0 - BETA_1))?)?)?;
            second.set(&((second.as_detached_tensor() * BETA_2)? + (gradient.sqr()? * (1.0 - BETA_2))?)?)?;
            let mean = (first.as_detached_tensor() / correct_first)?;
            let spread = ((second.as_detached_tensor() / correct_second)?.sqrt()? + EPSILON)?;
            let decayed = (variable.as_detached_tensor() * (1.0 - rate * self.weight_decay))?;
            variable.set(&(decayed - ((mean / spread)? * rate)?)?)?;
        }
        Ok(())
    }

    /// Both moments, for keeping.
    pub(super) fn state(&self) -> Vec<(String, Var)> {
        let both = |moments: &Moments| {
            let Moments { name, first, second, .. } = moments;
            [(format!("{name}.first"), first.clone()), (format!("{name}.second"), second.clone())]
        };
        self.variables.iter().flat_map(both).collect()
    }

    /// Takes up what [`Self::state`] gave after `steps` steps.
    pub(super) fn restore(&mut self, steps: usize, state: &HashMap<String, Tensor>) -> Result<()> {
        self.steps = steps;
        for (name, variable) in self.state() {
            match state.get(&name) {
                Some(tensor) => variable.set(tensor)?,
                None => candle_core::bail!("the checkpoint lacks {name}"),
            }
        }
        Ok(())
    }
}
