//! The sizes of a BERT-like encoder, as `config.json` of a checkpoint has them.

use serde::Deserialize;

/// The largest size that a configuration may name.
const MOST: usize = 1 << 20;

/// The sizes, under the names of the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(in crate::suites) struct Architecture {
    #[serde(rename = "vocab_size")]
    pub(in crate::suites) vocabulary: usize,
    #[serde(rename = "hidden_size")]
    pub(in crate::suites) hidden: usize,
    #[serde(rename = "num_hidden_layers")]
    pub(in crate::suites) layers: usize,
    #[serde(rename = "num_attention_heads")]
    pub(in crate::suites) heads: usize,
    #[serde(rename = "intermediate_size")]
    pub(in crate::suites) intermediate: usize,
    #[serde(rename = "max_position_embeddings")]
    pub(in crate::suites) positions: usize,
    #[serde(rename = "type_vocab_size")]
    pub(in crate::suites) types: usize,
    #[serde(rename = "layer_norm_eps")]
    pub(in crate::suites) epsilon: f64,
    #[serde(rename = "hidden_act")]
    activation: String,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

impl Architecture {
    /// MiniLM of six layers with a vocabulary of this size.
    pub(in crate::suites) fn mini_lm(vocabulary: usize) -> Self {
        Self {
            vocabulary,
            hidden: 384,
            layers: 6,
            heads: 12,
            intermediate: 1536,
            positions: 512,
            types: 2,
            epsilon: 1e-12,
            activation: "gelu".to_owned(),
            position_embedding_type: None,
        }
    }

    /// The sizes in a `config.json`.
    ///
    /// # Errors
    /// What is wrong with it, or that it is of another architecture.
    pub(in crate::suites) fn parse(text: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let sizes = [
            ("vocab_size", read.vocabulary),
            ("hidden_size", read.hidden),
            ("num_hidden_layers", read.layers),
            ("num_attention_heads", read.heads),
            ("intermediate_size", read.intermediate),
            ("max_position_embeddings", read.positions),
            ("type_vocab_size", read.types),
        ];
        if let Some((name, size)) = sizes.iter().find(|(_, size)| !(1..=MOST).contains(size)) {
            return Err(format!("{name} is {size}"));
        }
        if !read.hidden.is_multiple_of(read.heads) {
            return Err(format!("hidden_size {} is no multiple of {} heads", read.hidden, read.heads));
        }
        if read.activation != "gelu" {
            return Err(format!("hidden_act is `{}`; encoders with `gelu` are known", read.activation));
        }
        match read.position_embedding_type.as_deref() {
            None | Some("absolute") => Ok(read),
            Some(other) => {
                Err(format!("position_embedding_type is `{other}`; encoders with `absolute` are known"))
            }
        }
    }

    /// The parameters by the names of the checkpoint, with their sizes.
    pub(in crate::suites) fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        let (hidden, inner) = (self.hidden, self.intermediate);
        let mut list: Vec<(String, Vec<usize>)> = Vec::new();
        let mut add = |name: String, dims: &[usize]| list.push((name, dims.to_vec()));
        let tables = [("word", self.vocabulary), ("position", self.positions), ("token_type", self.types)];
        for (table, rows) in tables {
            add(format!("embeddings.{table}_embeddings.weight"), &[rows, hidden]);
        }
        let mut norms = vec!["embeddings.LayerNorm".to_owned()];
        for layer in 0..self.layers {
            let layer = format!("encoder.layer.{layer}");
            let linear = [
                ("attention.self.query", hidden, hidden),
                ("attention.self.key", hidden, hidden),
                ("attention.self.value", hidden, hidden),
                ("attention.output.dense", hidden, hidden),
                ("intermediate.dense", inner, hidden),
                ("output.dense", hidden, inner),
            ];
            for (name, rows, columns) in linear {
                add(format!("{layer}.{name}.weight"), &[rows, columns]);
                add(format!("{layer}.{name}.bias"), &[rows]);
            }
            norms.extend(["attention.output", "output"].map(|part| format!("{layer}.{part}.LayerNorm")));
        }
        for norm in norms {
            add(format!("{norm}.weight"), &[hidden]);
            add(format!("{norm}.bias"), &[hidden]);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
        "intermediate_size": 1536, "max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu", "model_type": "bert"}"#;

    #[test]
    fn a_configuration_is_read_and_another_architecture_is_refused() {
        let read = Architecture::parse(CONFIG).unwrap();
        assert_eq!(read, Architecture::mini_lm(30522));
        let elements: usize = read.parameters().iter().map(|(_, dims)| dims.iter().product::<usize>()).sum();
        assert_eq!(elements, 22_565_376, "MiniLM-L6 without its pooler");
        for (from, to, message) in [
            ("\"gelu\"", "\"relu\"", "hidden_act is `relu`"),
            ("384", "385", "no multiple of 12 heads"),
            ("30522", "0", "vocab_size is 0"),
            ("\"layer_norm_eps\": 1e-12,", "", "layer_norm_eps"),
            (
                "\"model_type\"",
                "\"position_embedding_type\": \"relative_key\", \"model_type\"",
                "relative_key",
            ),
        ] {
            let refused = Architecture::parse(&CONFIG.replace(from, to)).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
    }
}
