//! Kernels with what profiles and the observable tier say of them.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Instant;

use warpforge_fusion::cluster::{Cluster, Clusters, Contraction, Kind};
use warpforge_fusion::{Graph, NodeId};
use warpforge_ir::OpId;
use warpforge_ir::nodes::Nodes;
use warpforge_runtime::profile::{self, Event};
use warpforge_tensor::{ElementType, FloatType};

use crate::kernel::{self, CompileContext, Kernel, KernelError};
use crate::sampling::sampling_interval;

/// A kernel and its costs as profiles report them.
pub(crate) struct KernelLaunch {
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) flops: u64,
    pub(crate) bytes: u64,
    /// The arithmetic type of its operations.
    pub(crate) arithmetic: &'static str,
    /// The values that it writes, and the interval at which the observable tier samples them.
    pub(crate) values: Vec<NodeId>,
    pub(crate) sampling_interval: usize,
    /// The addresses that each worker reads first, where they are known.
    pub(crate) first_reads: Vec<Range<usize>>,
    /// The operations of the module that it computes.
    pub(crate) ops: Vec<OpId>,
    /// The nodes and source lines that it comes from, as profiles say them.
    pub(crate) provenance: Vec<(&'static str, String)>,
}

impl KernelLaunch {
    /// Creates the kernel of a cluster.
    pub(crate) fn new(
        context: &CompileContext<'_>,
        nodes: &Nodes,
        cluster: &Cluster,
    ) -> Result<Self, KernelError> {
        let graph = context.graph;
        let cost = cluster.cost(graph);
        let kernel = kernel::kernel(context, cluster)?;
        let values: Vec<NodeId> = cluster.results().into_iter().flat_map(|id| graph.results(id)).collect();
        let given = values.iter().map(|&id| graph.node(id).bytes()).sum();
        let ops = graph.origins(&cluster.nodes);
        let first_reads = kernel.first_reads(context.pool.threads());
        Ok(Self {
            kernel,
            flops: cost.flops,
            bytes: cost.bytes,
            arithmetic: arithmetic(graph, cluster),
            values,
            sampling_interval: sampling_interval(cost.flops, cost.bytes, given),
            first_reads,
            provenance: profile::provenance(nodes, &ops),
            ops,
        })
    }

    /// What a profile says of a launch that began then and has just ended.
    pub(crate) fn event(&self, origin: Instant, begun: Instant) -> Event {
        let duration = begun.elapsed();
        let seconds = duration.as_secs_f64().max(1e-9);
        let mut details = vec![
            ("flop", self.flops.to_string()),
            ("bytes", self.bytes.to_string()),
            ("arithmetic", self.arithmetic.to_owned()),
            ("gflop_per_s", format!("{:.2}", self.flops as f64 / seconds / 1e9)),
            ("gb_per_s", format!("{:.2}", self.bytes as f64 / seconds / 1e9)),
            ("on", if self.kernel.is_reference() { "reference" } else { "kernel" }.to_owned()),
        ];
        details.extend(self.provenance.iter().cloned());
        Event {
            name: self.kernel.name(),
            category: "kernel",
            track: 0,
            start: begun.duration_since(origin),
            duration,
            details,
        }
    }
}

/// What a profile says of a copy of state.
pub(crate) fn copy_event(bytes: usize, origin: Instant, begun: Instant) -> Event {
    Event {
        name: "copy of state".to_owned(),
        category: "kernel",
        track: 0,
        start: begun.duration_since(origin),
        duration: begun.elapsed(),
        details: vec![("bytes", (2 * bytes).to_string())],
    }
}

/// Constants of which every cluster that reads them has a packed copy.
pub(crate) fn replaced(clusters: &Clusters, launches: &[KernelLaunch]) -> HashSet<NodeId> {
    let copies = launches.iter().filter_map(|launch| launch.kernel.replaces()).collect::<HashSet<NodeId>>();
    let mut read: HashSet<NodeId> = clusters.outputs.iter().map(|output| output.value).collect();
    for (cluster, launch) in clusters.clusters.iter().zip(launches) {
        read.extend(cluster.reads().into_iter().filter(|id| launch.kernel.replaces() != Some(*id)));
    }
    copies.difference(&read).copied().collect()
}

/// The arithmetic type of a cluster, as peak rates of processors are named.
fn arithmetic(graph: &Graph, cluster: &Cluster) -> &'static str {
    let multiplied = |contraction: &Contraction| graph.node(contraction.node).inputs[0];
    let (node, is_contraction) = match &cluster.kind {
        Kind::Dot(contraction) | Kind::Conv(contraction) => (multiplied(contraction), true),
        Kind::Attention(attention) => (multiplied(&attention.scores), true),
        Kind::AttentionGradient(gradient) => (multiplied(&gradient.scores), true),
        Kind::Loop(_) | Kind::Unfused(_) | Kind::Library(..) => (cluster.output, false),
    };
    match graph.node(node).element {
        ElementType::Float(FloatType::F64) => "f64",
        ElementType::Float(FloatType::Bf16) if is_contraction => "bf16",
        ElementType::Int(_) if is_contraction => "int8",
        _ => "f32",
    }
}
