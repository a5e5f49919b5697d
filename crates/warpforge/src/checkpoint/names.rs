//! How GGUF names the parameters that transformers has in models of the Llama family, and how it stores them.

/// How the tensors of an architecture are stored, where that is not as transformers has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Architecture {
    /// What `general.architecture` says.
    name: &'static str,
    /// The two halves of a head that rotary embeddings pair lie row by row in turn.
    pub(super) interleaves_heads: bool,
    /// One is added to the weights of norms.
    pub(super) adds_one_to_norms: bool,
    /// There are norms on both sides of attention and of the MLP.
    has_norms_behind: bool,
}

/// The architectures that are known. Mistral, Llama 3 and SmolLM2 are `llama` too.
const ARCHITECTURES: [Architecture; 6] = [
    Architecture { interleaves_heads: true, ..plain("llama") },
    plain("qwen2"),
    plain("qwen3"),
    Architecture { adds_one_to_norms: true, ..plain("gemma") },
    Architecture { adds_one_to_norms: true, has_norms_behind: true, ..plain("gemma2") },
    Architecture { adds_one_to_norms: true, has_norms_behind: true, ..plain("gemma3") },
];

const fn plain(name: &'static str) -> Architecture {
    Architecture { name, interleaves_heads: false, adds_one_to_norms: false, has_norms_behind: false }
}

/// The modules of a layer: their names in transformers and in GGUF.
const MODULES: [(&str, &str); 10] = [
    ("input_layernorm", "attn_norm"),
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
/// The norms behind attention where there is none behind the MLP, and where there is.
const NORMS: [(&str, &str); 1] = [("post_attention_layernorm", "ffn_norm")];
const NORMS_ON_BOTH_SIDES: [(&str, &str); 3] = [
    ("post_attention_layernorm", "post_attention_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
];

impl Architecture {
    /// The architecture of a name.
    pub(super) fn of(name: &str) -> Option<Self> {
        ARCHITECTURES.into_iter().find(|known| known.name == name)
    }

    /// The names that are known.
    pub(super) fn known() -> String {
        ARCHITECTURES.map(|known| known.name).join(", ")
    }

    /// What `general.architecture` says, the first part of the names of its values.
    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// The tensor of a parameter, which may be inside of other modules. A model without a head of its own multiplies by its
    /// embedding: that is the second name.
    pub(super) fn tensor_of(self, parameter: &str) -> Option<(String, Option<&'static str>)> {
        /// The embedding, which may be the head as well.
        const EMBEDDING: &str = "token_embd.weight";
        let (module, part) = parameter.rsplit_once('.')?;
        if !["weight", "bias"].contains(&part) {
            return None;
        }
        if let Some((layer, module)) = in_layer(module) {
            let norms = if self.has_norms_behind { &NORMS_ON_BOTH_SIDES[..] } else { &NORMS };
            let mut known = MODULES.iter().chain(norms);
            let (_, own) = known.find(|(name, _)| *name == module)?;
            return Some((format!("blk.{layer}.{own}.{part}"), None));
        }
        match module.rsplit('.').next()? {
            "embed_tokens" => Some((EMBEDDING.to_owned(), None)),
            "norm" => Some((format!("output_norm.{part}"), None)),
            "lm_head" => Some((format!("output.{part}"), (part == "weight").then_some(EMBEDDING))),
            _ => None,
        }
    }
}

/// The number of a layer and the module in it.
fn in_layer(module: &str) -> Option<(usize, &str)> {
    let rest = match module.strip_prefix("layers.") {
        Some(rest) => rest,
        None => module.split_once(".layers.")?.1,
    };
    let (layer, module) = rest.split_once('.')?;
    Some((layer.parse().ok()?, module))
}

/// The factors of rotary embeddings, which transformers keeps in buffers and GGUF as a base.
pub(super) fn is_inverse_frequencies(name: &str) -> bool {
    ["rotary_emb.inv_freq", "rotary_emb.original_inv_freq"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(architecture: &str, parameter: &str) -> Option<String> {
        Architecture::of(architecture).unwrap().tensor_of(parameter).map(|(name, _)| name)
    }

    #[test]
    fn parameters_are_found_wherever_the_decoder_is() {
        for (parameter, name) in [
            ("model.embed_tokens.weight", "token_embd.weight"),
            ("embed_tokens.weight", "token_embd.weight"),
            ("model.norm.weight", "output_norm.weight"),
            ("lm_head.weight", "output.weight"),
            ("model.layers.11.self_attn.q_proj.bias", "blk.11.attn_q.bias"),
            ("layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"),
            ("net.model.layers.3.post_attention_layernorm.weight", "blk.3.ffn_norm.weight"),
        ] {
            assert_eq!(tensor("llama", parameter).as_deref(), Some(name), "{parameter}");
        }
        for other in ["model.layers.0.self_attn.q_proj.lora_A", "model.layers.x.mlp.up_proj.weight", "weight"]
        {
            assert_eq!(tensor("llama", other), None, "{other}");
        }
        let head = Architecture::of("llama").unwrap().tensor_of("lm_head.weight").unwrap();
        assert_eq!(head.1, Some("token_embd.weight"));
    }

    #[test]
    fn architectures_differ_in_their_norms_and_heads() {
        let norm = "model.layers.0.post_attention_layernorm.weight";
        assert_eq!(tensor("gemma", norm).as_deref(), Some("blk.0.ffn_norm.weight"));
        assert_eq!(tensor("gemma2", norm).as_deref(), Some("blk.0.post_attention_norm.weight"));
        assert_eq!(tensor("qwen2", "model.layers.0.pre_feedforward_layernorm.weight"), None);
        let interleaved = ARCHITECTURES.iter().filter(|known| known.interleaves_heads);
        assert_eq!(interleaved.map(|known| known.name).collect::<Vec<_>>(), ["llama"]);
        assert_eq!(Architecture::of("gpt2"), None);
    }

    #[test]
    fn every_module_has_one_name() {
        for norms in [&NORMS[..], &NORMS_ON_BOTH_SIDES] {
            let all: Vec<_> = MODULES.iter().chain(norms).collect();
            for (at, (one, own)) in all.iter().enumerate() {
                assert!(all[..at].iter().all(|(other, theirs)| other != one && theirs != own), "{one}");
            }
        }
    }
}
