//! Constant hoisting: tasks that depend on constants only run once.

use std::collections::HashSet;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId};

use super::task::{Lowering, Task};

/// Most bytes that hoisted values may take beyond those of the constants that they are computed from.
const MAX_ADDED_BYTES: usize = 1 << 30;

/// Moves tasks that depend on constants only to the setup tasks.
pub(super) fn hoist_constants(
    graph: &Graph,
    setup: &mut Vec<Task>,
    tasks: &mut Vec<Task>,
    outputs: &[Operand],
) {
    let mut known: HashSet<NodeId> = setup.iter().map(|task| task.cluster.output).collect();
    let is_known = |known: &HashSet<NodeId>, id: NodeId| known.contains(&id) || graph.constant(id).is_some();
    let mut added = 0;
    let mut every_run = Vec::with_capacity(tasks.len());
    for task in tasks.drain(..) {
        let output = task.cluster.output;
        let node = graph.node(output);
        let given = outputs.iter().any(|given| given.value == output);
        // A constant in another type or order takes the place of what it is made from.
        let read: usize = task.cluster.reads().iter().map(|&id| graph.node(id).bytes()).sum();
        let adds = node.bytes().saturating_sub(read);
        let fits = added + adds <= MAX_ADDED_BYTES;
        let plain = !matches!(task.lowering, Lowering::Host(_))
            && !node.op.is_tuple()
            && task.cluster.results().len() == 1;
        if plain && fits && !given && task.cluster.reads().iter().all(|&id| is_known(&known, id)) {
            added += adds;
            known.insert(output);
            setup.push(task);
        } else {
            every_run.push(task);
        }
    }
    *tasks = every_run;
}
