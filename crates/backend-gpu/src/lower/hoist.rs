//! Constant hoisting: tasks that depend on constants only run once.

use std::collections::HashSet;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId};

use super::task::{Lowering, Task};

/// Most bytes of hoisted values.
const MAX_HOISTED_BYTES: usize = 1 << 30;

/// Moves tasks that depend on constants only to the setup tasks.
pub(super) fn hoist_constants(
    graph: &Graph,
    setup: &mut Vec<Task>,
    tasks: &mut Vec<Task>,
    outputs: &[Operand],
) {
    let mut known: HashSet<NodeId> = setup.iter().map(|task| task.cluster.output).collect();
    let is_known = |known: &HashSet<NodeId>, id: NodeId| known.contains(&id) || graph.constant(id).is_some();
    let mut bytes = 0;
    let mut every_run = Vec::with_capacity(tasks.len());
    for task in tasks.drain(..) {
        let output = task.cluster.output;
        let node = graph.node(output);
        let given = outputs.iter().any(|given| given.value == output);
        let fits = bytes + node.bytes() <= MAX_HOISTED_BYTES;
        let plain = !matches!(task.lowering, Lowering::Host(_))
            && !node.op.is_tuple()
            && task.cluster.results().len() == 1;
        if plain && fits && !given && task.cluster.reads().iter().all(|&id| is_known(&known, id)) {
            bytes += node.bytes();
            known.insert(output);
            setup.push(task);
        } else {
            every_run.push(task);
        }
    }
    *tasks = every_run;
}
