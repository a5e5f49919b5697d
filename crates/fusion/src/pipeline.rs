//! The one way from a function to clusters: import, simplify, precision, recompute, cluster, hoist.
//!
//! [`plan`] takes a function, its weights and what a device can do. Engines compile the [`Plan`] that it gives, and
//! `warpt opt` shows it: what is shown is what runs.

use std::sync::Arc;

use warpforge_ir::Func;
use warpforge_ir::nodes::Nodes;
use warpforge_tensor::Tensor;
use warpforge_tensor::elementwise::Function;

use crate::cluster::Machine;
use crate::cluster::{
    Cluster, Clusters, DeviceKernels, HoistLimits, Kind, clusters, fuse_attention_gradients, hoist,
    join_loops, join_rows, op_by_op,
};
use crate::graph::{Graph, ImportError, Node, NodeId, Op, OpByOp, OpSpan, import_for, import_op_by_op};
use crate::pattern::{Pattern, patterns};
use crate::precision::{
    Precision, WeightNames, narrow_contractions, quantize, read_before_widening, read_stored_weights,
    round_in_f32,
};
use crate::recompute::recompute;
use crate::simplify::{resampled, simplify};

/// The arguments of a function that are known while compiling, by position.
pub type Weights<'a> = dyn Fn(usize) -> Option<Tensor> + 'a;

/// What a device can do, as far as the plan depends on it.
pub trait Device {
    /// The precision that contractions compute in.
    fn precision(&self) -> Precision;

    /// Whether every operation of the module keeps a kernel of its own, so that every value can be seen.
    fn is_op_by_op(&self) -> bool {
        false
    }

    /// Whether the nodes of a graph that was imported op by op can stay as they are, so that spans lead back to the module.
    fn keeps_spans(&self, _graph: &Graph) -> bool {
        true
    }

    /// Whether contractions convert f32 operands to a narrower type while they read them.
    fn converts_operands(&self) -> bool {
        false
    }

    /// Whether a convolution multiplies operands of a narrower type, in a precision that has one. `result` has the functions between the convolution and its
    /// result, where that is rounded too; none where it stays f32.
    fn narrows_convolution(&self, convolution: &Node, _result: Option<&[Function]>) -> bool {
        matches!(&convolution.op, Op::Conv(conv) if conv.groups == 1)
    }

    /// Whether matrix products read quantized weights in the type that they are stored in.
    fn reads_quantized_weights(&self) -> bool {
        false
    }

    /// Whether the device has kernels for floats of 8 bits. Otherwise the reference computes with them.
    fn computes_float8(&self) -> bool {
        false
    }

    /// Whether the device multiplies floats of 8 bits by weights of so many columns and such a depth. Otherwise recipes round wider ones to what
    /// those hold.
    fn multiplies_float8(&self, _columns: usize, _depth: usize) -> bool {
        false
    }

    /// Rewrites operations that a device has in forms of its own, such as collectives, before anything else.
    ///
    /// # Errors
    ///
    /// When the graph has something that the device cannot run: what it is.
    fn legalise(&self, graph: Graph) -> Result<Graph, String> {
        Ok(graph)
    }

    /// Rewrites a simplified graph for the device, before it is clustered.
    fn rewrite(&self, graph: Graph) -> Graph {
        graph
    }

    /// Whether the device has a kernel for a matrix product, or for an operation that is a cluster of its own. A matrix product without one stays
    /// alone; what has none then is evaluated by the reference.
    fn has_kernel(&self, graph: &Graph, cluster: &Cluster) -> bool {
        !matches!(graph.node(cluster.output).op, Op::Opaque(_))
    }

    /// Whether the device reads the image of a convolution with the strides of its operand. Otherwise images are dense.
    fn reads_strided_image(&self, _graph: &Graph, _cluster: &Cluster) -> bool {
        false
    }

    /// The shortest row that the dimensions of an elementwise loop may be split into, so that values which repeat along a part of one need not
    /// be in memory.
    fn shortest_row(&self) -> usize {
        1
    }

    /// Whether the device has a kernel that resamples along a dimension, of f32 and f64.
    fn resamples(&self) -> bool {
        false
    }

    /// Whether the device has kernels for elementwise loops that give several values.
    fn joins_loops(&self) -> bool {
        false
    }

    /// Whether the device has kernels for loops over rows that give a number of each row beside their elements.
    fn joins_rows(&self) -> bool {
        false
    }

    /// What the machine says about decisions that are close; nothing where nobody asked it.
    fn machine(&self) -> Option<Arc<dyn Machine>> {
        None
    }

    /// Whether the backward pass of a training step computes the forward pass again, segment by segment, instead of keeping it.
    fn checkpoints_gradients(&self) -> bool {
        false
    }

    /// What the device keeps of values that depend on constants alone, where the plan takes the clusters that compute them out of those of a run.
    fn hoists(&self) -> Option<HoistLimits> {
        None
    }

    /// Whether the device has one kernel for a cluster that only some devices fuse.
    fn fuses(&self, _graph: &Graph, _cluster: &Cluster) -> bool {
        false
    }
}

/// A graph before it is clustered.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The graph.
    pub graph: Graph,
    /// Where the operations of the module are among the nodes, where each has its own.
    pub spans: Option<Vec<OpSpan>>,
    /// The nodes of the traced graph that the operations of the module name.
    pub traced: Nodes,
    /// What the machine says about decisions that are close.
    pub machine: Option<Arc<dyn Machine>>,
    /// As [`Device::checkpoints_gradients`].
    pub checkpoints: bool,
    /// What the weights of products are called, where they are to be quantized.
    pub(crate) weight_names: WeightNames,
}

/// What a device runs: a graph and its clusters.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The graph.
    pub graph: Graph,
    /// Clusters that depend on constants alone, in their order: computed once, before the first run.
    pub once: Vec<Cluster>,
    /// The clusters of each run, in the order in which they run.
    pub clusters: Clusters,
    /// Where the operations of the module are among the nodes, where each has its own.
    pub spans: Option<Vec<OpSpan>>,
    /// The well-known computations in it.
    pub patterns: Vec<Pattern>,
    /// The clusters that the device has no kernel for, by their outputs; the reference evaluates them.
    pub fallbacks: Vec<NodeId>,
    /// The nodes of the traced graph that the operations of the module name.
    pub traced: Nodes,
}

/// The plan of a function on a device.
///
/// # Errors
///
/// When the function has values that are no tensors of known sizes, something that the device cannot run, or calls that add up to too
/// many operations.
pub fn plan(func: Func<'_>, weights: &Weights<'_>, device: &dyn Device) -> Result<Plan, ImportError> {
    cluster(load(func, weights, device)?, device)
}

/// The first half of [`plan`]: the graph of a function in the device's own operations.
///
/// # Errors
///
/// As [`plan`].
pub fn load(func: Func<'_>, weights: &Weights<'_>, device: &dyn Device) -> Result<Imported, ImportError> {
    let traced = Nodes::of(func);
    let weight_names = device.precision().recipe().map(|_| WeightNames::of(func)).unwrap_or_default();
    if device.is_op_by_op() {
        let OpByOp { graph, marks } = import_op_by_op(func, weights)?;
        if device.keeps_spans(&graph) {
            return Ok(Imported {
                graph,
                spans: Some(marks),
                traced,
                machine: None,
                checkpoints: false,
                weight_names,
            });
        }
    }
    let graph = device
        .legalise(import_for(func, weights, device.computes_float8())?)
        .map_err(ImportError::Unsupported)?;
    let (machine, checkpoints) = (device.machine(), device.checkpoints_gradients());
    Ok(Imported { graph, spans: None, traced, machine, checkpoints, weight_names })
}

/// The second half of [`plan`]: simplifies the graph, decides the precision of its contractions and clusters it.
///
/// # Errors
///
/// When a layout cannot be described by strides, op by op, or weights cannot be quantized.
pub fn cluster(imported: Imported, device: &dyn Device) -> Result<Plan, ImportError> {
    let Imported { mut graph, mut spans, traced, machine, checkpoints, weight_names } = imported;
    if spans.is_none() {
        graph = simplify(&graph);
    }
    if !device.is_op_by_op() {
        if device.resamples() {
            graph = resampled(&graph);
        }
        graph = device.rewrite(read_before_widening(&graph));
        if !device.computes_float8() {
            graph = round_in_f32(&graph);
        }
        if device.reads_quantized_weights() {
            graph = read_stored_weights(&graph);
        }
    }
    if let Some(element) = device.precision().operand_element() {
        let narrows = |conv: &Node, result: Option<&[Function]>| device.narrows_convolution(conv, result);
        graph = narrow_contractions(&graph, element, &narrows, spans.as_deref_mut());
    }
    if let Some(recipe) = device.precision().recipe() {
        let float8 = |columns, depth| device.multiplies_float8(columns, depth);
        let quantized = quantize(&graph, recipe, &float8, &weight_names, spans.as_deref_mut());
        graph = quantized.map_err(|error| ImportError::Unsupported(format!("{recipe}: {error}")))?;
    }
    if !device.is_op_by_op() {
        graph = recompute(graph, checkpoints);
    }
    let compute = |cluster: &Cluster| device.has_kernel(&graph, cluster);
    let kernels = DeviceKernels {
        convert_operands: device.converts_operands(),
        quantized_weights: device.reads_quantized_weights(),
        compute: &compute,
        strided_image: &|cluster| device.reads_strided_image(&graph, cluster),
        shortest_row: device.shortest_row(),
        machine: machine.as_deref(),
    };
    let mut clusters = if device.is_op_by_op() {
        op_by_op(&graph, kernels).map_err(ImportError::Unsupported)?
    } else {
        let apart = clusters(&graph, kernels);
        let mut fused = fuse_attention_gradients(&graph, apart, &|cluster| device.fuses(&graph, cluster));
        if device.joins_rows() {
            join_rows(&graph, &mut fused);
        }
        if device.joins_loops() {
            join_loops(&graph, &mut fused);
        }
        fused
    };
    let once =
        device.hoists().map(|limits| hoist(&graph, &mut clusters, limits, &compute)).unwrap_or_default();
    let alone = clusters.clusters.iter().filter(|cluster| matches!(cluster.kind, Kind::Unfused(_)));
    let fallbacks = alone.filter(|cluster| !compute(cluster)).map(|cluster| cluster.output).collect();
    let patterns = patterns(&graph);
    Ok(Plan { graph, once, clusters, spans, patterns, fallbacks, traced })
}
