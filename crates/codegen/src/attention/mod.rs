//! Attention: two products with a softmax over whole rows between them.

mod causal;
mod flash;
mod softmax;

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Attention, Cluster};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{Dialect, Effort, Options};

/// The kernel of attention, one that never has the scores in memory.
///
/// # Errors
///
/// When it cannot be: two products and a loop, each on its own, then give the same.
pub(crate) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    attention: &Attention,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.dialect == Dialect::Cuda
        && options.effort == Effort::Fast
        && let Some(flash) = flash::plan(graph, cluster, attention, options)?
    {
        return flash.emit();
    }
    Err(Unsupported::new("attention in one piece"))
}
