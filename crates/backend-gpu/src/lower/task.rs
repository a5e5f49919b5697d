//! Tasks: clusters with their lowering.

use std::collections::HashSet;
use std::sync::Arc;

use warpforge_codegen::{Emitted, Kernel, Options, emit_in_place};
use warpforge_fusion::cluster::{Cluster, Kind, Operand};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_runtime::memory_plan::{Allocation, MemoryPlan};
use warpforge_runtime::{Precision, Tier};

use super::call::{AttentionCall, ConvCall, GemmCall};
use crate::blas::Blas;
use crate::collectives::{BucketCall, Collective};
use crate::process_group::{GridId, ProcessGroup};
use crate::vendor::Vendor;

/// The lowering of a cluster.
pub(crate) enum Lowering {
    /// Generated kernels.
    Emitted(Emitted),
    /// A BLAS call.
    Gemm(Box<GemmCall>),
    /// A DNN library call.
    Convolution(Box<ConvCall>),
    /// A cuDNN attention call.
    Attention(Box<AttentionCall>),
    /// A collective.
    Collective(Arc<Collective>),
    /// A part of an all-reduce between ranks.
    Bucket(BucketCall),
    /// A grid of processes on several devices.
    Grid(GridId),
    /// The reference on the host, with the reason where one is known.
    Host(Option<String>),
}

/// A cluster and its lowering.
pub(crate) struct Task {
    pub(crate) cluster: Cluster,
    pub(crate) lowering: Lowering,
    /// The query that fails if a library refuses this task.
    pub(crate) query: LibraryQuery,
    /// Whether it runs each time though it depends on constants alone: its result would take more memory than they do.
    pub(crate) every_run: bool,
}

/// What a library is asked to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LibraryQuery {
    /// The cluster with this output.
    Cluster(NodeId),
    /// Optional work besides the cluster, by its output.
    Extra(NodeId),
}

impl Task {
    pub(super) fn new(cluster: Cluster, lowering: Lowering) -> Self {
        Self { query: LibraryQuery::Cluster(cluster.output), cluster, lowering, every_run: false }
    }

    /// The generated kernels of a task.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let emitted = match &self.lowering {
            Lowering::Emitted(emitted) => Some(emitted),
            _ => None,
        };
        emitted.into_iter().flat_map(|emitted| &emitted.kernels)
    }

    /// Whether the task may write its result over a value that it reads: one generated kernel, each of whose threads reads the elements
    /// that it writes and no others.
    pub(crate) fn updates_in_place(&self, graph: &Graph, value: NodeId) -> bool {
        let Lowering::Emitted(emitted) = &self.lowering else { return false };
        let alone = emitted.kernels.len() == 1 && emitted.scratch.is_empty();
        match (&self.cluster.kind, &graph.node(self.cluster.output).op) {
            (Kind::Loop(_), _) => alone && self.cluster.is_elementwise_update(graph, value),
            (Kind::Unfused(operands), Op::DynamicUpdateSlice) => {
                let reads = |operand: &Operand| operand.value == value;
                alone && operands.first().is_some_and(reads) && !operands.iter().skip(1).any(reads)
            }
            _ => false,
        }
    }

    /// Takes kernels for a result that lies over a value which is read: those made for it, or those that do not tell the compiler that
    /// both are apart.
    pub(crate) fn allow_aliases(&mut self, graph: &Graph, plan: &MemoryPlan, options: &Options) {
        let results = self.cluster.results();
        let places: Vec<Allocation> = results
            .into_iter()
            .flat_map(|id| graph.results(id))
            .filter_map(|id| plan.allocations.get(&id))
            .filter(|place| matches!(place, Allocation::Argument(_)))
            .copied()
            .collect();
        let over = |read: &NodeId| plan.allocations.get(read).is_some_and(|place| places.contains(place));
        let overwritten: Vec<NodeId> = self.cluster.reads().into_iter().filter(over).collect();
        let Lowering::Emitted(emitted) = &mut self.lowering else { return };
        if overwritten.is_empty() {
            return;
        }
        if let Ok(own) = emit_in_place(graph, &self.cluster, options) {
            *emitted = own;
            return;
        }
        for kernel in &mut emitted.kernels {
            *kernel = overwritten.iter().fold(kernel.clone(), |kernel, &read| kernel.with_aliased(read));
        }
    }
}

/// Options and available libraries.
pub(crate) struct LoweringContext<'a> {
    pub(crate) tier: Tier,
    pub(crate) precision: Precision,
    /// Whether the program updates state.
    pub(crate) has_state: bool,
    pub(crate) options: &'a Options,
    /// The BLAS, if available.
    pub(crate) blas: Option<&'a Blas>,
    /// The vendor of the DNN library, if available.
    pub(crate) dnn: Option<Vendor>,
    /// Collectives and process grids.
    pub(crate) group: &'a ProcessGroup,
    /// Queries that a library refused.
    pub(crate) refused: &'a HashSet<LibraryQuery>,
}
