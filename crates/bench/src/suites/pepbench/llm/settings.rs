//! The parameters of the benchmarks of language models.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use warpforge::{CompileOptions, Device, Precision, QuantizationRecipe};
use warpforge_bio::available_threads;
use warpforge_probes::limits::read_rate;
use warpforge_probes::{affinity, team::Team};

use super::checkpoint::Checkpoint;
use super::program::Stored;
use super::sizes::Sizes;
use crate::benchmark::{BenchmarkError, MetricKey, int, text};
use crate::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, Params, params,
};
use crate::suites::stages::Tagged;
use crate::suites::values::{bad_value, within};
use crate::suites::{device, packages};

const MOST_THREADS: i64 = 4096;
/// The most tokens of a sequence.
pub(super) const MOST_TOKENS: i64 = 1 << 16;
const MOST_BATCH: i64 = 256;

/// Checked parameters.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// A checkpoint; `None` for weights from the seed.
    model: Option<PathBuf>,
    pub(super) stored: Stored,
    /// How the weights of matrix products are quantized.
    pub(super) recipe: Option<QuantizationRecipe>,
    pub(super) batch: usize,
    pub(super) tokens: usize,
    device: Device,
    threads: Option<NonZeroUsize>,
    pub(super) seed: u64,
}

impl Settings {
    pub(super) fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let model = match text(params, "model") {
            "" => None,
            name => Some(packages::find("model", name, &packages::LLAMA)?),
        };
        let stored = match text(params, "type") {
            "f32" => Stored::F32,
            "bf16" => Stored::Bf16,
            other => return Err(bad_value("type", &other, "give f32 or bf16")),
        };
        let recipe = match text(params, "precision") {
            "model" => None,
            name => Some(
                name.parse()
                    .map_err(|error| bad_value("precision", &name, &format!("{error}, and model")))?,
            ),
        };
        let seed = int(params, "seed");
        Ok(Self {
            model,
            stored,
            recipe,
            batch: within(params, "batch", 1, MOST_BATCH)?,
            tokens: within(params, "tokens", 1, MOST_TOKENS)?,
            device: device::named(params)?,
            threads: NonZeroUsize::new(within(params, "threads", 0, MOST_THREADS)?),
            seed: u64::try_from(seed).map_err(|_| bad_value("seed", &seed, "a seed is not negative"))?,
        })
    }

    /// The weights, rounded to the type that they are stored in.
    ///
    /// # Errors
    /// A checkpoint that cannot be read, or whose context is shorter than `longest` tokens.
    pub(super) fn checkpoint(&self, longest: usize) -> Result<Checkpoint, BenchmarkError> {
        let mut checkpoint = match &self.model {
            Some(path) => Checkpoint::open(path)?,
            None => Checkpoint::seeded(
                Sizes { context: MOST_TOKENS as usize * 2, ..Sizes::generated() },
                self.seed,
            ),
        };
        if longest > checkpoint.sizes.context {
            let context = checkpoint.sizes.context;
            return Err(bad_value(
                "tokens",
                &self.tokens,
                &format!("the model's context is {context} tokens"),
            ));
        }
        checkpoint.round(self.stored);
        if let Some(recipe) = self.recipe {
            checkpoint.quantize(recipe).map_err(|error| bad_value("precision", &recipe, &error))?;
        }
        Ok(checkpoint)
    }

    /// Token ids from the seed, a row for each sequence.
    pub(super) fn prompts(&self, vocabulary: usize, tokens: usize) -> Vec<i64> {
        let mut random = fastrand::Rng::with_seed(self.seed ^ 0x70_6b_65_6e);
        (0..self.batch * tokens).map(|_| random.usize(..vocabulary) as i64).collect()
    }

    fn precision(&self) -> String {
        self.recipe.map_or_else(|| "model".to_owned(), |recipe| recipe.to_string())
    }

    fn threads(&self) -> usize {
        self.threads.map_or_else(available_threads, NonZeroUsize::get)
    }

    /// How programs are compiled: all of them kernels of the engine.
    pub(super) fn options(&self) -> CompileOptions {
        let precision = self.recipe.map_or(Precision::Model, Precision::Quantized);
        CompileOptions {
            device: self.device,
            threads: self.threads,
            precision,
            no_fallback: true,
            ..CompileOptions::default()
        }
    }

    /// Bytes a second that as many threads read from memory; of a GPU those that copies inside its memory read and write.
    ///
    /// # Errors
    /// When there are no threads or no memory to measure with.
    pub(super) fn read_rate(&self) -> Result<f64, BenchmarkError> {
        if let Some(rate) = device::copy_rate(self.device)? {
            return Ok(rate);
        }
        let failed = |error: &dyn std::fmt::Display| BenchmarkError::Failed(error.to_string());
        let mut cpus = affinity::allowed().map_err(|error| failed(&error))?;
        cpus.truncate(self.threads());
        let mut team = Team::new(&cpus).map_err(|error| failed(&error))?;
        read_rate(&mut team).map_err(|error| failed(&error))
    }
}

impl Tagged for Settings {
    fn tag(&self, key: MetricKey) -> MetricKey {
        let name = self.model.as_deref().and_then(|path| path.file_name());
        let name = name.map_or_else(|| "generated".to_owned(), |name| name.to_string_lossy().into_owned());
        device::tag(key, self.device)
            .tag("model", name)
            .tag("type", self.stored.name())
            .tag("precision", self.precision())
            .tag("batch", self.batch)
            .tag("tokens", self.tokens)
            .tag("threads", self.threads())
    }
}

/// What the common parameters take, and its own.
pub(super) fn takes(own: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let common = [
        (
            "model",
            format!(
                "a Llama-like checkpoint: a GGUF file, a folder with config.json and model.safetensors, or a file of \
                 llama2.c; {} from an installed package; empty for weights from the seed",
                packages::names(&packages::LLAMA)
            ),
        ),
        ("type", "f32 or bf16: weights, cache and operands of matrix products".to_owned()),
        (
            "precision",
            format!(
                "model, or a recipe that the weights of matrix products are quantized by: {}",
                QuantizationRecipe::ALL.map(|recipe| recipe.to_string()).join(", ")
            ),
        ),
        ("batch", format!("1 to {MOST_BATCH}")),
        ("tokens", format!("1 to {MOST_TOKENS}")),
        ("device", device::PLACES.to_owned()),
        ("threads", format!("1 to {MOST_THREADS}; 0 for all")),
        ("seed", "a whole number, 0 or more".to_owned()),
    ];
    common.into_iter().chain(own.iter().cloned()).collect()
}

/// The specification of a benchmark: the common parameters and its own.
pub(super) fn spec(name: &str, description: &str, tokens: i64, own: &[(&str, ParamValue)]) -> BenchmarkSpec {
    let common = [
        ("model", ParamValue::Text(String::new())),
        ("type", ParamValue::Text("bf16".to_owned())),
        ("precision", ParamValue::Text("model".to_owned())),
        ("batch", ParamValue::Int(1)),
        ("tokens", ParamValue::Int(tokens)),
        ("device", ParamValue::Text(Device::Cpu.to_string())),
        ("threads", ParamValue::Int(0)),
        ("seed", ParamValue::Int(1)),
    ];
    BenchmarkSpec {
        components: vec![BenchmarkComponent::Cpu],
        description: Some(description.to_owned()),
        default_duration_seconds: Some(20),
        params: Some(params(&[&common, own].concat())),
        ..BenchmarkId::new("pepbench", name).spec(BenchmarkKind::Application)
    }
}
