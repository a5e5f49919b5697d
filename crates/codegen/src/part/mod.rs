//! Operations that the graph has no form for: read from the module they were cut out of.

mod dot;
mod fold;
mod order;
mod region;
mod scatter;
mod select;
mod slices;
mod sort;

use warpforge_fusion::cluster::{Cluster, Operand};
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::{Func, OpKind, OpRef, ValueId};
use warpforge_tensor::ElementType;

use crate::draft::Draft;
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;

/// The kernels of an operation cut out of its module.
pub(crate) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    part: &OpaqueOp,
    operands: &[Operand],
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let unknown = || Unsupported::new(part.name.clone());
    let func = part.slice.module.function(&part.function).ok_or_else(unknown)?;
    let block = func.body().ok_or_else(unknown)?;
    let op = func.op().module().ops_in(block).next().ok_or_else(unknown)?;
    let plain = op
        .operand_types()
        .chain(op.result_types())
        .all(|ty| ty.as_tensor().is_some_and(|tensor| tensor.element().plain().is_some()));
    if !plain {
        return Err(unknown());
    }
    let cut = Cut { graph, cluster, func, op, operands, options };
    match op.kind() {
        Some(OpKind::DotGeneral) => dot::emit(&cut),
        Some(OpKind::DynamicSlice) => slices::slice(&cut),
        Some(OpKind::DynamicUpdateSlice) => slices::update(&cut),
        Some(OpKind::Reduce) => fold::emit(&cut),
        Some(OpKind::Scatter) => scatter::emit(&cut),
        Some(OpKind::SelectAndScatter) => select::emit(&cut),
        Some(OpKind::Sort) => sort::emit(&cut),
        _ => Err(unknown()),
    }
}

/// An operation, and the values that it takes and gives.
pub(super) struct Cut<'a> {
    pub(super) graph: &'a Graph,
    pub(super) cluster: &'a Cluster,
    func: Func<'a>,
    pub(super) op: OpRef<'a>,
    operands: &'a [Operand],
    pub(super) options: &'a Options,
}

impl Cut<'_> {
    /// The value that an operand is.
    pub(super) fn operand(&self, at: usize) -> Result<NodeId, Unsupported> {
        let value: Option<ValueId> = self.op.operand(at);
        let place =
            value.and_then(|value| self.func.arguments().iter().position(|&argument| argument == value));
        let operand = place.and_then(|place| self.operands.get(place));
        operand.map(|operand| operand.value).ok_or_else(|| self.unknown())
    }

    /// The sizes of an operand.
    pub(super) fn dims(&self, at: usize) -> Result<Vec<usize>, Unsupported> {
        self.op
            .operand_tensor(at)
            .and_then(warpforge_ir::TensorType::shape_usize)
            .ok_or_else(|| self.unknown())
    }

    /// The value of a result, where something reads it.
    pub(super) fn result(&self, at: usize) -> Option<NodeId> {
        let is = |id: &NodeId| {
            let node = self.graph.node(*id);
            node.inputs == [self.cluster.output] && matches!(node.op, Op::Result(number) if number == at)
        };
        self.graph.ids().find(is)
    }

    pub(super) fn unknown(&self) -> Unsupported {
        Unsupported::new(self.op.name())
    }

    pub(super) fn element(&self, at: usize) -> Result<ElementType, Unsupported> {
        Ok(self.graph.node(self.operand(at)?).element)
    }

    /// The pointer to an operand.
    pub(super) fn read(&self, draft: &mut Draft<'_>, at: usize) -> Result<String, Unsupported> {
        draft.read(self.operand(at)?)
    }
}
