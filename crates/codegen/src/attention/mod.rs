//! Attention, two GEMMs with a softmax over rows between them, and its gradients.

mod flash;
mod gradient;

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Attention, AttentionGradient, Cluster};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{Dialect, Effort, Options};

/// The kernel of attention. Scores are never written to memory.
///
/// # Errors
///
/// When no fused kernel supports it. The two GEMMs and the loop can then be emitted separately.
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

/// The kernels of the attention gradients. No matrix of the size of the scores is written to memory.
///
/// # Errors
///
/// When no fused kernel supports it. The GEMMs and loops can then be emitted separately.
pub(crate) fn emit_gradient(
    graph: &Graph,
    cluster: &Cluster,
    attention: &AttentionGradient,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if options.dialect == Dialect::Cuda
        && options.effort == Effort::Fast
        && let Some(plan) = gradient::plan(graph, cluster, attention, options)?
    {
        return plan.emit();
    }
    Err(Unsupported::new("gradients of attention in one piece"))
}
