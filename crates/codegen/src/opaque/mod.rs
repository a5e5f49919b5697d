//! Kernels of opaque operations, which the graph keeps as slices of the module.

mod dynamic_slice;
mod integer_dot;
mod merge_sort;
mod reduce;
mod region;
mod scatter;
mod select_and_scatter;
mod sort;

use warpforge_fusion::cluster::{Cluster, Operand};
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::{Func, OpKind, OpRef, ValueId};
use warpforge_tensor::ElementType;

use crate::builder::KernelBuilder;
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;

/// The kernels of an opaque operation.
pub(crate) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    source: &OpaqueOp,
    operands: &[Operand],
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let unsupported = || Unsupported::new(source.name.clone());
    let func = source.slice.module.function(&source.function).ok_or_else(unsupported)?;
    let block = func.body().ok_or_else(unsupported)?;
    let op = func.op().module().ops_in(block).next().ok_or_else(unsupported)?;
    let plain = op
        .operand_types()
        .chain(op.result_types())
        .all(|ty| ty.as_tensor().is_some_and(|tensor| tensor.element().plain().is_some()));
    if !plain {
        return Err(unsupported());
    }
    let opaque = OpaqueKernel { graph, cluster, func, op, operands, options };
    match op.kind() {
        Some(OpKind::DotGeneral) => integer_dot::emit(&opaque),
        Some(OpKind::DynamicSlice) => dynamic_slice::slice(&opaque),
        Some(OpKind::DynamicUpdateSlice) => dynamic_slice::update(&opaque),
        Some(OpKind::Reduce) => reduce::emit(&opaque),
        Some(OpKind::Scatter) => scatter::emit(&opaque),
        Some(OpKind::SelectAndScatter) => select_and_scatter::emit(&opaque),
        Some(OpKind::Sort) => sort::emit(&opaque),
        _ => Err(unsupported()),
    }
}

/// An opaque operation with its operands and results.
pub(super) struct OpaqueKernel<'a> {
    pub(super) graph: &'a Graph,
    pub(super) cluster: &'a Cluster,
    func: Func<'a>,
    pub(super) op: OpRef<'a>,
    operands: &'a [Operand],
    pub(super) options: &'a Options,
}

impl OpaqueKernel<'_> {
    /// The graph value of an operand.
    pub(super) fn operand(&self, at: usize) -> Result<NodeId, Unsupported> {
        let value: Option<ValueId> = self.op.operand(at);
        let place =
            value.and_then(|value| self.func.arguments().iter().position(|&argument| argument == value));
        let operand = place.and_then(|place| self.operands.get(place));
        operand.map(|operand| operand.value).ok_or_else(|| self.unsupported())
    }

    /// The shape of an operand.
    pub(super) fn dims(&self, at: usize) -> Result<Vec<usize>, Unsupported> {
        self.op
            .operand_tensor(at)
            .and_then(warpforge_ir::TensorType::shape_usize)
            .ok_or_else(|| self.unsupported())
    }

    /// The graph value of a result, where it is used.
    pub(super) fn result(&self, at: usize) -> Option<NodeId> {
        let is = |id: &NodeId| {
            let node = self.graph.node(*id);
            node.inputs == [self.cluster.output] && matches!(node.op, Op::Result(number) if number == at)
        };
        self.graph.ids().find(is)
    }

    pub(super) fn unsupported(&self) -> Unsupported {
        Unsupported::new(self.op.name())
    }

    pub(super) fn element(&self, at: usize) -> Result<ElementType, Unsupported> {
        Ok(self.graph.node(self.operand(at)?).element)
    }

    /// The pointer to an operand.
    pub(super) fn read(&self, builder: &mut KernelBuilder<'_>, at: usize) -> Result<String, Unsupported> {
        builder.read(self.operand(at)?)
    }
}
