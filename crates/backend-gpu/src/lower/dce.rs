//! Dead-code elimination of tasks.

use std::collections::HashSet;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId, Op};

use super::task::Task;

/// Removes tasks whose results are unused.
pub(super) fn eliminate_dead_tasks(graph: &Graph, tasks: &mut Vec<Task>, outputs: &[Operand]) {
    let mut read: HashSet<NodeId> = outputs.iter().map(|output| output.value).collect();
    let mut kept = Vec::with_capacity(tasks.len());
    for task in tasks.drain(..).rev() {
        let opaque = matches!(graph.node(task.cluster.output).op, Op::Opaque(_));
        let mut given = task.cluster.results().into_iter().flat_map(|id| graph.results(id));
        if opaque || given.any(|given| read.contains(&given)) {
            read.extend(task.cluster.reads());
            kept.push(task);
        }
    }
    kept.reverse();
    *tasks = kept;
}
