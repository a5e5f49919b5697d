//! Branches and loops: the regions of `if`, `case` and `while` as programs of their own.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::pipeline::{self, Device};
use warpforge_fusion::{NodeId, Op};
use warpforge_ir::slice::{Slice, region};
use warpforge_ir::{Func, OpKind, OpRef};
use warpforge_runtime::{Program, Weights};
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::interface::{CompileContext, Kernel, KernelError, Result, Subprogram, ValueBuffers, tensor_at};

/// Which region runs, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// The first region where the condition is true, else the second.
    If,
    /// The region of a number, the last for others.
    Case,
    /// The second region as long as the first says so.
    While,
}

/// The operation that an opaque node is, where it is a branch or a loop.
fn control(part: &OpaqueOp) -> Option<(Func<'_>, OpRef<'_>, Control)> {
    let func = part.slice.module.function(&part.function)?;
    let op = part.slice.module.ops_in(func.body()?).next()?;
    let control = match op.kind()? {
        OpKind::If => Control::If,
        OpKind::Case => Control::Case,
        OpKind::While => Control::While,
        _ => return None,
    };
    Some((func, op, control))
}

/// The regions of an operation as functions.
fn regions(func: Func<'_>, op: OpRef<'_>) -> Option<Vec<Slice>> {
    (0..op.regions().len()).map(|at| region(func, op, at)).collect()
}

/// Whether all that the regions of an operation do has kernels.
pub(super) fn has_kernel(part: &OpaqueOp, device: &dyn Device) -> bool {
    let slices = control(part).and_then(|(func, op, _)| regions(func, op));
    slices.is_some_and(|slices| {
        slices.iter().all(|slice| {
            let func = slice.module.function(&part.function);
            let plan = func.map(|func| pipeline::plan(func, &|_| None, device));
            plan.is_some_and(|plan| plan.is_ok_and(|plan| plan.fallbacks.is_empty()))
        })
    })
}

/// Where an argument of a region comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// What the loop carries, by number.
    Carried(usize),
    /// An input of the node, by number.
    Input(usize),
}

/// A compiled region.
struct CompiledRegion {
    program: Box<dyn Subprogram>,
    /// Where the inputs of the program come from; constants are among its weights.
    inputs: Vec<Source>,
}

impl CompiledRegion {
    fn run(&self, carried: &[Tensor], inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        let missing = || KernelError::Unsupported("a region takes a value that is not there".to_owned());
        let given = self.inputs.iter().map(|source| match *source {
            Source::Carried(at) => carried.get(at).cloned(),
            Source::Input(at) => inputs.get(at).cloned().flatten(),
        });
        self.program.run(&given.collect::<Option<Vec<_>>>().ok_or_else(missing)?)
    }
}

/// A branch or a loop.
pub(super) struct ControlFlowKernel {
    control: Control,
    regions: Vec<CompiledRegion>,
    /// The operands of the operation, as inputs of the node.
    operands: Vec<usize>,
    /// The inputs of the node with their types; none for those that only regions read, which have them as weights.
    inputs: Vec<Option<(NodeId, ElementType, Vec<usize>)>>,
    /// The results that something reads, with their positions.
    results: Vec<(usize, NodeId)>,
    name: String,
}

/// The kernel of a branch or a loop, where the node is one and operands are whole values.
pub(super) fn kernel(
    context: &CompileContext<'_>,
    operands: &[Operand],
    node: NodeId,
) -> Result<ControlFlowKernel> {
    let graph = context.graph;
    let missing = || KernelError::Unsupported("no branch or loop that can be compiled".to_owned());
    let Op::Opaque(part) = &graph.node(node).op else { return Err(missing()) };
    let whole =
        |operand: &Operand| operand.view.is_dense() && operand.view.len() == graph.node(operand.value).len();
    let (func, op, control) = control(part).filter(|_| operands.iter().all(whole)).ok_or_else(missing)?;
    let constants: Vec<Option<&Tensor>> =
        operands.iter().map(|operand| graph.constant(operand.value)).collect();
    let mut compiled = Vec::new();
    for (at, slice) in regions(func, op).ok_or_else(missing)?.into_iter().enumerate() {
        let region = op.regions()[at];
        let carried =
            op.module().blocks(region).iter().map(|&block| op.module().arguments(block).len()).sum();
        let sources = slice.inputs.iter().enumerate().map(|(at, value)| match at < carried {
            true => Some(Source::Carried(at)),
            false => func.arguments().iter().position(|known| known == value).map(Source::Input),
        });
        let sources: Vec<Source> = sources.collect::<Option<_>>().ok_or_else(missing)?;
        let weight = |source: &Source| match *source {
            Source::Input(at) => constants.get(at).copied().flatten().cloned(),
            Source::Carried(_) => None,
        };
        let weights: Vec<Option<Tensor>> = sources.iter().map(weight).collect();
        let free = sources.into_iter().zip(&weights).filter(|(_, weight)| weight.is_none());
        let inputs = free.map(|(source, _)| source).collect();
        let program = Program::new(Arc::new(slice.module), func.name(), Weights::new(weights))?;
        let program = (context.compile)(&program)?;
        // The operation falls back as a whole, and is reported.
        if program.falls_back() {
            return Err(missing());
        }
        compiled.push(CompiledRegion { program, inputs });
    }
    let read = |at: &usize| {
        let from_regions = compiled.iter().flat_map(|region| &region.inputs);
        part.operands.contains(at)
            || from_regions.into_iter().any(|source| matches!(source, Source::Input(known) if known == at))
    };
    let typed =
        |operand: &Operand| (operand.value, graph.node(operand.value).element, operand.view.dims.clone());
    let inputs = operands.iter().enumerate();
    let inputs = inputs.map(|(at, operand)| read(&at).then(|| typed(operand))).collect();
    let result = |id: NodeId| match graph.node(id).op {
        Op::Result(at) => (at, id),
        _ => (0, id),
    };
    Ok(ControlFlowKernel {
        control,
        operands: part.operands.clone(),
        inputs,
        results: graph.results(node).into_iter().map(result).collect(),
        name: part.name.clone(),
        regions: compiled,
    })
}

impl ControlFlowKernel {
    fn region(&self, at: usize) -> Result<&CompiledRegion> {
        let missing = || KernelError::Unsupported("a branch or loop without a region".to_owned());
        self.regions.get(at).ok_or_else(missing)
    }

    /// What the operation gives for the values of its inputs.
    fn values(&self, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        let operands: Vec<Tensor> =
            self.operands.iter().filter_map(|&at| inputs.get(at).cloned().flatten()).collect();
        let first = operands.first().filter(|tensor| !tensor.is_empty()).map(|tensor| tensor.get(0));
        match self.control {
            Control::If => self.region(usize::from(!first.is_some_and(Scalar::is_true)))?.run(&[], inputs),
            Control::Case => {
                let last = self.regions.len().saturating_sub(1);
                let number = first.and_then(|number| usize::try_from(number.to_i128()).ok());
                self.region(number.unwrap_or(last).min(last))?.run(&[], inputs)
            }
            Control::While => {
                let mut carried = operands;
                loop {
                    let goes_on = self.region(0)?.run(&carried, inputs)?;
                    if !goes_on.first().is_some_and(|tensor| !tensor.is_empty() && tensor.get(0).is_true()) {
                        return Ok(carried);
                    }
                    carried = self.region(1)?.run(&carried, inputs)?;
                }
            }
        }
    }
}

impl Kernel for ControlFlowKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let mut inputs = Vec::new();
        for input in &self.inputs {
            inputs.push(match input {
                // SAFETY: guaranteed by the caller.
                Some((id, element, dims)) => Some(unsafe { tensor_at(buffers, *id, *element, dims)? }),
                None => None,
            });
        }
        let given = self.values(&inputs)?;
        for &(at, id) in &self.results {
            let value = given.get(at);
            let value = value.ok_or_else(|| KernelError::Unsupported("a result is missing".to_owned()))?;
            let bytes = value.bytes();
            // SAFETY: guaranteed by the caller: the address is valid for the size of the result, which is that of the
            // tensor.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffers.write(id), bytes.len()) };
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.regions.iter().map(|region| region.program.bytes()).sum()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
