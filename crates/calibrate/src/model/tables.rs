//! The tables of the cost model, from a profile.

use std::collections::HashMap;

use super::CostModel;
use super::cold::Stalls;
use super::limits::Limits;
use super::work::{Class, conv_class, conv_features, conv_flops, gather_features, octaves, width};
use crate::profile::{Operation, Profile};

/// The least part of a contraction's time that is arithmetic.
const LEAST_ARITHMETIC: f64 = 0.2;

/// The cost model of a device.
pub(super) fn model(profile: &Profile, device: &str) -> CostModel {
    let threads = usual_threads(profile, device);
    let overhead = |names: [&str; 2]| {
        let own = profile.overheads.iter().filter(|known| known.device == device && known.threads == threads);
        own.filter(|known| names.contains(&known.what.as_str())).map(|known| known.us / 1e6).reduce(f64::max)
    };
    let run = overhead(["run", "graph launch"]).unwrap_or(0.0);
    let kernel = overhead(["kernel", "kernel launch"]).unwrap_or(0.0);
    let limits = Limits::new(profile, device, threads);
    let mut made = CostModel {
        device: device.to_owned(),
        threads,
        rates: HashMap::new(),
        stalls: Stalls::new(profile, device, threads, &limits),
        limits,
        limits_of_threads: thread_counts(profile, device)
            .map(|threads| (threads, Limits::new(profile, device, threads)))
            .collect(),
        run,
        kernel,
        cheap: 0.0,
        approximate: 0.0,
        tf32: false,
        fusions: profile
            .fusion_profiles
            .iter()
            .filter(|fusion| fusion.device == device && fusion.threads == threads)
            .cloned()
            .collect(),
    };
    let own = |operation: &&Operation| operation.device == device && operation.threads == threads;
    for operation in profile.operations.iter().filter(own) {
        made.add(&operation.op, &operation.dtype, &operation.shape, operation.ms, operation.bytes);
    }
    for fusion in made.fusions.clone() {
        if ["FullAttention", "QK^T"].contains(&fusion.fusion_pattern.as_str()) {
            let (name, bytes) = (&fusion.fusion_pattern, fusion.fused_bytes);
            made.add(name, &fusion.dtype, &fusion.input_shape, fusion.fused_latency_ms, bytes);
        }
    }
    (made.cheap, made.approximate) = functions(profile, device, threads, run);
    made
}

/// The numbers of threads that both peaks and bandwidth were measured with.
fn thread_counts<'p>(profile: &'p Profile, device: &'p str) -> impl Iterator<Item = usize> + 'p {
    let moves = move |threads: usize| {
        profile.bandwidth.iter().any(|found| found.device == device && found.threads == threads)
    };
    let peaks = profile.peaks.iter().filter(move |peak| peak.device == device);
    peaks.map(|peak| peak.threads).filter(move |&threads| moves(threads))
}

/// The number of threads that most operations were measured with.
fn usual_threads(profile: &Profile, device: &str) -> usize {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for operation in profile.operations.iter().filter(|operation| operation.device == device) {
        *counts.entry(operation.threads).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|&(threads, count)| (count, threads));
    let any = profile.peaks.iter().filter(|peak| peak.device == device).map(|peak| peak.threads).max();
    most.map(|(threads, _)| threads).or(any).unwrap_or(1)
}

impl CostModel {
    /// Adds what was measured to the table of its class.
    fn add(&mut self, op: &str, dtype: &str, shape: &[usize], ms: f64, bytes: u64) {
        // What begins a run is no part of the kernel; a tenth is left where the clock is too coarse to say.
        let whole = ms / 1e3;
        let seconds = (whole - self.run).max(whole * 0.1);
        let streamed = (seconds - self.kernel).max(seconds * 0.1);
        let product = |at: &[usize]| at.iter().map(|&at| shape[at] as f64).product::<f64>();
        let by_bytes = |class| (class, dtype, octaves_of_bytes(bytes), bytes as f64 / streamed);
        let gathered = |run| (Class::Gather, "f32", gather_features(bytes, run), bytes as f64 / streamed);
        let (class, dtype, features, rate) = match (op, shape) {
            ("linear", &[m, k, n]) => {
                let seconds = self.without_weights(seconds, dtype, m, k * n);
                (Class::Matmul, dtype, octaves(&[m, k, n]), 2.0 * product(&[0, 1, 2]) / seconds)
            }
            ("conv2d", &[batch, channels, side, _, outputs, window, stride, groups]) => {
                let out = (side + 2 * (window / 2) - window) / stride + 1;
                let (pixels, own) = (batch * out * out, channels / groups);
                let flops = conv_flops(pixels * window * window, own, outputs, groups);
                let seconds = self.without_weights(seconds, dtype, pixels, outputs * window * window * own);
                let (class, channels, outputs) = conv_class(own, outputs, groups);
                let features = conv_features(channels, outputs, pixels, window * window, stride);
                (class, dtype, features, flops / seconds)
            }
            ("FullAttention", &[batch, heads, queries, width] | &[batch, heads, queries, _, width]) => {
                let keys = shape[shape.len() - 2];
                let features = octaves(&[batch * heads, queries, keys, width]);
                let flops = 4.0 * (batch * heads * queries * keys * width) as f64;
                (Class::Attention, dtype, features, flops / seconds)
            }
            ("QK^T", &[batch, heads, sequence, width]) => {
                let features = octaves(&[batch * heads, sequence, sequence, width]);
                let flops = 2.0 * (batch * heads * sequence * sequence * width) as f64;
                (Class::Batched, dtype, features, flops / seconds)
            }
            ("add", _) => by_bytes(Class::Elementwise),
            ("layer_norm", _) => by_bytes(Class::RowWise),
            ("column_sum", _) => by_bytes(Class::Across),
            ("softmax", _) => by_bytes(Class::Softmax),
            ("transpose", _) => by_bytes(Class::Transpose),
            ("concatenate", _) => by_bytes(Class::Concatenate),
            ("gather", &[_, columns]) => gathered(4 * columns),
            ("gather_elements", _) => gathered(4),
            ("max_pool", _) => by_bytes(Class::Pool),
            _ => return,
        };
        self.rates.entry((class, dtype.to_owned())).or_default().add(features, rate);
    }
}

impl CostModel {
    /// The time of a contraction without what reading its own weights again and again adds to it.
    fn without_weights(&self, seconds: f64, dtype: &str, rows: usize, weights: usize) -> f64 {
        let bytes = (weights * width(dtype)) as u64;
        let read = bytes as f64 / self.limits.read_bandwidth(bytes);
        let part = self.stalls.part(dtype, rows).unwrap_or(0.0);
        (seconds - part * read).max(LEAST_ARITHMETIC * seconds)
    }
}

fn octaves_of_bytes(bytes: u64) -> Vec<f64> {
    vec![(bytes.max(1) as f64).log2()]
}

/// Seconds of a cheap function and of an approximation on an element, from loops that do many on few bytes: the fastest size counts,
/// where neither the beginning nor the memory does.
fn functions(profile: &Profile, device: &str, threads: usize, run: f64) -> (f64, f64) {
    let least = |op: &str, per_element: f64| {
        let own = |operation: &&Operation| {
            operation.op == op
                && operation.dtype == "f32"
                && operation.device == device
                && operation.threads == threads
        };
        let each = |operation: &Operation| {
            let elements = operation.shape.iter().product::<usize>().max(1) as f64;
            (operation.ms / 1e3 - run).max(0.0) / elements / per_element
        };
        profile.operations.iter().filter(own).map(each).filter(|&time| time > 0.0).reduce(f64::min)
    };
    (least("polynomial", 12.0).unwrap_or(0.0), least("gelu", 1.0).unwrap_or(0.0))
}
