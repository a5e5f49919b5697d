//! Functions of scalars as instructions, and kernels of reductions of several operands together.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::{ScalarFunction, ScalarOp};
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::fused_loop::{Inst, Register};
use warpforge_kernels::lane_function::{LaneFunction, VariadicReduce};
use warpforge_tensor::ElementType;

use super::interface::{Kernel, KernelError, Result, ResultBuffers, ValueBuffers};
use super::loop_lowering::{compare, elementwise};

/// A function of the graph as instructions.
pub(super) fn lane_function(function: &ScalarFunction) -> Result<LaneFunction> {
    let mut insts: Vec<Inst> = (0..function.arguments.len()).map(Inst::Load).collect();
    let mut registers: Vec<Register> = (0..insts.len()).map(Register).collect();
    let missing = || KernelError::Unsupported("a function without a value that it takes".to_owned());
    for step in &function.steps {
        let inputs = step.inputs.iter().map(|&at| registers.get(at).copied());
        let inputs: Vec<Register> = inputs.collect::<Option<_>>().ok_or_else(missing)?;
        let inst = match &step.op {
            ScalarOp::Constant(tensor) => Inst::Constant(step.element, tensor.get(0)),
            ScalarOp::Elementwise(function) => elementwise(&mut insts, *function, &inputs, step.element)?,
            ScalarOp::Compare(direction, order) => compare(*direction, *order, &inputs)?,
        };
        insts.push(inst);
        registers.push(Register(insts.len() - 1));
    }
    let results = function.results.iter().map(|&at| registers.get(at).copied());
    let results = results.collect::<Option<_>>().ok_or_else(missing)?;
    Ok(LaneFunction { arguments: function.arguments.clone(), insts, results })
}

fn element(graph: &Graph, operand: &Operand) -> ElementType {
    graph.node(operand.value).element
}

/// The kernel of a reduction of several operands together.
pub(super) fn variadic_reduce(
    graph: &Graph,
    function: &ScalarFunction,
    axes: &[usize],
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let (arrays, initial) = operands.split_at(operands.len() / 2);
    let types = initial.iter().chain(arrays).map(|operand| element(graph, operand));
    let Some(first) = arrays.first().filter(|_| types.eq(function.arguments.iter().copied())) else {
        return Err(KernelError::Unsupported("a reduction of other types than its operands".to_owned()));
    };
    let dims = &first.view.dims;
    let kept = (0..dims.len()).filter(|axis| !axes.contains(axis)).map(|axis| dims[axis]).product::<usize>();
    let results = initial
        .iter()
        .enumerate()
        .map(|(at, operand)| (graph.result(output, at), kept * element(graph, operand).byte_width()));
    Ok(Box::new(VariadicReduceKernel {
        reduce: VariadicReduce::new(dims, axes, &lane_function(function)?)?,
        arrays: arrays.iter().map(|operand| operand.value).collect(),
        initial: initial.iter().map(|operand| operand.value).collect(),
        results: results.collect(),
    }))
}

struct VariadicReduceKernel {
    reduce: VariadicReduce,
    arrays: Vec<NodeId>,
    initial: Vec<NodeId>,
    /// The results that are read, and their sizes in bytes.
    results: Vec<(Option<NodeId>, usize)>,
}

impl Kernel for VariadicReduceKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let read = |values: &[NodeId]| values.iter().map(|&id| buffers.read(id)).collect::<Vec<_>>();
        let results = ResultBuffers::new(buffers, &self.results)?;
        let (arrays, initial) = (read(&self.arrays), read(&self.initial));
        // SAFETY: guaranteed by the caller; the reduction was made from the sizes of the values.
        unsafe { self.reduce.run(buffers.pool, &arrays, &initial, &results.targets) };
        Ok(())
    }

    fn name(&self) -> String {
        "variadic reduction".to_owned()
    }
}
