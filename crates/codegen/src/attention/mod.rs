//! Attention, two GEMMs with a softmax over rows between them, and its gradients.

mod causal;
mod flash;
mod gradient;
mod softmax;
mod softmax_gradient;

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Attention, AttentionGradient, Cluster};
use warpforge_tensor::{ElementType, FloatType};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{ComputePrecision, Dialect, Effort, Options};

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

/// The common tensor-core element type of operands of these types.
fn narrow(elements: &[ElementType], compute_precision: ComputePrecision) -> Option<&'static str> {
    let taken = |element: &ElementType| match (element, compute_precision) {
        (ElementType::Float(FloatType::Bf16), _)
        | (ElementType::Float(FloatType::F32), ComputePrecision::Bf16) => Some("wf_bf16"),
        (ElementType::Float(FloatType::F16), _)
        | (ElementType::Float(FloatType::F32), ComputePrecision::F16) => Some("wf_f16"),
        _ => None,
    };
    let first = taken(elements.first()?)?;
    elements.iter().all(|element| taken(element) == Some(first)).then_some(first)
}
