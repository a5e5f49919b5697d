//! Predictions of kernels and whole models from a profile.
//!
//! A kernel takes its overhead, its operations at the rate that the sweep measured for such a kernel of such a size, and the part of
//! the time of reading its weights that the arithmetic does not hide. Rates come from the sweep and not from peaks: algorithms need
//! fewer operations than are counted, and kernels reach other parts of the peak in other sizes.

mod cold;
mod decisions;
mod estimate;
mod limits;
mod rates;
mod tables;
mod work;

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use warpforge::{Plan, Precision};
use warpforge_fusion::cluster::Cluster;
use warpforge_fusion::{Graph, NodeId};
use warpforge_tensor::ElementType;

use cold::Stalls;
pub use limits::Bound;
use limits::Limits;
use rates::Rates;
use work::{Class, Work, work};

use crate::profile::{FusionProfile, Profile, ProfileError};

/// What a kernel is predicted to take, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Milliseconds.
    pub ms: f64,
    /// What bounds it.
    pub bound: Bound,
    /// Octaves to the nearest size of the sweep; null where no kernel of the kind was measured.
    pub distance: Option<f64>,
}

/// Predicts kernels on one device.
#[derive(Debug, Clone)]
pub struct CostModel {
    device: String,
    threads: usize,
    rates: HashMap<(Class, String), Rates>,
    limits: Limits,
    /// Those of each number of host threads that was measured.
    limits_of_threads: HashMap<usize, Limits>,
    stalls: Stalls,
    /// Seconds to begin a run and to begin a kernel.
    run: f64,
    kernel: f64,
    /// Seconds of a cheap function and of an approximation, on one element that is at hand.
    cheap: f64,
    approximate: f64,
    /// Whether contractions of f32 are computed in tf32, which no graph says.
    tf32: bool,
    /// What fusion was worth.
    fusions: Vec<FusionProfile>,
}

impl CostModel {
    /// The model of a device, with as many host threads as the profile has most figures for.
    ///
    /// # Errors
    ///
    /// When the profile is not complete, or has nothing about the device.
    pub fn new(profile: &Profile, device: &str, origin: &str) -> Result<Self, ProfileError> {
        if !profile.complete {
            return Err(ProfileError::Incomplete { origin: origin.to_owned() });
        }
        let devices = profile.devices();
        if !devices.iter().any(|known| known == device) {
            return Err(ProfileError::NoDevice {
                origin: origin.to_owned(),
                device: device.to_owned(),
                devices,
            });
        }
        Ok(tables::model(profile, device))
    }

    /// The same model for contractions in a precision.
    #[must_use]
    pub fn in_precision(mut self, precision: Precision) -> Self {
        self.tf32 = precision == Precision::Tf32;
        self
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The host threads that its figures are of.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What bounds work of so many operations and bytes on so many host threads, and the seconds that it takes at the least; nothing
    /// where the limits of so many were not measured. A GPU has the same limits for any number.
    #[must_use]
    pub fn bound(&self, threads: usize, dtype: &str, flops: u64, bytes: u64) -> Option<(Bound, f64)> {
        let on_cpu = self.device == "cpu";
        let limits = if on_cpu { self.limits_of_threads.get(&threads)? } else { &self.limits };
        Some(limits.bound(dtype, flops as f64, bytes as f64, self.kernel))
    }

    /// What each kernel of a plan computes in, by its operations and bytes.
    #[must_use]
    pub fn arithmetic(&self, plan: &Plan) -> HashMap<(u64, u64), &'static str> {
        let works = plan.clusters.clusters.iter().map(|cluster| self.work(&plan.graph, cluster));
        works.map(|work| ((work.flops, work.bytes), work.dtype)).collect()
    }

    /// A whole model: milliseconds, and those of each kernel.
    #[must_use]
    pub fn model(&self, plan: &Plan) -> (f64, Vec<Prediction>) {
        self.in_order(&plan.graph, &plan.clusters.clusters)
    }

    /// Kernels one after the other: milliseconds of a run, and those of each.
    fn in_order(&self, graph: &Graph, clusters: &[Cluster]) -> (f64, Vec<Prediction>) {
        let works: Vec<Work> = clusters.iter().map(|cluster| self.work(graph, cluster)).collect();
        let weights = works.iter().map(|work| work.weight_bytes).sum();
        let kernels: Vec<Prediction> = handovers(graph, clusters, &works)
            .iter()
            .zip(&works)
            .zip(self.computed_once(graph, clusters))
            .map(|((handover, work), once)| match once {
                true => Prediction { ms: 0.0, bound: Bound::Overhead, distance: Some(0.0) },
                false => self.of(work, weights, handover),
            })
            .collect();
        (self.run * 1e3 + kernels.iter().map(|kernel| kernel.ms).sum::<f64>(), kernels)
    }

    /// Whether each cluster depends on constants alone: GPUs compute it before the first run.
    fn computed_once(&self, graph: &Graph, clusters: &[Cluster]) -> Vec<bool> {
        let mut known: HashSet<NodeId> = HashSet::new();
        let is_once = |cluster: &Cluster| {
            let is_known = |id: &NodeId| known.contains(id) || graph.constant(*id).is_some();
            let once = self.device != "cpu" && cluster.reads().iter().all(is_known);
            if once {
                known.extend(cluster.results());
            }
            once
        };
        clusters.iter().map(is_once).collect()
    }

    /// What the kernel of a cluster does on this device.
    fn work(&self, graph: &Graph, cluster: &Cluster) -> Work {
        let mut work = work(graph, cluster);
        let wide = graph.node(cluster.output).element == ElementType::F32;
        let narrow = ["bf16", "f16"].contains(&work.dtype);
        // Convolutions of 16 bits were measured with results of 16 bits; those with results of f32 take the time of tf32.
        let widened = wide
            && narrow
            && matches!(work.class, Class::Conv | Class::Grouped)
            && self.rates.contains_key(&(work.class, "tf32".to_owned()));
        if widened || self.tf32 && work.dtype == "f32" && work.contraction_flops > 0.0 {
            work.dtype = "tf32";
        }
        work
    }

    /// Work in a model with so many bytes of weights, whose operands earlier kernels wrote.
    fn of(&self, work: &Work, model_weights: u64, handover: &Handover) -> Prediction {
        let (bound, least) = self.limits.bound(work.dtype, work.flops as f64, work.bytes as f64, self.kernel);
        let (seconds, distance) = match self.measured(work, handover.reach) {
            Some((seconds, distance)) => (seconds, Some(distance)),
            None => (least, None),
        };
        // A run reads all weights before it comes round to the same ones.
        let weights = work.weight_bytes as f64 / self.limits.read_bandwidth(model_weights);
        let seconds = match self.stalls.part(work.dtype, work.rows) {
            Some(part) => seconds + part * weights,
            None => seconds.max(weights),
        };
        let exchanged = handover.operands.iter().map(|&(bytes, ago)| self.limits.exchange(bytes, ago));
        let seconds = seconds.max(self.kernel) + exchanged.sum::<f64>();
        Prediction { ms: seconds * 1e3, bound, distance }
    }

    /// Seconds by the rates of the sweep, and how far it is.
    fn measured(&self, work: &Work, reach: u64) -> Option<(f64, f64)> {
        let dtype = match work.class {
            Class::Matmul
            | Class::Batched
            | Class::Conv
            | Class::Grouped
            | Class::Depthwise
            | Class::Attention => work.dtype,
            _ => work.stored,
        };
        let of = |class, dtype: &str| self.rates.get(&(class, dtype.to_owned()));
        let rates = of(work.class, dtype).or_else(|| match work.class {
            Class::Matmul
            | Class::Batched
            | Class::Conv
            | Class::Grouped
            | Class::Depthwise
            | Class::Attention => None,
            // Profiles of before sums across rows were measured.
            Class::Across => of(Class::Across, "f32").or_else(|| of(Class::RowWise, "f32")),
            class => of(class, "f32"),
        });
        match (work.class, rates) {
            (
                Class::Matmul
                | Class::Batched
                | Class::Conv
                | Class::Grouped
                | Class::Depthwise
                | Class::Attention,
                Some(rates),
            ) => {
                let seconds = work.contraction_flops / self.contraction_rate(rates, &work.features, dtype)?;
                let loads = work.epilogue_bytes / self.limits.bandwidth(work.bytes);
                let epilogue = self.functions(work).max(loads);
                Some((seconds + epilogue, rates.distance(&work.features)))
            }
            (Class::Batched, None) => {
                let [batch, m, n, k] = work.features[..] else { return None };
                let rates = self.rates.get(&(Class::Matmul, dtype.to_owned()))?;
                let features = [m + batch, k, n];
                let seconds = work.contraction_flops / self.contraction_rate(rates, &features, dtype)?;
                Some((seconds + self.functions(work), rates.distance(&features)))
            }
            (_, Some(rates)) => {
                let memory = work.bytes as f64 / rates.at(&work.features_within(reach))?;
                let functions = if work.class == Class::Softmax { 0.0 } else { self.functions(work) };
                Some((self.kernel + memory.max(functions), rates.distance(&work.features)))
            }
            (_, None) => None,
        }
    }

    /// Operations a second of a contraction in a type.
    fn contraction_rate(&self, rates: &Rates, features: &[f64], dtype: &str) -> Option<f64> {
        match self.limits.peak(dtype) {
            Some(peak) => rates.towards(features, peak),
            None => rates.at(features),
        }
    }

    /// Seconds of the functions of a loop or epilogue on elements that are at hand.
    fn functions(&self, work: &Work) -> f64 {
        work.elements * (work.cheap * self.cheap + work.approximate * self.approximate)
    }
}

/// What a kernel reads of what kernels before it in the run wrote.
struct Handover {
    /// The bytes that were moved since its largest operand was written, its own included: what must fit a cache for the operand to be there
    /// still.
    reach: u64,
    /// The bytes of each operand that a kernel of the run wrote, and those that were moved since.
    operands: Vec<(u64, u64)>,
}

/// What each kernel reads of what those before it wrote.
fn handovers(graph: &Graph, clusters: &[Cluster], works: &[Work]) -> Vec<Handover> {
    let mut written: HashMap<NodeId, u64> = HashMap::new();
    let mut moved = 0;
    let mut all = Vec::new();
    for (cluster, work) in clusters.iter().zip(works) {
        let mut operands: Vec<NodeId> =
            cluster.reads().into_iter().filter(|&id| graph.constant(id).is_none()).collect();
        operands.sort_unstable();
        operands.dedup();
        let bytes = |id: NodeId| graph.node(id).bytes() as u64;
        let largest = operands.iter().copied().max_by_key(|&id| bytes(id));
        let since = largest.and_then(|id| written.get(&id)).copied().unwrap_or(0);
        let before = moved;
        let own = operands.iter().filter_map(|&id| Some((bytes(id), before - written.get(&id)?)));
        let operands = own.collect();
        moved += work.bytes;
        all.push(Handover { reach: moved - since, operands });
        written.extend(cluster.results().into_iter().map(|id| (id, before)));
    }
    all
}

#[cfg(test)]
mod tests;
