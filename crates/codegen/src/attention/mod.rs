//! Attention: two products with a softmax over whole rows between them; and its gradients.

mod backward;
mod causal;
mod flash;
mod slope;
mod softmax;

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Attention, AttentionGradient, Cluster};
use warpforge_tensor::{ElementType, FloatType};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{Dialect, Effort, Options, Products};

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

/// The kernels of attention's gradients; none has a matrix of the scores' size in memory.
///
/// # Errors
///
/// When there are none: products and loops, each on its own, then give the same.
pub(crate) fn emit_backward(
    graph: &Graph,
    cluster: &Cluster,
    backward: &AttentionGradient,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if options.dialect == Dialect::Cuda
        && options.effort == Effort::Fast
        && let Some(plan) = backward::plan(graph, cluster, backward, options)?
    {
        return plan.emit();
    }
    Err(Unsupported::new("gradients of attention in one piece"))
}

/// The type that tensor cores take operands of these types in, when it is one for all.
fn narrow(elements: &[ElementType], products: Products) -> Option<&'static str> {
    let taken = |element: &ElementType| match (element, products) {
        (ElementType::Float(FloatType::Bf16), _) | (ElementType::Float(FloatType::F32), Products::Bf16) => {
            Some("wf_bf16")
        }
        (ElementType::Float(FloatType::F16), _) | (ElementType::Float(FloatType::F32), Products::F16) => {
            Some("wf_f16")
        }
        _ => None,
    };
    let first = taken(elements.first()?)?;
    elements.iter().all(|element| taken(element) == Some(first)).then_some(first)
}
