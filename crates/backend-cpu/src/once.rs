//! Clusters that depend on constants alone: they run while compiling, and their results are constants of every run.

// Kernels run on the memory of constants and of buffers made here.
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::sync::Weak;

use warpforge_fusion::cluster::Cluster;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::nodes::Nodes;
use warpforge_kernels::buffer::AlignedBuffer;
use warpforge_kernels::pool::Pool;
use warpforge_runtime::CustomCalls;
use warpforge_tensor::{Blob, Shape, Tensor};

use crate::kernel::{self, CompileContext, KernelError, SharedWeights, ValueBuffers};
use crate::launch::KernelLaunch;
use crate::value_memory::{WrittenBuffer, readable};

/// What the clusters are compiled from.
pub(crate) struct Once<'a> {
    pub(crate) graph: &'a Graph,
    /// The clusters, in their order.
    pub(crate) clusters: &'a [Cluster],
    /// The nodes of the traced graph.
    pub(crate) nodes: &'a Nodes,
    pub(crate) pool: &'a Pool,
    pub(crate) calls: &'a CustomCalls,
}

impl Once<'_> {
    /// Computes the clusters and shows each result: the graph, in which the values that are kept are constants.
    ///
    /// # Errors
    ///
    /// When a cluster has no kernel, or its kernel fails.
    pub(crate) fn compute(
        &self,
        kept: &HashSet<NodeId>,
        mut each: impl FnMut(&KernelLaunch, &Tensor) -> Result<(), KernelError>,
    ) -> Result<Graph, KernelError> {
        let mut graph = self.graph.clone();
        let reads = self.clusters.iter().enumerate();
        let last: HashMap<NodeId, usize> =
            reads.flat_map(|(at, cluster)| cluster.reads().into_iter().map(move |id| (id, at))).collect();
        for (at, cluster) in self.clusters.iter().enumerate() {
            // Weights that are packed here are not kept.
            let weights = SharedWeights::default();
            let context = CompileContext {
                graph: &graph,
                pool: self.pool,
                calls: self.calls,
                weights: &weights,
                compile: &|_| Err(KernelError::Unsupported("a branch or loop of constants".to_owned())),
            };
            let launch = KernelLaunch::new(&context, self.nodes, cluster)?;
            let value = run(&context, cluster, &launch)?;
            each(&launch, &value)?;
            drop(launch);
            let node = &mut graph.nodes[cluster.output.index()];
            node.op = Op::Constant(value);
            node.inputs.clear();
            for id in cluster.reads().into_iter().chain([cluster.output]) {
                if last.get(&id).is_none_or(|&last| last <= at) && !kept.contains(&id) {
                    graph.nodes[id.index()] = self.graph.node(id).clone();
                }
            }
        }
        Ok(graph)
    }
}

/// The result of a cluster whose operands are constants.
fn run(
    context: &CompileContext<'_>,
    cluster: &Cluster,
    launch: &KernelLaunch,
) -> Result<Tensor, KernelError> {
    let graph = context.graph;
    let node = graph.node(cluster.output);
    let mut addresses = vec![std::ptr::null_mut(); graph.nodes.len()];
    let mut read = Vec::new();
    for id in cluster.reads() {
        let missing = || KernelError::Unsupported("a value that is computed once is not known".to_owned());
        let constant = kernel::aligned(graph.constant(id).ok_or_else(missing)?)?;
        addresses[id.index()] = readable(&constant).cast_mut();
        read.push(constant);
    }
    let block = AlignedBuffer::new(node.bytes())?;
    addresses[cluster.output.index()] = block.as_ptr();
    let buffers = ValueBuffers { pool: context.pool, addresses: &addresses };
    let entered = context.pool.enter();
    // SAFETY: every value has memory of its own, which nothing else uses; nothing writes to the constants.
    unsafe { launch.kernel.run(&buffers)? };
    drop(entered);
    drop(read);
    // SAFETY: the kernel has written all elements of its result.
    let written = unsafe { WrittenBuffer::new(block, node.bytes(), Weak::new()) };
    Ok(Tensor::from_blob(node.element, Shape::new(node.dims.clone())?, Blob::new(written))?)
}
