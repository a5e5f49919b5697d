//! What a run says about itself.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use warpforge::summary::{Summary, summarise};
use warpforge::{ArgumentRole, CompiledModel, Outputs, Tensor, Tier, memory};
use warpforge_golden::op_by_op::Compared;
use warpforge_measure::stats::{self, Outliers};
use warpforge_runtime::Executable;

use super::kernels::{Kernel, kernels};
use super::state::StateRecord;

/// The record of `warpt run --json`.
#[derive(Debug, Serialize)]
pub(super) struct Record {
    pub(super) model: String,
    pub(super) format: String,
    pub(super) entry: String,
    pub(super) device: String,
    pub(super) tier: String,
    pub(super) backend: &'static str,
    pub(super) precision: String,
    /// Host threads that a run uses.
    pub(super) threads: usize,
    /// Reading and verifying the file.
    pub(super) load_ms: f64,
    pub(super) compile_ms: f64,
    /// When the runs began.
    pub(super) start_time: Timestamp,
    /// When they ended.
    pub(super) end_time: Timestamp,
    /// Untimed runs before the others.
    pub(super) warmup_runs: usize,
    pub(super) runs: usize,
    pub(super) median_ms: Option<f64>,
    /// The 95 % interval of the median, by bootstrap; null for fewer than six runs, which have none.
    pub(super) ci_low_ms: Option<f64>,
    pub(super) ci_high_ms: Option<f64>,
    /// The median absolute deviation from the median.
    pub(super) mad_ms: Option<f64>,
    pub(super) min_ms: Option<f64>,
    pub(super) max_ms: Option<f64>,
    pub(super) mean_ms: Option<f64>,
    /// Runs far from the rest; they stay in every figure above.
    pub(super) outliers: Outliers,
    /// Every run, in order.
    pub(super) times_ms: Vec<f64>,
    pub(super) peak_memory_bytes: Option<u64>,
    /// What the peak is of: `executable` where the backend counts, else the whole `process`.
    pub(super) peak_memory_of: &'static str,
    /// Kernels that a run launches on its device; null where nobody counts.
    pub(super) kernel_launches: Option<u64>,
    /// Bytes that those kernels read and write.
    pub(super) bytes_moved: Option<u64>,
    /// The most memory of the device that the program holds.
    pub(super) device_memory_peak_bytes: Option<u64>,
    /// What fell back to the reference interpreter.
    pub(super) fallbacks: Vec<String>,
    /// In the observable tier: what each kernel of the last run took, and what its values were like.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) kernels: Vec<Kernel>,
    /// With `--compare`: the operations beside the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compared: Option<Compared>,
    /// With `--state`: the state and the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<StateRecord>,
    pub(super) inputs: Vec<Value>,
    pub(super) outputs: Vec<Value>,
}

/// An input or an output.
#[derive(Debug, Serialize)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) role: &'static str,
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) shape: Vec<usize>,
    #[serde(flatten)]
    pub(super) summary: Summary,
}

impl Value {
    fn new(name: &str, role: &'static str, tensor: &Tensor) -> Self {
        Self {
            name: name.to_owned(),
            role,
            ty: tensor.element_type().to_string(),
            shape: tensor.dims().to_vec(),
            summary: summarise(tensor),
        }
    }
}

impl Record {
    pub(super) fn new(
        path: &Path,
        compiled: &CompiledModel,
        executable: &dyn Executable,
        inputs: &[Tensor],
        outputs: &Outputs,
    ) -> Self {
        let (model, target) = (compiled.model(), compiled.target());
        let counted = executable.peak_memory_bytes();
        let counters = executable.counters();
        let slots = compiled.inputs();
        Self {
            model: warpforge::shown(path),
            format: model.format().to_string(),
            entry: model.entry().to_owned(),
            device: target.device.to_string(),
            tier: target.tier.to_string(),
            backend: compiled.backend(),
            precision: target.precision.to_string(),
            threads: executable.threads(),
            load_ms: 0.0,
            compile_ms: 0.0,
            start_time: Timestamp::UNIX_EPOCH,
            end_time: Timestamp::UNIX_EPOCH,
            warmup_runs: 0,
            runs: 0,
            median_ms: None,
            ci_low_ms: None,
            ci_high_ms: None,
            mad_ms: None,
            min_ms: None,
            max_ms: None,
            mean_ms: None,
            outliers: Outliers::default(),
            times_ms: Vec::new(),
            peak_memory_bytes: counted.or_else(memory::process_peak_bytes),
            peak_memory_of: if counted.is_some() { "executable" } else { "process" },
            kernel_launches: counters.map(|counters| counters.kernel_launches),
            bytes_moved: counters.map(|counters| counters.bytes_moved),
            device_memory_peak_bytes: counters.and(counted),
            fallbacks: executable.fallbacks().iter().map(ToString::to_string).collect(),
            kernels: match target.tier {
                Tier::Observable => kernels(outputs.profile()),
                _ => Vec::new(),
            },
            compared: None,
            state: None,
            inputs: slots
                .iter()
                .zip(inputs)
                .map(|(slot, tensor)| Value::new(slot.name, slot.role.word(), tensor))
                .collect(),
            outputs: compiled
                .results()
                .zip(outputs.iter())
                .map(|(result, (name, tensor))| Value::new(name, result.role.word(), tensor))
                .collect(),
        }
    }

    /// How many items a run computes: the leading dimension of the first input that has one.
    pub(super) fn items(&self) -> usize {
        self.given().find_map(|input| input.shape.first().copied()).unwrap_or(1)
    }

    /// The inputs with their shapes: `x=8x128 mask=8`.
    pub(super) fn input_shapes(&self) -> String {
        let shape = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        let inputs = self.given().map(|input| format!("{}={}", input.name, shape(&input.shape)));
        inputs.collect::<Vec<_>>().join(" ")
    }

    /// The inputs that are no weights.
    fn given(&self) -> impl Iterator<Item = &Value> {
        self.inputs.iter().filter(|input| input.role == ArgumentRole::Input.word())
    }

    /// The record with what came of its operations.
    pub(super) fn with_comparison(mut self, compared: Option<Compared>) -> Self {
        self.compared = compared;
        self
    }

    /// The record with its state.
    pub(super) fn with_state(mut self, state: StateRecord) -> Self {
        self.state = Some(state);
        self
    }

    /// The record with when it was made, and how many runs came before.
    pub(super) fn with_start(mut self, start: Timestamp, warmup_runs: usize) -> Self {
        (self.start_time, self.end_time, self.warmup_runs) = (start, Timestamp::now(), warmup_runs);
        self
    }

    /// The record with its times.
    pub(super) fn with_times(mut self, load: Duration, compile: Duration, times: &[Duration]) -> Self {
        self.load_ms = milliseconds(load);
        self.compile_ms = milliseconds(compile);
        self.times_ms = times.iter().copied().map(milliseconds).collect();
        self.runs = times.len();
        if let Some(summary) = stats::Summary::of_rounds(std::slice::from_ref(&self.times_ms)) {
            self.median_ms = Some(summary.value);
            let spread = &summary.spread;
            let interval = spread.interval();
            self.ci_low_ms = interval.map(|interval| interval.low);
            self.ci_high_ms = interval.map(|interval| interval.high);
            if self.runs > 1 {
                self.mad_ms = Some(spread.mad);
                self.outliers = spread.outliers;
            }
            self.min_ms = Some(spread.min);
            self.max_ms = Some(spread.max);
            self.mean_ms = Some(spread.mean);
        }
        self
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
