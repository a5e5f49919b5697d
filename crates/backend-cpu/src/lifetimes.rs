//! What a run holds in memory, and from which kernel to which.

use warpforge_fusion::Graph;
use warpforge_runtime::Lifetime;
use warpforge_runtime::memory_plan::{Allocation, MemoryPlan};
use warpforge_tensor::Tensor;

/// The memory of a run: constants, packed weights of kernels (name and bytes of each kernel), values and outputs.
pub(crate) fn lifetimes(
    plan: &MemoryPlan,
    graph: &Graph,
    constants: &[Tensor],
    kernels: &[(String, usize)],
) -> Vec<Lifetime> {
    let whole = |name: String, kind: &'static str, bytes: usize| Lifetime {
        name,
        kind,
        bytes: bytes as u64,
        offset: None,
        first: None,
        last: None,
    };
    let constants = constants.iter().map(|tensor| {
        let name = format!("{} {:?}", tensor.element_type(), tensor.dims());
        whole(name, "constant", tensor.bytes().len())
    });
    let packed = kernels.iter().map(|(name, bytes)| whole(name.clone(), "weights", *bytes));
    let values = plan.lifetimes.iter().filter_map(|&(id, first, last)| {
        let (kind, offset) = match plan.allocations.get(&id)? {
            Allocation::Block(offset) => ("value", Some(*offset as u64)),
            Allocation::Output(_) => ("output", None),
            _ => return None,
        };
        let (name, _) = kernels.get(first)?;
        let bytes = graph.node(id).bytes() as u64;
        Some(Lifetime { name: name.clone(), kind, bytes, offset, first: Some(first), last })
    });
    constants.chain(packed).chain(values).filter(|lifetime| lifetime.bytes > 0).collect()
}
