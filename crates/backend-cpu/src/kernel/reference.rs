//! Operations that fall back to the reference interpreter.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::{NodeId, Op};
use warpforge_interp::{Interpreter, Value};
use warpforge_ir::OpKind;
use warpforge_runtime::CustomCalls;
use warpforge_tensor::ElementType;

use super::interface::{CompileContext, Kernel, KernelError, Result, ValueBuffers, tensor_at};

/// An operation on the reference interpreter: its operands are copied out, its results back.
pub(super) struct ReferenceKernel {
    op: Arc<OpaqueOp>,
    calls: CustomCalls,
    inputs: Vec<(NodeId, ElementType, Vec<usize>)>,
    /// The results that something reads, with their positions.
    results: Vec<(usize, NodeId)>,
}

impl ReferenceKernel {
    /// The operation of a node; none where the reference has no such operation, or operands are not whole values.
    pub(super) fn new(context: &CompileContext<'_>, inputs: &[Operand], node: NodeId) -> Option<Self> {
        let graph = context.graph;
        let whole = |operand: &Operand| {
            operand.view.is_dense() && operand.view.len() == graph.node(operand.value).len()
        };
        let typed =
            |operand: &Operand| (operand.value, graph.node(operand.value).element, operand.view.dims.clone());
        let result = |id: NodeId| match graph.node(id).op {
            Op::Result(at) => (at, id),
            _ => (0, id),
        };
        inputs.iter().all(whole).then_some(Self {
            op: graph.reference(node)?,
            calls: context.calls.clone(),
            inputs: inputs.iter().map(typed).collect(),
            results: graph.results(node).into_iter().map(result).collect(),
        })
    }
}

impl Kernel for ReferenceKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let mut values = Vec::new();
        let module = &self.op.slice.module;
        for (id, element, dims) in &self.inputs {
            // SAFETY: guaranteed by the caller: the address is valid for the size of the value.
            values.push(Value::Tensor(unsafe { tensor_at(buffers, *id, *element, dims)? }));
        }
        let given = Interpreter::new(module, self.calls.options()).run(&self.op.function, values)?;
        for &(at, id) in &self.results {
            let value =
                given.get(at).ok_or_else(|| KernelError::Unsupported("a result is missing".to_owned()))?;
            let bytes = value.as_tensor()?.bytes();
            // SAFETY: guaranteed by the caller: the address is valid for the size of the result, which is that of the
            // tensor.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffers.write(id), bytes.len()) };
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.op.name.clone()
    }

    fn is_reference(&self) -> bool {
        // A call of the host is where it belongs.
        self.calls.is_empty() || self.op.name != OpKind::CustomCall.name()
    }
}
