//! The sizes of a Llama-like decoder.

use serde::Deserialize;

/// The largest size that a file may name.
const MOST: usize = 1 << 20;

/// The sizes.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::suites) struct Sizes {
    pub(in crate::suites) vocabulary: usize,
    pub(in crate::suites) hidden: usize,
    pub(in crate::suites) layers: usize,
    pub(in crate::suites) heads: usize,
    /// Heads of keys and values, each shared by a group of query heads.
    pub(in crate::suites) kv_heads: usize,
    /// Channels of a head.
    pub(in crate::suites) channels: usize,
    pub(in crate::suites) intermediate: usize,
    /// The longest sequence.
    pub(in crate::suites) context: usize,
    pub(in crate::suites) epsilon: f64,
    /// The base of the rotary embedding's frequencies.
    pub(in crate::suites) theta: f64,
}

/// `config.json` of a checkpoint.
#[derive(Deserialize)]
struct Config {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    intermediate_size: usize,
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    rope_theta: Option<f64>,
    hidden_act: String,
    rope_scaling: Option<Rope>,
    rope_parameters: Option<Rope>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    model_type: Option<String>,
}

/// How positions are rotated.
#[derive(Deserialize)]
struct Rope {
    rope_theta: Option<f64>,
    #[serde(alias = "type")]
    rope_type: Option<String>,
}

impl Sizes {
    /// The generated decoder: 63 million parameters, more than the caches of most processors hold.
    pub(in crate::suites) fn generated() -> Self {
        Self {
            vocabulary: 16_384,
            hidden: 768,
            layers: 8,
            heads: 12,
            kv_heads: 4,
            channels: 64,
            intermediate: 2048,
            context: 8192,
            epsilon: 1e-5,
            theta: 10_000.0,
        }
    }

    /// The sizes in a `config.json`.
    ///
    /// # Errors
    /// What is wrong with it, or that it is of another architecture.
    pub(in crate::suites) fn parse(text: &str) -> Result<Self, String> {
        let read: Config = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if let Some(other) = read.model_type.as_deref().filter(|model| *model != "llama") {
            return Err(format!("model_type is `{other}`; `llama` is known"));
        }
        if read.hidden_act != "silu" {
            return Err(format!("hidden_act is `{}`; decoders with `silu` are known", read.hidden_act));
        }
        if read.attention_bias || read.mlp_bias {
            return Err("its layers have biases; decoders without are known".to_owned());
        }
        let mut theta = read.rope_theta;
        for rope in [read.rope_scaling, read.rope_parameters].into_iter().flatten() {
            if let Some(other) = rope.rope_type.filter(|kind| kind != "default") {
                return Err(format!(
                    "its rotary embedding is scaled (`{other}`); decoders without are known"
                ));
            }
            theta = theta.or(rope.rope_theta);
        }
        let heads = read.num_attention_heads.max(1);
        Self {
            vocabulary: read.vocab_size,
            hidden: read.hidden_size,
            layers: read.num_hidden_layers,
            heads: read.num_attention_heads,
            kv_heads: read.num_key_value_heads.unwrap_or(read.num_attention_heads),
            channels: read.head_dim.unwrap_or(read.hidden_size / heads),
            intermediate: read.intermediate_size,
            context: read.max_position_embeddings,
            epsilon: read.rms_norm_eps,
            theta: theta.unwrap_or(10_000.0),
        }
        .checked()
    }

    /// The same, if a decoder can have these sizes.
    ///
    /// # Errors
    /// The size that it cannot have.
    pub(in crate::suites) fn checked(self) -> Result<Self, String> {
        let sizes = [
            ("vocabulary", self.vocabulary),
            ("hidden size", self.hidden),
            ("number of layers", self.layers),
            ("number of heads", self.heads),
            ("number of key/value heads", self.kv_heads),
            ("size of a head", self.channels),
            ("intermediate size", self.intermediate),
            ("context", self.context),
        ];
        if let Some((name, size)) = sizes.iter().find(|(_, size)| !(1..=MOST).contains(size)) {
            return Err(format!("its {name} is {size}"));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(format!("{} heads cannot share {} key/value heads", self.heads, self.kv_heads));
        }
        if !self.channels.is_multiple_of(2) {
            return Err(format!("a head of {} channels cannot be rotated in halves", self.channels));
        }
        if !(self.epsilon > 0.0 && self.epsilon < 1.0 && self.theta > 1.0 && self.theta.is_finite()) {
            return Err(format!("epsilon {} or rotary base {} is no such number", self.epsilon, self.theta));
        }
        Ok(self)
    }

    /// Query heads that share a head of keys and values.
    pub(in crate::suites) fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Channels of all query heads.
    pub(in crate::suites) fn queries(&self) -> usize {
        self.heads * self.channels
    }

    /// Channels of all heads of keys, and of values.
    pub(in crate::suites) fn keys(&self) -> usize {
        self.kv_heads * self.channels
    }

    /// The matrices of a layer with rows and columns: projections that read the same input are one matrix.
    pub(in crate::suites) fn matrices(&self) -> [(&'static str, usize, usize); 4] {
        [
            ("qkv", self.queries() + 2 * self.keys(), self.hidden),
            ("output", self.hidden, self.queries()),
            ("gate_up", 2 * self.intermediate, self.hidden),
            ("down", self.hidden, self.intermediate),
        ]
    }

    /// Parameters of the matrices that every token is multiplied with.
    pub(in crate::suites) fn multiplied(&self) -> usize {
        let layer: usize = self.matrices().iter().map(|(_, rows, columns)| rows * columns).sum();
        self.layers * layer + self.vocabulary * self.hidden
    }

    /// Cosines and sines of the angle of each channel at each of so many positions.
    pub(in crate::suites) fn rotations(&self, positions: usize) -> [Vec<f32>; 2] {
        let half = self.channels / 2;
        let angle = |at: usize| {
            let (position, channel) = (at / self.channels, at % self.channels % half);
            position as f64 * self.theta.powf(-(channel as f64) / half as f64)
        };
        let count = positions * self.channels;
        [
            (0..count).map(|at| angle(at).cos() as f32).collect(),
            (0..count).map(|at| angle(at).sin() as f32).collect(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5, "rope_theta": 100000, "hidden_act": "silu", "rope_scaling": null}"#;

    #[test]
    fn a_configuration_is_read_and_another_architecture_is_refused() {
        let read = Sizes::parse(CONFIG).unwrap();
        assert_eq!((read.group(), read.channels, read.keys()), (3, 64, 192));
        // SmolLM2-135M: all its parameters but the norms, the embedding being the head.
        assert_eq!(read.multiplied(), 134_479_872);
        for (from, to, message) in [
            ("\"silu\"", "\"gelu\"", "hidden_act is `gelu`"),
            ("\"llama\"", "\"mamba\"", "model_type is `mamba`"),
            ("heads\": 3", "heads\": 4", "cannot share 4"),
            ("49152", "0", "vocabulary is 0"),
            ("null", "{\"type\": \"linear\", \"factor\": 2.0}", "is scaled (`linear`)"),
            ("576", "9", "cannot be rotated"),
        ] {
            let refused = Sizes::parse(&CONFIG.replace(from, to)).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
    }
}
