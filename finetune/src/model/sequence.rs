//! Several samples laid end to end as one sequence, so that no step is paid for padding. None sees another: positions begin anew, and
//! attention stops at the border.

use candle_core::{Device, Result, Tensor};

/// Token ids, positions and borders of one or more samples, and which tokens are learnt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequence {
    ids: Vec<u32>,
    positions: Vec<u32>,
    /// Where each sample begins.
    starts: Vec<usize>,
    /// Of each token whether it carries loss. The first of a sample cannot: nothing predicts it.
    carries_loss: Vec<bool>,
}

impl Sequence {
    pub fn of(ids: &[u32], carries_loss: &[bool]) -> Self {
        let mut sequence = Self::default();
        sequence.append(ids, carries_loss);
        sequence
    }

    /// Text of which nothing is learnt.
    pub fn unlabelled(ids: &[u32]) -> Self {
        Self::of(ids, &vec![false; ids.len()])
    }

    pub fn append(&mut self, ids: &[u32], carries_loss: &[bool]) {
        assert_eq!(ids.len(), carries_loss.len(), "each token carries loss or does not");
        self.starts.push(self.ids.len());
        self.ids.extend_from_slice(ids);
        self.positions.extend(0..ids.len() as u32);
        self.carries_loss.extend(carries_loss.iter().enumerate().map(|(at, carries)| at > 0 && *carries));
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    pub(super) fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// How many tokens are learnt.
    pub fn learnt(&self) -> usize {
        self.carries_loss.iter().filter(|carries| **carries).count()
    }

    /// The positions whose next token is learnt, and those tokens.
    pub(super) fn targets(&self) -> (Vec<u32>, Vec<u32>) {
        let learnt = (1..self.len()).filter(|at| self.carries_loss[*at]);
        learnt.map(|at| (at as u32 - 1, self.ids[at])).unzip()
    }

    /// What is added to attention scores (tokens, tokens): nothing where a token sees itself and what came before it in its sample,
    /// minus infinity elsewhere.
    pub(super) fn mask(&self, device: &Device) -> Result<Tensor> {
        let length = self.len();
        let mut mask = vec![f32::NEG_INFINITY; length * length];
        let ends = self.starts.iter().skip(1).copied().chain([length]);
        for (start, end) in self.starts.iter().copied().zip(ends) {
            for row in start..end {
                mask[row * length + start..=row * length + row].fill(0.0);
            }
        }
        Tensor::from_vec(mask, (length, length), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lays_samples_end_to_end_without_one_seeing_another() {
        let mut sequence = Sequence::of(&[7, 8], &[true, true]);
        sequence.append(&[9, 10, 11], &[false, false, true]);
        assert_eq!(sequence.positions(), [0, 1, 0, 1, 2]);
        assert_eq!(sequence.targets(), (vec![0, 3], vec![8, 11]), "nothing predicts the first token of a sample");
        let mask = sequence.mask(&Device::Cpu).unwrap().to_vec2::<f32>().unwrap();
        let seen: Vec<Vec<_>> =
            mask.iter().map(|row| row.iter().map(|score| u8::from(*score == 0.0)).collect()).collect();
        assert_eq!(seen, [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]);
    }
}
