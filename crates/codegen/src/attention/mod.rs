//! Attention, two GEMMs with a softmax over rows between them, and its gradients.

mod flash;
mod gradient;

use warpforge_fusion::cluster::{Attention, AttentionGradient};

use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::{Dialect, Effort};

/// The kernel of attention. Scores are never written to memory.
///
/// # Errors
///
/// When no fused kernel supports it. The two GEMMs and the loop can then be emitted separately.
pub(crate) fn emit(request: Request<'_>, attention: &Attention) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.dialect == Dialect::Cuda
        && options.effort == Effort::Fast
        && let Some(flash) = flash::plan(request, attention)?
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
    request: Request<'_>,
    attention: &AttentionGradient,
) -> Result<Emitted, Unsupported> {
    let options = request.options;
    if options.dialect == Dialect::Cuda
        && options.effort == Effort::Fast
        && let Some(plan) = gradient::plan(request, attention)?
    {
        return plan.emit();
    }
    Err(Unsupported::new("gradients of attention in one piece"))
}
