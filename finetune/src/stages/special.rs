//! Whether the base ever learnt the marks that it is to write.
//!
//! In Qwen2.5-Coder-0.5B the rows of `<tool_call>`, `</tool_call>` and of the ids that are no token at all are alike (cosine above
//! 0.999): they were never trained. With frozen embeddings adapters cannot tell such rows apart, the loss stalls, and the model writes
//! some other mark in their place.

use std::collections::BTreeSet;

use candle_core::{DType, Device, Tensor};

use crate::base::{ModelConfig, ModelError, Weights};
use crate::dataset::render::Base;
use crate::train::Example;

/// Rows as like as this were never told apart. Rows of words that mean the same lie far below (0.9 at most, as measured on the base
/// above).
const ALIKE: f32 = 0.99;

/// A mark that is trained on, and another token that the base cannot tell from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Untrained {
    pub(super) token: String,
    pub(super) like: String,
}

/// The first mark in the trained text that is like another one, or like an id without a token.
pub(super) fn untrained(
    examples: &[Example],
    base: &Base,
    config: &ModelConfig,
    weights: &Weights,
) -> Result<Option<Untrained>, ModelError> {
    let added: BTreeSet<u32> = base.tokens.added().filter_map(|token| base.tokens.id(&token)).collect();
    let trained = examples.iter().flat_map(|example| example.ids.iter().zip(&example.carries_loss));
    let used: BTreeSet<u32> =
        trained.filter(|(id, carries)| **carries && added.contains(id)).map(|(id, _)| *id).collect();
    // A few ids without a token stand for all of them.
    let unused = (base.tokens.vocabulary() as u32..config.vocabulary as u32).take(16);
    let others: Vec<u32> =
        added.iter().copied().chain(unused).filter(|id| (*id as usize) < config.vocabulary).collect();
    let names =
        if config.tied { &["model.embed_tokens.weight"][..] } else { &["model.embed_tokens.weight", "lm_head.weight"] };
    for name in names {
        let rows = weights.tensor(name, &Device::Cpu)?;
        let found =
            alike(&rows, &used, &others).map_err(|source| ModelError::Tensor { name: (*name).to_owned(), source })?;
        if let Some((one, other)) = found {
            return Ok(Some(Untrained { token: text(base, one), like: text(base, other) }));
        }
    }
    Ok(None)
}

fn alike(rows: &Tensor, used: &BTreeSet<u32>, others: &[u32]) -> candle_core::Result<Option<(u32, u32)>> {
    if used.is_empty() {
        return Ok(None);
    }
    let used: Vec<u32> = used.iter().copied().collect();
    let unit = |ids: &[u32]| {
        let chosen = rows.index_select(&Tensor::new(ids, &Device::Cpu)?, 0)?.to_dtype(DType::F32)?;
        let length = (chosen.sqr()?.sum_keepdim(1)?.sqrt()? + 1e-12)?;
        chosen.broadcast_div(&length)
    };
    let cosines = unit(&used)?.matmul(&unit(others)?.t()?)?.to_vec2::<f32>()?;
    for (one, cosines) in used.iter().zip(&cosines) {
        let like = others.iter().zip(cosines).find(|(other, cosine)| one != *other && **cosine > ALIKE);
        if let Some((other, _)) = like {
            return Ok(Some((*one, *other)));
        }
    }
    Ok(None)
}

fn text(base: &Base, id: u32) -> String {
    match base.tokens.decode(&[id]) {
        Ok(text) if !text.is_empty() => text,
        _ => format!("the unused id {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_rows_that_were_never_told_apart() {
        let rows = [[1.0_f32, 0.0, 0.0], [0.5, 0.5, 0.01], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]];
        let rows = Tensor::new(&rows, &Device::Cpu).unwrap();
        assert_eq!(alike(&rows, &BTreeSet::from([1]), &[0, 1, 2, 3]).unwrap(), Some((1, 2)));
        assert_eq!(alike(&rows, &BTreeSet::from([0, 3]), &[0, 1, 2, 3]).unwrap(), None);
    }
}
