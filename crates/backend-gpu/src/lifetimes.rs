//! What a run holds on its device, and from which step to which.

use warpforge_fusion::NodeId;
use warpforge_runtime::Lifetime;

use crate::program::CompiledProgram;

/// The memory of a run: constants, what was computed from them once, values, the workspace of kernels and libraries, outputs.
pub(crate) fn lifetimes(made: &CompiledProgram) -> Vec<Lifetime> {
    let CompiledProgram { nodes, plan, .. } = made;
    let whole = |kind: &'static str| {
        move |&id: &NodeId| {
            let node = nodes.node(id);
            Lifetime::of_all_kernels(format!("{} {:?}", node.element, node.dims), kind, node.bytes() as u64)
        }
    };
    let constants = plan.constants.iter().filter(|&&id| nodes.constant(id).is_some()).map(whole("constant"));
    let hoisted = made.hoisted.iter().map(whole("weights"));
    let values = plan.value_lifetimes(nodes, |cluster| {
        let &step = made.step_of_cluster.get(cluster)?;
        Some((step, made.steps.get(step)?.step.name()))
    });
    // Behind the block of values.
    let workspace = Lifetime {
        offset: Some(plan.block as u64),
        first: Some(0),
        ..Lifetime::of_all_kernels("workspace".to_owned(), "value", made.layout.workspace.bytes() as u64)
    };
    let held = constants.chain(hoisted).chain(values).chain(std::iter::once(workspace));
    held.filter(|lifetime| lifetime.bytes > 0).collect()
}
