//! What bounds a row: arithmetic, memory bandwidth, and the memory that there is.

use warpforge::{Device, ElementType, QuantizationRecipe};
use warpforge_probes::cpu::Dtype;
use warpforge_probes::limits::{Limits, LimitsError};

use super::config::{Config, Entry, Mode, ModelParams};
use super::graph::Graph;
use super::model::{self, BLOCK, Case, SEQUENCE};
use super::power::Power;
use super::row::Row;
use super::shapes::MatrixShape;
use super::times::{RUNS, TIME};

/// What the processor can do at most, measured.
pub struct Rates(Limits);

/// What a forward pass of the linear layers of a model does at least.
struct Work {
    operations: f64,
    bytes: f64,
}

/// What the rows of a shape take at least.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The time of all recipes.
    pub seconds: f64,
    /// Whether `arithmetic` or `memory` bounds each recipe that has a speed.
    pub bound_by: Vec<(String, &'static str)>,
}

impl Rates {
    /// Measures so many threads.
    ///
    /// # Errors
    ///
    /// When there are no threads or no memory for it.
    pub fn measure(threads: usize) -> Result<Self, LimitsError> {
        Limits::measure(threads).map(Self)
    }

    /// Operations a second in the type that products of a recipe can have on this processor.
    fn of(&self, entry: &Entry, element: ElementType) -> Option<f64> {
        let rate = |wanted: Dtype| {
            self.0.operations.iter().find(|(dtype, _)| *dtype == wanted).map(|(_, rate)| *rate)
        };
        match (entry, element) {
            (Entry::Recipe(QuantizationRecipe::Int8Dynamic), _) => rate(Dtype::Int8),
            (_, ElementType::BF16) => rate(Dtype::Bf16).or_else(|| rate(Dtype::F32)),
            _ => rate(Dtype::F32),
        }
    }

    /// The least time of some work, and what bounds it.
    fn least(&self, work: &Work, rate: f64) -> (f64, &'static str) {
        let (arithmetic, memory) = (work.operations / rate, work.bytes / self.0.bytes);
        (arithmetic.max(memory), if arithmetic > memory { "arithmetic" } else { "memory" })
    }

    /// Notes what bounds a linear layer on the CPU, and what part of that it reached.
    pub(super) fn place(&self, row: &mut Row, entry: &Entry, params: &ModelParams) {
        let (Some(time), "linear", "cpu") = (row.time(), row.model_type.as_str(), row.device.as_str()) else {
            return;
        };
        let Some(rate) = self.of(entry, params.dtype) else { return };
        let (least, by) = self.least(&Work::of(params, &params.shapes[row.shape], entry), rate);
        row.bound_by = Some(by);
        row.of_roofline = Some(least * 1e3 / time);
    }

    /// What all recipes of a shape take at least on this CPU; `None` on other devices, whose rates are not known.
    #[must_use]
    pub fn predict(&self, config: &Config, params: &ModelParams, shape: &MatrixShape) -> Option<Prediction> {
        if params.device != "cpu" {
            return None;
        }
        let runs = (config.repeat.unwrap_or(RUNS.0) + 2) as f64;
        let mut found = Prediction { seconds: 0.0, bound_by: Vec::new() };
        for entry in config.recipes.iter().filter(|entry| entry.has_speed_on_cpus(config.mode)) {
            let Some(rate) = self.of(entry, params.dtype) else { continue };
            let mut work = Work::of(params, shape, entry);
            if config.mode == Mode::Training {
                // Each product has two more for its gradients.
                (work.operations, work.bytes) = (3.0 * work.operations, 3.0 * work.bytes);
            }
            let (least, by) = self.least(&work, rate);
            let measured = runs * least;
            found.seconds +=
                if config.repeat.is_some() { measured } else { measured.max(TIME.as_secs_f64()) };
            found.bound_by.push((entry.name(), by));
        }
        Some(found)
    }
}

impl Entry {
    /// Whether CPUs measure the speed of a recipe.
    fn has_speed_on_cpus(&self, mode: Mode) -> bool {
        match self {
            Self::Baseline => true,
            Self::Recipe(recipe) => mode == Mode::Inference && !recipe.is_float8_dynamic(),
            Self::Emulated(_) | Self::Missing(_) => false,
        }
    }
}

impl Work {
    fn of(params: &ModelParams, shape: &MatrixShape, entry: &Entry) -> Self {
        let rows = rows(params, shape.m) as f64;
        let case = model::case(&params.model_type, shape, shape.m, Graph::new(params.dtype));
        let (mut operations, mut values) = (0.0, 0.0);
        for [columns, depth] in case.weight_dims() {
            operations += 2.0 * rows * columns as f64 * depth as f64;
            values += rows * (columns + depth) as f64;
        }
        let bytes =
            weight_bytes(&case, entry, params.dtype) as f64 + values * params.dtype.byte_width() as f64;
        Self { operations, bytes }
    }
}

/// Rows of the products of a model.
fn rows(params: &ModelParams, m: usize) -> usize {
    if params.model_type == BLOCK { m * SEQUENCE } else { m }
}

/// Bytes of the weights as a recipe stores them.
pub(super) fn weight_bytes(case: &Case, entry: &Entry, dtype: ElementType) -> u64 {
    let bytes = |[columns, depth]: [usize; 2]| {
        let count = (columns * depth) as u64;
        match entry {
            Entry::Recipe(QuantizationRecipe::Int4WeightOnly { group, .. }) => {
                count / 2 + 4 * (count / u64::from(*group))
            }
            Entry::Recipe(_) => count + 4 * columns as u64,
            Entry::Emulated(format) => format.bytes(count),
            Entry::Baseline | Entry::Missing(_) => count * dtype.byte_width() as u64,
        }
    };
    case.weight_dims().map(bytes).sum()
}

/// Bytes that a row needs in the memory of the host, and in that of its GPU.
fn needed(params: &ModelParams, shape: &MatrixShape, mode: Mode) -> [u128; 2] {
    let [m, k, n] = [shape.m, shape.k, shape.n].map(|size| size as u128);
    let width = params.dtype.byte_width() as u128;
    let (weights, values) = match params.model_type.as_str() {
        BLOCK => (12 * k * k, 16 * m * 16 * k),
        _ => (k * n, m * (2 * k + n)),
    };
    let (weights, values) = match mode {
        Mode::Training => (2 * weights, 2 * values),
        Mode::Inference => (weights, values),
    };
    // On the host: weights as values of f32, rounded, in f64 for the comparison, and packed.
    [weights * (2 * width + 20) + values * (width + 4), (weights + values) * width]
}

/// Refuses what would not fit, before anything is allocated.
pub(super) fn fits(
    params: &ModelParams,
    shape: &MatrixShape,
    mode: Mode,
    device: Device,
    power: &mut Power,
) -> Result<(), String> {
    let refuse = |needed: u128, available: Option<u64>, place: &str| match available {
        Some(available) if needed > u128::from(available) => Err(format!(
            "needs about {:.1} GB of memory{place}, {:.1} GB are available",
            needed as f64 / 1e9,
            available as f64 / 1e9
        )),
        _ => Ok(()),
    };
    let [host, on_device] = needed(params, shape, mode);
    if device != Device::Cpu {
        refuse(on_device, power.free_on_gpu(), " of the GPU")?;
    }
    refuse(host, warpforge_tensor::memory::available_bytes(), "")
}

#[cfg(test)]
mod tests {
    use super::super::config::read;
    use super::*;

    fn rates(operations: Vec<(Dtype, f64)>) -> Rates {
        Rates(Limits { operations, bytes: 1e10 })
    }

    fn config(device: &str, mode: &str) -> Config {
        read(&format!(
            "benchmark_mode: {mode}\nquantization_config_recipe_names: [int8dq, int8wo, float8dq-row, mxfp8]\nrepeat_n: 8\nmodel_params:\n  \
             matrix_shapes:\n    - shapes: [[1000, 1000, 1000], [1, 1000, 1000]]\n  device: {device}\n"
        ))
        .unwrap()
    }

    #[test]
    fn each_type_has_its_own_limit() {
        let all = rates(vec![(Dtype::F32, 1e11), (Dtype::Bf16, 1e12), (Dtype::Int8, 2e12)]);
        let config = config("cpu", "inference");
        let [many, one] = [0, 1]
            .map(|at: usize| all.predict(&config, &config.models[0], &config.models[0].shapes[at]).unwrap());
        // 2e9 operations in bf16 twice and in i8 once, ten runs each.
        assert!((many.seconds - 10.0 * (2e-3 + 2e-3 + 1e-3)).abs() < 1e-9, "{many:?}");
        let names: Vec<&str> = many.bound_by.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["baseline", "int8dq", "int8wo"]);
        assert!(many.bound_by.iter().all(|(_, by)| *by == "arithmetic"));
        assert!(one.bound_by.iter().all(|(_, by)| *by == "memory"), "{one:?}");
        let f32_alone = rates(vec![(Dtype::F32, 1e11)]);
        let slow = f32_alone.predict(&config, &config.models[0], &config.models[0].shapes[0]).unwrap();
        assert!((slow.seconds - 10.0 * 4e-2).abs() < 1e-9, "{slow:?}");
    }

    #[test]
    fn other_devices_are_not_predicted_and_training_takes_three_times_as_long() {
        let all = rates(vec![(Dtype::F32, 1e11)]);
        let elsewhere = config("cuda", "inference");
        assert_eq!(all.predict(&elsewhere, &elsewhere.models[0], &elsewhere.models[0].shapes[0]), None);
        let training = config("cpu", "training");
        let found = all.predict(&training, &training.models[0], &training.models[0].shapes[0]).unwrap();
        assert!((found.seconds - 10.0 * 3.0 * 2e-2).abs() < 1e-9, "{found:?}");
    }
}
