//! The profile of a machine: what `warpt calibrate` writes and everything else reads.

mod file;
mod validate;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use warpforge_inventory::live::Conditions;

#[cfg(test)]
pub(crate) mod testing;

pub use file::{ProfileError, read, read_str, write};

use crate::verdict::Verdict;

/// The version of the schema. A reader refuses a newer one.
pub const SCHEMA_VERSION: u32 = 1;

/// What a machine was measured to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The version of this schema.
    pub schema_version: u32,
    /// The version of the program that measured.
    pub tool_version: String,
    /// When the measurement began.
    pub created: Timestamp,
    /// Whether only the seed's sizes were measured, in one round.
    pub quick: bool,
    /// Whether everything that was asked for was measured; `--resume` goes on where it was not.
    pub complete: bool,
    /// Which machine it is.
    pub machine: Machine,
    /// What else the machine did meanwhile.
    pub conditions: Conditions,
    /// What the user says the machine can do.
    #[serde(default)]
    pub theoretical: Theoretical,
    /// Arithmetic that touches registers only.
    #[serde(default)]
    pub peaks: Vec<Peak>,
    /// Streams through each level of memory.
    #[serde(default)]
    pub bandwidth: Vec<Bandwidth>,
    /// What it costs to begin anything.
    #[serde(default)]
    pub overheads: Vec<Overhead>,
    /// Operations alone.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Linear layers whose weights come from further away than when they run alone.
    #[serde(default)]
    pub cold_weights: Vec<ColdWeights>,
    /// Operations fused, beside the same kernels unfused.
    #[serde(default)]
    pub fusion_profiles: Vec<FusionProfile>,
    /// How far the figures can be trusted.
    #[serde(default)]
    pub self_check: SelfCheck,
}

/// What makes a machine that machine, as far as speed goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// A hash of everything below but the name.
    pub fingerprint: String,
    /// What the user calls it, or the name of the processor or GPU.
    pub hardware_name: String,
    /// The processor's model.
    pub cpu: String,
    /// Its instruction sets.
    pub isa: Vec<String>,
    /// Its caches, such as `L2 2048 KiB x2`.
    pub caches: Vec<String>,
    /// Threads that this process may use.
    pub threads: u32,
    /// The GPU that was measured.
    #[serde(default)]
    pub gpu: Option<String>,
    /// The version of its driver.
    #[serde(default)]
    pub driver: Option<String>,
}

/// What the maker says that the machine can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Theoretical {
    /// Operations a second, in units of 10^9.
    #[serde(default)]
    pub peak_gflops: Option<f64>,
    /// Bytes a second, in units of 10^9.
    #[serde(default)]
    pub peak_bandwidth_gbps: Option<f64>,
}

/// For how long a peak was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Ten milliseconds.
    Burst,
    /// Ten seconds or more.
    Sustained,
}

/// A peak rate of arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// The device: `cpu`, `cuda:0`.
    pub device: String,
    /// The element type.
    pub dtype: String,
    /// The instructions, or the units of a GPU: `tensor cores`, `ordinary units`.
    pub isa: String,
    /// Host threads that took part.
    pub threads: usize,
    /// For how long.
    pub mode: Mode,
    /// Operations a second, in units of 10^9; a multiply-add is two.
    pub gops: f64,
    /// The lower end of its 95 % interval.
    pub ci_low: f64,
    /// The upper end.
    pub ci_high: f64,
    /// Power meanwhile, where the machine reports it.
    #[serde(default)]
    pub watts: Option<f64>,
    /// Clock in MHz meanwhile, where the machine reports it.
    #[serde(default)]
    pub clock: Option<f64>,
    /// The pace that the processor was at, in GFLOP/s of f32 in registers, where it was looked at.
    #[serde(default)]
    pub pace: Option<f64>,
}

/// The bandwidth of a level of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// The device.
    pub device: String,
    /// `L1`, `L2`, `L3`, `DRAM`, `HBM`, `PCIe`.
    pub level: String,
    /// `triad`, `read`, `exchange` (of what another thread has just written), `copy`, `host_to_device`, `device_to_host`.
    pub access: String,
    /// `ordinary` or `nontemporal`; `none` where nothing is stored.
    pub stores: String,
    /// Host threads that took part.
    pub threads: usize,
    /// Bytes that one thread goes round in; on a GPU, that the copy moves.
    pub working_set_bytes: u64,
    /// Bytes a second, in units of 10^9.
    pub gbps: f64,
    /// The lower end of its 95 % interval.
    pub ci_low: f64,
    /// The upper end.
    pub ci_high: f64,
    /// The pace that the processor was at, in GFLOP/s of f32 in registers, where it was looked at.
    #[serde(default)]
    pub pace: Option<f64>,
}

/// What it costs to begin something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// The device.
    pub device: String,
    /// `dispatch`, `run`, `kernel launch`, `graph launch`.
    pub what: String,
    /// Host threads that took part.
    pub threads: usize,
    /// Microseconds.
    pub us: f64,
}

/// An operation alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// What it computes: `linear`, `conv2d`, `softmax`, …
    pub op: String,
    /// What contractions multiply in.
    pub dtype: String,
    /// Its sizes, in the order that [`crate::Family`] documents.
    pub shape: Vec<usize>,
    /// The device.
    pub device: String,
    /// Host threads.
    pub threads: usize,
    /// Floating-point operations, as the cost model counts them.
    pub flops: u64,
    /// Bytes, each value once.
    pub bytes: u64,
    /// The median time.
    pub ms: f64,
    /// Its 95 % interval.
    pub ci: [f64; 2],
    /// The part of the roofline that it reached; more than 1 for algorithms that need fewer operations than counted.
    pub efficiency: f64,
}

/// A linear layer whose weights are not in the nearest caches: as many layers run in turn as make all weights this large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColdWeights {
    /// What it multiplies in.
    pub dtype: String,
    /// The device.
    pub device: String,
    /// Host threads.
    pub threads: usize,
    /// Rows, inputs and outputs of each layer.
    pub shape: [usize; 3],
    /// Bytes of the weights of one layer.
    pub weight_bytes: u64,
    /// Bytes of all of them.
    pub working_set_bytes: u64,
    /// The median time of the layer run again and again.
    pub warm_ms: f64,
    /// That of a layer in turn with the others.
    pub cold_ms: f64,
}

/// One round of a pattern: pairs of a fused and an unfused run after one compilation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FusionRound {
    /// The median logarithm of unfused time over fused time, pair by pair.
    pub log_ratio: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Pairs.
    pub samples: usize,
    /// The median time fused.
    pub fused_ms: f64,
    /// The median time unfused.
    pub unfused_ms: f64,
}

/// A pattern, fused and unfused by the same kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FusionProfile {
    /// `Linear_Bias_ReLU`, `Conv2d_BatchNorm`, …
    pub fusion_pattern: String,
    /// The operators that unfused runs one after the other.
    pub operators: Vec<String>,
    /// The sizes.
    pub input_shape: Vec<usize>,
    /// What contractions multiply in.
    pub dtype: String,
    /// The device.
    pub device: String,
    /// Host threads.
    pub threads: usize,
    /// The median time unfused.
    pub unfused_latency_ms: f64,
    /// 10^9 operations a second unfused.
    pub unfused_gflops: f64,
    /// Bytes that the unfused kernels move.
    pub unfused_bytes: u64,
    /// Kernels unfused.
    pub unfused_kernels: usize,
    /// The median time fused.
    pub fused_latency_ms: f64,
    /// 10^9 operations a second fused.
    pub fused_gflops: f64,
    /// Bytes that the fused kernels move.
    pub fused_bytes: u64,
    /// Kernels fused.
    pub fused_kernels: usize,
    /// Unfused time over fused time.
    pub speedup_factor: f64,
    /// Its 95 % interval.
    pub speedup_ci: [f64; 2],
    /// The part of the unfused bytes that fusion saves.
    pub memory_reduction: f64,
    /// The part by which fusion raises the rate.
    pub gflops_improvement: f64,
    /// Floating-point operations.
    pub flops: u64,
    /// What else describes the case: window, channels, stride.
    #[serde(default)]
    pub extra_params: BTreeMap<String, i64>,
    /// Pairs of runs.
    pub num_trials: usize,
    /// What it is worth.
    pub verdict: Verdict,
    /// The rounds that the figures are made of.
    #[serde(default)]
    pub rounds: Vec<FusionRound>,
}

/// How far the figures can be trusted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// `PASS`, or `INCONCLUSIVE` on a machine too noisy to say.
    pub verdict: String,
    /// The same kernel timed again and again during the calibration: milliseconds.
    #[serde(default)]
    pub reference_ms: Vec<f64>,
    /// The largest part by which one of them differs from their median.
    #[serde(default)]
    pub drift: f64,
    /// The median relative half width of all intervals of fusion.
    #[serde(default)]
    pub median_half_width: f64,
    /// Patterns without a verdict, of all.
    #[serde(default)]
    pub inconclusive: usize,
    /// All patterns.
    #[serde(default)]
    pub patterns: usize,
    /// The fastest arithmetic in registers that was seen during the calibration, f32 by all threads: what a run of a model is compared at.
    #[serde(default)]
    pub pace_gflops: Option<f64>,
    /// Measurements that the pace was looked at before and after.
    #[serde(default)]
    pub paced: usize,
    /// Those among them that the machine was slower at.
    #[serde(default)]
    pub disturbed: usize,
    /// What disturbed the measurement, and what to do about it.
    #[serde(default)]
    pub disturbances: Vec<String>,
    /// What could not be measured here, and why.
    #[serde(default)]
    pub skipped: Vec<String>,
    /// Seconds that the calibration took.
    #[serde(default)]
    pub seconds: f64,
}

impl SelfCheck {
    /// Whether the machine is too noisy to say anything.
    #[must_use]
    pub fn is_inconclusive(&self) -> bool {
        self.verdict == "INCONCLUSIVE"
    }
}

impl Profile {
    /// The devices that figures are of, in order.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        let peaks = self.peaks.iter().map(|peak| &peak.device);
        let operations = self.operations.iter().map(|operation| &operation.device);
        let mut devices: Vec<String> = Vec::new();
        for device in peaks.chain(operations).chain(self.bandwidth.iter().map(|found| &found.device)) {
            if !devices.contains(device) {
                devices.push(device.clone());
            }
        }
        devices
    }
}
