//! Operations that fall back to the reference interpreter.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::interface::{Kernel, KernelError, Result, ValueBuffers};

/// An operation on the reference interpreter: its operands are copied out, its results back.
pub(super) struct ReferenceKernel {
    part: Arc<OpaqueOp>,
    inputs: Vec<(NodeId, ElementType, Vec<usize>)>,
    /// The results that something reads, with their positions.
    results: Vec<(usize, NodeId)>,
}

impl ReferenceKernel {
    pub(super) fn new(graph: &Graph, part: &Arc<OpaqueOp>, inputs: &[Operand], node: NodeId) -> Self {
        let typed =
            |operand: &Operand| (operand.value, graph.node(operand.value).element, operand.view.dims.clone());
        let results = warpforge_runtime::memory_plan::results(graph, node).into_iter().filter_map(|id| {
            match graph.node(id).op {
                Op::Result(at) => Some((at, id)),
                _ => None,
            }
        });
        Self {
            part: Arc::clone(part),
            inputs: inputs.iter().map(typed).collect(),
            results: results.collect(),
        }
    }
}

impl Kernel for ReferenceKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let mut values = Vec::new();
        let module = &self.part.slice.module;
        let types =
            module.function(&self.part.function).map(|func| func.arguments().len()).unwrap_or_default();
        debug_assert_eq!(types, self.inputs.len());
        for (id, element, dims) in &self.inputs {
            let shape = Shape::new(dims.clone())?;
            let bytes = shape.num_elements() * element.byte_width();
            // SAFETY: guaranteed by the caller: the address is valid for the size of the value.
            let bytes = unsafe { std::slice::from_raw_parts(buffers.read(*id), bytes) };
            let tensor = Tensor::from_bytes(*element, shape, bytes);
            values.push(Value::Tensor(tensor?));
        }
        let given = Interpreter::new(module, Options::default()).run(&self.part.function, values)?;
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
        self.part.name.clone()
    }

    fn is_reference(&self) -> bool {
        true
    }
}
