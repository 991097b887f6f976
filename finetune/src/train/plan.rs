//! Which samples make which step: drawn anew for each epoch from the seed, and the same every time.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

use super::examples::Example;
use super::settings::TrainSettings;
use crate::model::Sequence;

/// The steps of a run. A step is a list of sequences, and a sequence a list of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<Vec<Vec<usize>>>,
    /// The samples that are longer than a sequence may be, or of which nothing is learnt.
    pub left_out: usize,
}

impl Plan {
    pub fn new(examples: &[Example], settings: &TrainSettings) -> Self {
        let is_usable = |example: &Example| {
            example.ids.len() <= settings.sequence_tokens && example.carries_loss.iter().skip(1).any(|carries| *carries)
        };
        let usable: Vec<_> = (0..examples.len()).filter(|index| is_usable(&examples[*index])).collect();
        let left_out = examples.len() - usable.len();
        let mut steps = Vec::new();
        for epoch in 0..settings.epochs {
            let mut order = usable.clone();
            order.shuffle(&mut StdRng::seed_from_u64(settings.seed.wrapping_add(epoch as u64)));
            let packed = pack(&order, examples, settings.sequence_tokens);
            steps.extend(packed.chunks(settings.sequences_per_step).map(<[_]>::to_vec));
            if settings.max_steps.is_some_and(|most| steps.len() >= most) {
                break;
            }
        }
        steps.truncate(settings.max_steps.unwrap_or(usize::MAX));
        Self { steps, left_out }
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn step(&self, number: usize) -> &[Vec<usize>] {
        &self.steps[number]
    }

    /// How many tokens all steps read.
    pub fn tokens(&self, examples: &[Example]) -> usize {
        self.steps.iter().flatten().flatten().map(|index| examples[*index].ids.len()).sum()
    }
}

/// Lays samples end to end in their order; none is cut.
pub(super) fn pack(order: &[usize], examples: &[Example], most: usize) -> Vec<Vec<usize>> {
    let mut packed: Vec<Vec<usize>> = Vec::new();
    let mut length = most;
    for index in order {
        let tokens = examples[*index].ids.len();
        if let Some(last) = packed.last_mut().filter(|_| length + tokens <= most) {
            last.push(*index);
            length += tokens;
        } else {
            packed.push(vec![*index]);
            length = tokens;
        }
    }
    packed
}

pub(super) fn sequence(indices: &[usize], examples: &[Example]) -> Sequence {
    let mut sequence = Sequence::default();
    for index in indices {
        sequence.append(&examples[*index].ids, &examples[*index].carries_loss);
    }
    sequence
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn examples(lengths: &[usize]) -> Vec<Example> {
        let example = |(row, length): (usize, &usize)| Example {
            row: row.to_string(),
            ids: vec![1; *length],
            carries_loss: vec![true; *length],
        };
        lengths.iter().enumerate().map(example).collect()
    }

    proptest! {
        #[test]
        fn reads_every_sample_once_an_epoch_and_pays_for_no_padding(
            lengths in prop::collection::vec(1_usize..60, 1..40),
            sequences_per_step in 1_usize..5,
            epochs in 1_usize..4,
        ) {
            let examples = examples(&lengths);
            let settings = TrainSettings { sequence_tokens: 50, sequences_per_step, epochs, ..TrainSettings::default() };
            let plan = Plan::new(&examples, &settings);
            let usable = lengths.iter().filter(|length| (2..=50).contains(*length)).count();
            prop_assert_eq!(plan.left_out, lengths.len() - usable);
            let mut read = BTreeMap::new();
            for sequence in plan.steps.iter().flatten() {
                let tokens: usize = sequence.iter().map(|index| lengths[*index]).sum();
                prop_assert!(tokens <= 50);
                for index in sequence {
                    *read.entry(*index).or_insert(0) += 1;
                }
            }
            prop_assert_eq!(read.len(), usable);
            prop_assert!(read.values().all(|times| *times == epochs));
            prop_assert_eq!(plan, Plan::new(&examples, &settings));
        }
    }

    #[test]
    fn ends_where_it_is_told_to() {
        let settings = TrainSettings {
            max_steps: Some(3),
            sequence_tokens: 10,
            sequences_per_step: 1,
            ..TrainSettings::default()
        };
        assert_eq!(Plan::new(&examples(&[10; 8]), &settings).len(), 3);
    }
}
