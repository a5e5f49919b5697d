//! Attention: two products with a softmax over whole rows between them.

mod flash;
mod parts;
mod softmax;

pub use parts::parts;

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Attention, Cluster};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{Dialect, Effort, Options};

/// The kernels of attention: one that never has the scores in memory, where it can be; three otherwise.
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
    parts::emit(graph, cluster, options)
}
