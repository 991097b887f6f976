//! What a tensor is called: in Hugging Face's folders, and in a GGUF.

/// Outside the layers.
const WHOLE: [(&str, &str); 3] =
    [("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")];

const LAYERS: (&str, &str) = ("model.layers.", "blk.");

/// In a layer. No rows are reordered: these models turn positions by halves, as llama.cpp does for them.
const IN_LAYER: [(&str, &str); 11] = [
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

/// Nothing for a tensor that neither architecture has.
pub fn to_gguf(name: &str) -> Option<String> {
    renamed(name, LAYERS, |from| find(from, WHOLE), |from| find(from, IN_LAYER))
}

/// The other way.
pub fn to_hugging_face(name: &str) -> Option<String> {
    let turned = |(ours, theirs)| (theirs, ours);
    renamed(name, turned(LAYERS), |from| find(from, WHOLE.map(turned)), |from| find(from, IN_LAYER.map(turned)))
}

/// Which layer a tensor of a GGUF belongs to.
pub(super) fn layer(name: &str) -> Option<usize> {
    number(name.strip_prefix(LAYERS.1)?.split('.').next()?)
}

fn renamed(
    name: &str,
    (layers, replacement): (&str, &str),
    whole: impl Fn(&str) -> Option<&'static str>,
    in_layer: impl Fn(&str) -> Option<&'static str>,
) -> Option<String> {
    let (module, part) = name.rsplit_once('.')?;
    if part != "weight" && part != "bias" {
        return None;
    }
    let Some(rest) = module.strip_prefix(layers) else {
        return Some(format!("{}.{part}", whole(module)?));
    };
    let (layer, module) = rest.split_once('.')?;
    Some(format!("{replacement}{}.{}.{part}", number(layer)?, in_layer(module)?))
}

/// As it is written without need: `07` would come back as `7`.
fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text)
}

fn find<const N: usize>(name: &str, pairs: [(&'static str, &'static str); N]) -> Option<&'static str> {
    pairs.into_iter().find_map(|(from, to)| (from == name).then_some(to))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::base::{Architecture, ModelConfig};

    fn config(architecture: Architecture, layers: usize, tied: bool) -> ModelConfig {
        ModelConfig {
            architecture,
            vocabulary: 8,
            hidden: 4,
            intermediate: 6,
            layers,
            heads: 2,
            key_value_heads: 1,
            head_width: 2,
            states_head_width: true,
            rope_theta: 1e6,
            norm_epsilon: 1e-6,
            tied,
            context_length: 32,
        }
    }

    proptest! {
        #[test]
        fn comes_back_to_the_name_it_had(layers in 0usize..120, tied: bool, is_qwen3: bool) {
            let architecture = if is_qwen3 { Architecture::Qwen3 } else { Architecture::Qwen2 };
            let tensors = config(architecture, layers, tied).tensors();
            let mut renamed = BTreeSet::new();
            for (name, _) in &tensors {
                let there = to_gguf(name).expect("every tensor has a name in a GGUF");
                let back = to_hugging_face(&there);
                prop_assert_eq!(back.as_ref(), Some(name));
                renamed.insert(there);
            }
            prop_assert_eq!(renamed.len(), tensors.len());
        }

        #[test]
        fn is_the_inverse_for_whatever_it_takes(name in "(model\\.layers\\.|blk\\.|)[0-9]{0,3}\\.?[a-z_.]{0,24}(weight|bias)?") {
            if let Some(there) = to_gguf(&name) {
                prop_assert_eq!(to_hugging_face(&there), Some(name.clone()));
            }
            if let Some(back) = to_hugging_face(&name) {
                prop_assert_eq!(to_gguf(&back), Some(name));
            }
        }
    }

    #[test]
    fn names_tensors_as_llama_cpp_does() {
        for (ours, theirs) in [
            ("model.embed_tokens.weight", "token_embd.weight"),
            ("model.layers.27.self_attn.q_proj.bias", "blk.27.attn_q.bias"),
            ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"),
        ] {
            assert_eq!(to_gguf(ours).as_deref(), Some(theirs));
        }
        for unknown in ["model.layers.07.mlp.up_proj.weight", "model.norm.scale", "visual.patch.weight", ""] {
            assert_eq!(to_gguf(unknown), None);
        }
        assert_eq!(layer("blk.12.attn_v.weight"), Some(12));
        assert_eq!(layer("output.weight"), None);
    }
}
