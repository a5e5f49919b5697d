//! An encoder of sentences on the engine: weights of a checkpoint or of a seed, a program for each length.

use std::collections::BTreeMap;
use std::path::Path;

use warpforge::{
    CompileOptions, CompiledModel, ElementType, FloatType, Model, Tensor, Tier, io::safetensors,
};

use super::architecture::Architecture;
use super::encoder_text::module;
use crate::benchmark::BenchmarkError;

/// The files of a checkpoint.
pub(in crate::suites) const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// Token ids of sentences of the same length, padded at the end.
#[derive(Debug, Clone)]
pub(in crate::suites) struct Batch {
    /// Sentences.
    pub(in crate::suites) sentences: usize,
    /// Tokens of each, padding included.
    pub(in crate::suites) length: usize,
    /// The tokens, sentence by sentence.
    pub(in crate::suites) ids: Vec<i64>,
    /// 1 for a token, 0 for padding.
    pub(in crate::suites) mask: Vec<i64>,
}

/// An encoder.
pub(in crate::suites) struct Encoder {
    pub(in crate::suites) architecture: Architecture,
    weights: BTreeMap<String, Tensor>,
    options: CompileOptions,
    programs: BTreeMap<(usize, usize), CompiledModel>,
}

impl Encoder {
    /// The encoder of a checkpoint's folder.
    ///
    /// # Errors
    /// A file that cannot be read, or that is of another architecture.
    pub(in crate::suites) fn open(folder: &Path, options: CompileOptions) -> Result<Self, BenchmarkError> {
        let (config, weights) = (folder.join(CONFIG), folder.join(WEIGHTS));
        let wrong =
            |path: &Path, reason: &str| BenchmarkError::BadInput(format!("{}: {reason}", path.display()));
        let text = std::fs::read_to_string(&config).map_err(|error| wrong(&config, &error.to_string()))?;
        let architecture = Architecture::parse(&text).map_err(|reason| wrong(&config, &reason))?;
        let mut found = safetensors::read(&weights).map_err(|error| wrong(&weights, &error.to_string()))?;
        let mut kept = BTreeMap::new();
        for (name, dims) in architecture.parameters() {
            // Checkpoints with a head have the encoder under a name of its own.
            let tensor = found.remove(&name).or_else(|| found.remove(&format!("bert.{name}")));
            let tensor = tensor.ok_or_else(|| wrong(&weights, &format!("there is no `{name}`")))?;
            let is = (tensor.element_type(), tensor.shape().dims());
            if is != (ElementType::Float(FloatType::F32), dims.as_slice()) {
                return Err(wrong(&weights, &format!("`{name}` is {} {:?}, not f32 {dims:?}", is.0, is.1)));
            }
            kept.insert(name, tensor);
        }
        Ok(Self { architecture, weights: kept, options, programs: BTreeMap::new() })
    }

    /// An encoder with weights from a seed: products and norms of the usual magnitudes.
    pub(in crate::suites) fn seeded(
        architecture: Architecture,
        seed: u64,
        options: CompileOptions,
    ) -> Result<Self, BenchmarkError> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut weights = BTreeMap::new();
        for (name, dims) in architecture.parameters() {
            let count: usize = dims.iter().product();
            let values: Vec<f32> = if name.ends_with("LayerNorm.weight") {
                vec![1.0; count]
            } else {
                std::iter::repeat_with(|| (random.f32() - 0.5) * 0.12).take(count).collect()
            };
            weights.insert(name, Tensor::from_slice(&dims, &values).map_err(failed)?);
        }
        Ok(Self { architecture, weights, options, programs: BTreeMap::new() })
    }

    /// The longest sentence in tokens.
    pub(in crate::suites) fn longest(&self) -> usize {
        self.architecture.positions
    }

    /// Compiles the program for batches of this size, unless it is there.
    pub(in crate::suites) fn prepare(
        &mut self,
        sentences: usize,
        length: usize,
    ) -> Result<(), BenchmarkError> {
        if !self.programs.contains_key(&(sentences, length)) {
            let compiled = self.compiled(sentences, length, &self.options)?;
            self.programs.insert((sentences, length), compiled);
        }
        Ok(())
    }

    fn compiled(
        &self,
        sentences: usize,
        length: usize,
        options: &CompileOptions,
    ) -> Result<CompiledModel, BenchmarkError> {
        let text = module(&self.architecture, sentences, length);
        let mut model = Model::from_text("encoder.mlir", text).map_err(failed)?;
        model.bind_weights(&self.weights).map_err(failed)?;
        model.compile(options).map_err(|error| match error.is_not_offered() {
            true => BenchmarkError::NotPossible(error.to_string()),
            false => failed(error),
        })
    }

    /// The embeddings of a batch, a unit vector for each sentence.
    ///
    /// # Errors
    /// That there is no program of this size, or what went wrong in it.
    pub(in crate::suites) fn embed(&self, batch: &Batch) -> Result<Tensor, BenchmarkError> {
        let size = (batch.sentences, batch.length);
        let program = self.programs.get(&size);
        let program = program.ok_or_else(|| failed(format!("no program for batches of {size:?}")))?;
        run(program, batch)
    }

    /// The same by the reference interpreter.
    pub(in crate::suites) fn reference(&self, batch: &Batch) -> Result<Tensor, BenchmarkError> {
        let options = CompileOptions { tier: Some(Tier::Correctness), ..CompileOptions::default() };
        run(&self.compiled(batch.sentences, batch.length, &options)?, batch)
    }
}

fn run(program: &CompiledModel, batch: &Batch) -> Result<Tensor, BenchmarkError> {
    let dims = [batch.sentences, batch.length];
    let input = |values: &[i64]| Tensor::from_slice(&dims, values).map_err(failed);
    let inputs = [("input_ids", input(&batch.ids)?), ("attention_mask", input(&batch.mask)?)];
    let outputs = program.run(inputs).map_err(failed)?;
    outputs.get("embeddings").cloned().ok_or_else(|| failed("the encoder gave no embeddings"))
}

fn failed(error: impl std::fmt::Display) -> BenchmarkError {
    BenchmarkError::Failed(error.to_string())
}

/// The largest distance that an embedding may have from the reference's, in any component.
const TOLERANCE: f32 = 1e-5;

/// Holds embeddings to the reference's.
///
/// # Errors
/// Where one is further away than the tolerance, or no number.
pub(in crate::suites) fn held(found: &Tensor, right: &Tensor) -> Result<(), BenchmarkError> {
    let (found, right) = (found.as_slice::<f32>().map_err(failed)?, right.as_slice::<f32>().map_err(failed)?);
    let distance = |(found, right): (&f32, &f32)| match (found - right).abs() {
        distance if distance.is_nan() => f32::INFINITY,
        distance => distance,
    };
    let worst = found.iter().zip(right).map(distance).fold(0.0, f32::max);
    if worst <= TOLERANCE && found.len() == right.len() {
        return Ok(());
    }
    Err(failed(format!(
        "wrong answer: an embedding is {worst:.1e} from the reference's, at most {TOLERANCE:.0e} is right"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> Architecture {
        let mut tiny = Architecture::mini_lm(40);
        (tiny.hidden, tiny.layers, tiny.heads, tiny.intermediate, tiny.positions) = (24, 2, 3, 48, 16);
        tiny
    }

    fn batch(length: usize) -> Batch {
        let ids: Vec<i64> = (0..2 * length).map(|at| (at * 7 % 40) as i64).collect();
        // The second sentence has three tokens.
        let mask = (0..2 * length).map(|at| i64::from(at < length + 3)).collect();
        Batch { sentences: 2, length, ids, mask }
    }

    #[test]
    fn embeddings_are_the_references_unit_vectors_whatever_the_padding() {
        let mut encoder = Encoder::seeded(tiny(), 3, CompileOptions::default()).unwrap();
        encoder.prepare(2, 8).unwrap();
        let found = encoder.embed(&batch(8)).unwrap();
        held(&found, &encoder.reference(&batch(8)).unwrap()).unwrap();
        let norm: f32 = found.as_slice::<f32>().unwrap()[24..].iter().map(|x| x * x).sum();
        assert!((norm - 1.0).abs() < 1e-5, "{norm}");
        let mut short = batch(8);
        short.ids = short.ids.chunks(8).flat_map(|row| row[..4].to_vec()).collect();
        short.mask = vec![1, 1, 1, 1, 1, 1, 1, 0];
        short.length = 4;
        encoder.prepare(2, 4).unwrap();
        let less = encoder.embed(&short).unwrap();
        let second = |tensor: &Tensor| tensor.as_slice::<f32>().unwrap()[24..].to_vec();
        let apart = second(&found).iter().zip(second(&less)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-5, "{apart}");
        let mut wrong = second(&found);
        wrong[5] += 1e-3;
        let wrong = Tensor::from_slice(&[24], &wrong).unwrap();
        let right = Tensor::from_slice(&[24], &second(&found)).unwrap();
        assert!(held(&wrong, &right).unwrap_err().to_string().starts_with("wrong answer"));
    }

    #[test]
    fn a_checkpoint_is_read_and_a_wrong_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Encoder::open(folder.path(), CompileOptions::default());
        assert!(open().err().unwrap().to_string().contains("config.json"));
        let config = r#"{"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
            "intermediate_size": 48, "max_position_embeddings": 16, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
            "hidden_act": "gelu"}"#;
        std::fs::write(folder.path().join(CONFIG), config).unwrap();
        let mut seeded = Encoder::seeded(tiny(), 3, CompileOptions::default()).unwrap();
        let path = folder.path().join(WEIGHTS);
        let named: Vec<(String, Tensor)> =
            seeded.weights.iter().map(|(name, tensor)| (format!("bert.{name}"), tensor.clone())).collect();
        let write = |list: &[(String, Tensor)]| {
            safetensors::write(&path, list.iter().map(|(name, tensor)| (name.as_str(), tensor))).unwrap();
        };
        write(&named);
        let mut read = open().unwrap();
        read.prepare(2, 8).unwrap();
        seeded.prepare(2, 8).unwrap();
        assert!(read.embed(&batch(8)).unwrap().identical(&seeded.embed(&batch(8)).unwrap()));
        write(&named[1..]);
        assert!(open().err().unwrap().to_string().contains("there is no `"));
    }
}
