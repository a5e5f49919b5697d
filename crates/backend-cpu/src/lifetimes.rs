//! What a run holds in memory, and from which kernel to which.

use warpforge_fusion::Graph;
use warpforge_runtime::Lifetime;
use warpforge_runtime::memory_plan::MemoryPlan;
use warpforge_tensor::Tensor;

/// The memory of a run: constants, packed weights of kernels (name and bytes of each kernel), values and outputs.
pub(crate) fn lifetimes(
    plan: &MemoryPlan,
    graph: &Graph,
    constants: &[Tensor],
    kernels: &[(String, usize)],
) -> Vec<Lifetime> {
    let constants = constants.iter().map(|tensor| {
        let name = format!("{} {:?}", tensor.element_type(), tensor.dims());
        Lifetime::of_all_kernels(name, "constant", tensor.bytes().len() as u64)
    });
    let packed =
        kernels.iter().map(|(name, bytes)| Lifetime::of_all_kernels(name.clone(), "weights", *bytes as u64));
    let values = plan.value_lifetimes(graph, |at| Some((at, kernels.get(at)?.0.clone())));
    constants.chain(packed).filter(|lifetime| lifetime.bytes > 0).chain(values).collect()
}
