//! Loops: elementwise chains, reductions, copies.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_fusion::view::dense_strides;
use warpforge_fusion::{Graph, Id};
use warpforge_kernels::movement::{Copy, Layout};
use warpforge_kernels::program::Program;

use super::steps::{Tile, program};
use super::{Kernel, Memory, Result};

/// The kernel of a loop.
pub(super) fn kernel(graph: &Graph, body: &Body, output: Id) -> Result<Box<dyn Kernel>> {
    if let Some(copy) = copy(graph, body, output)? {
        return Ok(Box::new(copy));
    }
    let (folded, mut order): (Vec<usize>, Vec<usize>) = (0..body.dims.len()).partition(|&at| body.folded[at]);
    let rows = if folded.is_empty() { order.len().saturating_sub(1) } else { order.len() };
    order.extend(&folded);
    let program = program(graph, body, &order, rows, Tile::default())?;
    let inputs = body.loads.iter().map(|load| load.value).collect();
    Ok(Box::new(Loop { program, inputs, output, name: name(body) }))
}

fn name(body: &Body) -> String {
    let steps =
        body.steps.iter().filter(|step| !matches!(step.op, BodyOp::Load(_) | BodyOp::Constant(_))).count();
    if body.has_reductions() { format!("rows of {steps}") } else { format!("elements of {steps}") }
}

struct Loop {
    program: Program,
    inputs: Vec<Id>,
    output: Id,
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
fn copy(graph: &Graph, body: &Body, output: Id) -> Result<Option<Moved>> {
    let ([step], [load]) = (body.steps.as_slice(), body.loads.as_slice()) else { return Ok(None) };
    if !matches!(step.op, BodyOp::Load(_)) || !body.output.is_dense() || load.view.offset < 0 {
        return Ok(None);
    }
    let size = graph.node(output).element.byte_width();
    let source = Layout { offset: load.view.offset as usize, strides: load.view.strides.clone() };
    let target = Layout { offset: 0, strides: dense_strides(&body.dims) };
    let copy = Copy::new(size, &body.dims, &source, &target)?;
    Ok(Some(Moved { copy, from: load.value, to: output }))
}

struct Moved {
    copy: Copy,
    from: Id,
    to: Id,
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
