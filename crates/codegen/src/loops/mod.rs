//! Loops: elementwise chains, reductions with their prologues and epilogues, copies.

mod access;
mod elementwise;
mod mapping;
mod rows;
mod stages;
mod transposed;

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};

use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::Effort;

/// The kernels of a loop.
pub(crate) fn emit(request: Request<'_>, body: &Body) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.effort == Effort::Fast
        && !body.has_reductions()
        && let Some(transposed) = transposed::plan(body)
    {
        return transposed.emit(request, body);
    }
    if body.has_reductions() { rows::emit(request, body) } else { elementwise::emit(request, body) }
}

/// All views of a body: loads, output, iotas.
pub(crate) fn views(body: &Body) -> Vec<&View> {
    let iotas = body.steps.iter().filter_map(|step| match &step.op {
        BodyOp::Iota(view) => Some(view),
        _ => None,
    });
    body.loads.iter().map(|load| &load.view).chain([&body.output]).chain(iotas).collect()
}

/// The title of a loop.
fn title(body: &Body) -> String {
    let steps = body.steps.iter().filter(|step| !matches!(step.op, BodyOp::Load(_) | BodyOp::Constant(_)));
    let dims: Vec<String> = body.dims.iter().map(ToString::to_string).collect();
    let kind = if body.has_reductions() { "rows" } else { "elements" };
    match steps.count() {
        0 => format!("copy over {}", dims.join("x")),
        steps => format!("{kind} of {steps} over {}", dims.join("x")),
    }
}
