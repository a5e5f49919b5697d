//! Loops: elementwise chains, reductions with their prologues and epilogues, copies.

mod access;
mod elementwise;
mod mapping;
mod rows;
mod stages;
mod transposed;
mod views;

pub(crate) use views::views;

use warpforge_fusion::cluster::Body;

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
        && body.also.is_empty()
        && let Some(transposed) = transposed::plan(body)
    {
        return transposed.emit(request, body);
    }
    if body.has_reductions() { rows::emit(request, body) } else { elementwise::emit(request, body) }
}
