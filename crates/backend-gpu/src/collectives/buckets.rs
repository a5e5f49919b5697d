//! Buckets of gradients that are averaged over ranks: the calls of a [`DeviceReduction`] become an all-reduce of the device.
//!
//! What surrounds the all-reduce is operations of the graph, which become parts of the kernels beside it: conversions to the type that is
//! added up, and the division by the number of ranks.

use std::collections::HashMap;
use std::sync::Arc;

use warpforge_fusion::graph::{Builder, OpaqueOp};
use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_ir::{OpKind, OpRef};
use warpforge_runtime::DeviceReduction;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar};

use super::lower::single_op;

/// A call, as the steps of a run make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BucketCall {
    /// Fills a bucket and starts its all-reduce.
    Start {
        /// Which, of a run.
        bucket: usize,
        /// Whether only where the first operand is true.
        conditional: bool,
    },
    /// Waits for an all-reduce and empties the bucket.
    Done {
        /// Which, of a run.
        bucket: usize,
    },
}

/// The calls of a graph, by opaque operation.
pub(crate) type BucketOps = Vec<(Arc<OpaqueOp>, BucketCall)>;

/// Whether a graph has such calls.
pub(crate) fn has_buckets(graph: &Graph, reduction: &DeviceReduction) -> bool {
    graph.nodes.iter().any(|node| match &node.op {
        Op::Opaque(opaque) => {
            single_op(opaque).and_then(target).is_some_and(|target| target == reduction.start)
        }
        _ => false,
    })
}

/// Prepares the calls of a graph for a device among `size` ranks.
///
/// # Errors
///
/// When a call is not as [`DeviceReduction`] has it.
pub(crate) fn lower_buckets(
    graph: &Graph,
    reduction: &DeviceReduction,
    size: usize,
) -> Result<(Graph, BucketOps), String> {
    let mut rewrite = Rewrite {
        old: graph,
        reduction,
        size,
        builder: Builder::default(),
        made: HashMap::new(),
        started: HashMap::new(),
        done: HashMap::new(),
        calls: Vec::new(),
    };
    for id in graph.ids() {
        let new = rewrite.node(id)?;
        rewrite.made.insert(id, new);
    }
    let Rewrite { mut builder, made, calls, .. } = rewrite;
    builder.set_values(graph.moved_values(|id| made.get(&id).copied()));
    let moved = |ids: &[NodeId]| ids.iter().map(|id| made[id]).collect::<Vec<NodeId>>();
    Ok((builder.finish(moved(&graph.outputs), moved(&graph.effects)), calls))
}

/// A bucket whose start is known.
#[derive(Clone, Copy)]
struct Bucket {
    number: usize,
    /// The type in which its values are added up.
    element: ElementType,
    /// Whether its values are complete, as a node of the new graph.
    ready: Option<NodeId>,
}

struct Rewrite<'a> {
    old: &'a Graph,
    reduction: &'a DeviceReduction,
    size: usize,
    builder: Builder,
    made: HashMap<NodeId, NodeId>,
    /// Buckets by the nodes of the old graph that start them and that wait for them.
    started: HashMap<NodeId, Bucket>,
    done: HashMap<NodeId, Bucket>,
    calls: BucketOps,
}

impl Rewrite<'_> {
    fn node(&mut self, id: NodeId) -> Result<NodeId, String> {
        let node = self.old.node(id);
        self.builder.origin = node.origin;
        match &node.op {
            Op::Opaque(opaque) => {
                let op = single_op(opaque);
                let called = op.and_then(target);
                match op {
                    Some(op) if called == Some(self.reduction.start) => self.start(id, opaque, op, node),
                    Some(_) if called == Some(self.reduction.done) => self.done(id, opaque, node),
                    _ => Ok(self.copy(node)),
                }
            }
            &Op::Result(at) => match self.done.get(&node.inputs[0]).copied() {
                Some(bucket) => self.averaged(at, node, bucket),
                None => Ok(self.copy(node)),
            },
            _ => Ok(self.copy(node)),
        }
    }

    fn copy(&mut self, node: &Node) -> NodeId {
        let inputs = node.inputs.iter().map(|input| self.made[input]).collect();
        self.builder.add(node.op.clone(), inputs, node.element, node.dims.clone())
    }

    fn start(
        &mut self,
        id: NodeId,
        opaque: &Arc<OpaqueOp>,
        op: OpRef<'_>,
        node: &Node,
    ) -> Result<NodeId, String> {
        let number = op.attr_str("backend_config").and_then(|config| config.split_once('/')?.0.parse().ok());
        let number = number.ok_or("an all-reduce does not say which bucket it is for")?;
        let mut operands = self.operands(opaque, node)?;
        let element = |id: NodeId| self.builder.node(id).element;
        let conditional = operands.first().is_some_and(|&first| element(first) == ElementType::Bool);
        let ready = conditional.then(|| operands.remove(0));
        // Types of fewer bits are added up in single precision.
        let added = match operands.first().map(|&first| element(first)) {
            Some(ElementType::F64) => ElementType::F64,
            _ => ElementType::F32,
        };
        let mut given: Vec<NodeId> = ready.into_iter().collect();
        for operand in operands {
            given.push(self.converted(operand, added));
        }
        self.started.insert(id, Bucket { number, element: added, ready });
        self.calls.push((Arc::clone(opaque), BucketCall::Start { bucket: number, conditional }));
        Ok(self.builder.raw(node.op.clone(), given, node.element, node.dims.clone()))
    }

    fn done(&mut self, id: NodeId, opaque: &Arc<OpaqueOp>, node: &Node) -> Result<NodeId, String> {
        let ticket = opaque.operands.first().and_then(|&at| node.inputs.get(at));
        let start = ticket.and_then(|&ticket| self.old.node(ticket).inputs.first());
        let bucket = start.and_then(|start| self.started.get(start)).copied();
        let bucket = bucket.ok_or("an all-reduce is waited for that was never started")?;
        self.done.insert(id, bucket);
        self.calls.push((Arc::clone(opaque), BucketCall::Done { bucket: bucket.number }));
        let tickets = self.operands(opaque, node)?;
        Ok(self.builder.raw(node.op.clone(), tickets, node.element, node.dims.clone()))
    }

    /// A part of what is in a bucket: the sum of all ranks, or their own value where it is not complete.
    fn averaged(&mut self, at: usize, node: &Node, bucket: Bucket) -> Result<NodeId, String> {
        let (inputs, dims) = (vec![self.made[&node.inputs[0]]], node.dims.clone());
        let sum = self.builder.raw(Op::Result(at), inputs, bucket.element, dims.clone());
        let b = &mut self.builder;
        let mut number = |value: usize| {
            let value = Scalar::Float(value as f64);
            b.splat(bucket.element, value, dims.clone()).ok_or("a number of ranks is no element")
        };
        let count = number(self.size)?;
        let count = match bucket.ready {
            Some(ready) => {
                let one = number(1)?;
                let ready = b.broadcast(ready, dims.clone(), &[]);
                b.map(Function::Select, vec![ready, count, one])
            }
            None => count,
        };
        let mean = b.map(Function::Divide, vec![sum, count]);
        Ok(self.converted(mean, node.element))
    }

    fn converted(&mut self, id: NodeId, element: ElementType) -> NodeId {
        let dims = self.builder.node(id).dims.clone();
        self.builder.add(Op::Elementwise(Function::Convert), vec![id], element, dims)
    }

    /// The operands of the operation, in its order.
    fn operands(&self, opaque: &OpaqueOp, node: &Node) -> Result<Vec<NodeId>, String> {
        let operand = |&at: &usize| node.inputs.get(at).and_then(|input| self.made.get(input)).copied();
        let operands = opaque.operands.iter().map(operand).collect::<Option<_>>();
        operands.ok_or_else(|| format!("{} lacks an operand", opaque.name))
    }
}

/// The target of a custom call.
fn target(op: OpRef<'_>) -> Option<&str> {
    op.is(OpKind::CustomCall).then(|| op.attr_str("call_target_name"))?
}
