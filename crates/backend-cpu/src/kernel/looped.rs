//! Loops: elementwise chains, reductions, copies.

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Load};
use warpforge_fusion::view::dense_strides;
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::movement::{Copy, Layout};
use warpforge_kernels::program::{ColumnFold, Program};

use super::steps::{Cut, Tile, column_fold, program};
use super::{Kernel, Memory, Result};

/// The kernel of a loop.
pub(super) fn kernel(graph: &Graph, body: &Body, output: NodeId) -> Result<Box<dyn Kernel>> {
    if let Some(copy) = copy(graph, body, output)? {
        return Ok(Box::new(copy));
    }
    let (reduced, mut order): (Vec<usize>, Vec<usize>) =
        (0..body.dims.len()).partition(|&at| body.reduced[at]);
    let inputs = body.loads.iter().map(|load| load.value).collect();
    let stored = graph.node(output).element;
    if folds_rows(body) && body.steps.last().is_some_and(|step| step.element == stored) {
        let across = [reduced.as_slice(), &order].concat();
        // A type whose columns are not reduced is read along its rows.
        if let Ok(fold) = column_fold(graph, body, Cut { order: &across, rows: reduced.len() }) {
            return Ok(Box::new(Columns { fold, inputs, output, name: name(body) }));
        }
    }
    let rows = if reduced.is_empty() { order.len().saturating_sub(1) } else { order.len() };
    order.extend(&reduced);
    let program = program(graph, body, Cut { order: &order, rows }, Tile::default(), stored)?;
    Ok(Box::new(Loop { program, inputs, output, name: name(body) }))
}

/// Whether a loop ends in its only reduction, and what it reads lies side by side across the reduction, not along it.
fn folds_rows(body: &Body) -> bool {
    let is_reduction = |step: &BodyStep| matches!(step.op, BodyOp::Reduce(_));
    let only = body.steps.iter().filter(|step| is_reduction(step)).count() == 1;
    let beside = |load: &Load, reduced: bool| {
        let mut strides = load.view.strides.iter().zip(&body.dims).zip(&body.reduced);
        strides.any(|((&stride, &size), &own)| own == reduced && size > 1 && stride.abs() == 1)
    };
    let empty = body.dims.contains(&0);
    !empty
        && only
        && body.steps.last().is_some_and(is_reduction)
        && body.loads.iter().any(|load| beside(load, false))
        && !body.loads.iter().any(|load| beside(load, true))
}

fn name(body: &Body) -> String {
    let steps =
        body.steps.iter().filter(|step| !matches!(step.op, BodyOp::Load(_) | BodyOp::Constant(_))).count();
    if body.has_reductions() { format!("rows of {steps}") } else { format!("elements of {steps}") }
}

struct Columns {
    fold: ColumnFold,
    inputs: Vec<NodeId>,
    output: NodeId,
    name: String,
}

impl Kernel for Columns {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let inputs: Vec<*const u8> = self.inputs.iter().map(|&id| memory.read(id)).collect();
        // SAFETY: as the caller promises; the accesses were made from the sizes of the values.
        unsafe { self.fold.run(memory.pool, &inputs, &[memory.write(self.output)]) };
        Ok(())
    }

    fn name(&self) -> String {
        format!("{} into one", self.name)
    }
}

struct Loop {
    program: Program,
    inputs: Vec<NodeId>,
    output: NodeId,
    name: String,
}

impl Kernel for Loop {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let inputs: Vec<*const u8> = self.inputs.iter().map(|&id| memory.read(id)).collect();
        // SAFETY: as the caller promises; the accesses were made from the sizes of the values.
        unsafe { self.program.run(memory.pool, &inputs, &[memory.write(self.output)]) };
        Ok(())
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// A loop that only moves elements.
fn copy(graph: &Graph, body: &Body, output: NodeId) -> Result<Option<Moved>> {
    let ([step], [load]) = (body.steps.as_slice(), body.loads.as_slice()) else { return Ok(None) };
    if !matches!(step.op, BodyOp::Load(_)) || !body.output.is_dense() || load.view.offset < 0 {
        return Ok(None);
    }
    let element = graph.node(output).element;
    if graph.node(load.value).element != element {
        return Ok(None);
    }
    let size = element.byte_width();
    let source = Layout { offset: load.view.offset as usize, strides: load.view.strides.clone() };
    let target = Layout { offset: 0, strides: dense_strides(&body.dims) };
    let copy = Copy::new(size, &body.dims, &source, &target)?;
    Ok(Some(Moved { copy, from: load.value, to: output }))
}

struct Moved {
    copy: Copy,
    from: NodeId,
    to: NodeId,
}

impl Kernel for Moved {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        // SAFETY: as the caller promises; the layouts were made from the sizes of the values.
        unsafe { self.copy.run(memory.pool, memory.read(self.from), memory.write(self.to)) };
        Ok(())
    }

    fn name(&self) -> String {
        "copy".to_owned()
    }
}
