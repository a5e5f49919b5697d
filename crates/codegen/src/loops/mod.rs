//! Loops: elementwise chains, reductions with their prologues and epilogues, copies.

mod access;
mod elementwise;
mod mapping;
mod rows;
mod stages;
mod transposed;

use warpforge_fusion::Graph;
use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp, Cluster};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{Effort, Options};

/// The kernels of a loop.
pub(crate) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    body: &Body,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.effort == Effort::Fast
        && !body.has_reductions()
        && let Some(transposed) = transposed::plan(body)
    {
        return transposed.emit(graph, cluster, body, options);
    }
    if body.has_reductions() {
        rows::emit(graph, cluster, body, options)
    } else {
        elementwise::emit(graph, cluster, body, options)
    }
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
