//! The parts of a compiled program.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpSpan;
use warpforge_fusion::{Graph as Nodes, NodeId};
use warpforge_runtime::memory_plan::MemoryPlan;
use warpforge_runtime::{Program, Source};

use crate::collectives::CollectiveCall;
use crate::dnn::DnnLibrary;
use crate::driver::{Buffer, Gpu, Stream};
use crate::ranks::RankGroup;
use crate::salt::SaltBuffers;
use crate::steps::{DeviceLayout, PlannedStep};

/// The parts of a compiled program.
pub(crate) struct CompiledProgram {
    pub(crate) program: Program,
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) stream: Stream,
    pub(crate) dnn: Option<DnnLibrary>,
    pub(crate) nodes: Nodes,
    /// The graph nodes of each operation, where operations keep their own nodes.
    pub(crate) marks: Option<Vec<OpSpan>>,
    pub(crate) plan: MemoryPlan,
    /// The step of each cluster of the plan.
    pub(crate) step_of_cluster: Vec<usize>,
    /// Values that are computed once, before the first run, and that runs read.
    pub(crate) hoisted: Vec<NodeId>,
    /// The results that runs give.
    pub(crate) outputs: Vec<Operand>,
    /// Where the arguments of the graph come from.
    pub(crate) sources: Vec<Source>,
    pub(crate) layout: DeviceLayout,
    /// Buffers that steps refer to by address.
    pub(crate) memory: Vec<Arc<Buffer>>,
    pub(crate) inputs: Vec<Buffer>,
    pub(crate) output_buffers: Vec<Buffer>,
    pub(crate) steps: Vec<PlannedStep>,
    pub(crate) salt_buffers: SaltBuffers,
    /// Collective calls, in order.
    pub(crate) collective_calls: Vec<CollectiveCall>,
    /// The device among those of other ranks, where the program has calls between them.
    pub(crate) ranks: Option<RankGroup>,
}
