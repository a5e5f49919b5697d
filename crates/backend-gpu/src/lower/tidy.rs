//! What is left to do once every cluster has its task: work on constants is done once, work that nobody reads is not done.

use std::collections::HashSet;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId, Op};

use super::{Task, Way};

/// Most bytes that values computed once may take beside the constants.
const MOST_BYTES: usize = 1 << 30;

/// Whether each value depends on nothing but constants.
pub(super) fn constant(graph: &Graph) -> Vec<bool> {
    let mut constant: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let from_outside = matches!(node.op, Op::Argument(_) | Op::Opaque(_) | Op::Result(_));
        constant.push(!from_outside && node.inputs.iter().all(|input| constant[input.index()]));
    }
    constant
}

/// Moves tasks that read nothing but constants, and what such tasks give, to those that are done once.
pub(super) fn hoist(graph: &Graph, once: &mut Vec<Task>, tasks: &mut Vec<Task>, outputs: &[Operand]) {
    let mut known: HashSet<NodeId> = once.iter().map(|task| task.cluster.output).collect();
    let is_known = |known: &HashSet<NodeId>, id: NodeId| known.contains(&id) || graph.constant(id).is_some();
    let mut bytes = 0;
    let mut every_run = Vec::with_capacity(tasks.len());
    for task in tasks.drain(..) {
        let output = task.cluster.output;
        let node = graph.node(output);
        let given = outputs.iter().any(|given| given.value == output);
        let fits = bytes + node.bytes() <= MOST_BYTES;
        let plain = !matches!(task.way, Way::Host(_))
            && !matches!(node.op, Op::Opaque(_))
            && task.cluster.results().len() == 1;
        if plain && fits && !given && task.cluster.reads().iter().all(|&id| is_known(&known, id)) {
            bytes += node.bytes();
            known.insert(output);
            once.push(task);
        } else {
            every_run.push(task);
        }
    }
    *tasks = every_run;
}

/// Leaves out tasks whose results nobody reads.
pub(super) fn prune(graph: &Graph, tasks: &mut Vec<Task>, outputs: &[Operand]) {
    let mut read: HashSet<NodeId> = outputs.iter().map(|output| output.value).collect();
    let mut kept = Vec::with_capacity(tasks.len());
    for task in tasks.drain(..).rev() {
        let output = task.cluster.output;
        let many = matches!(graph.node(output).op, Op::Opaque(_));
        if many || task.cluster.results().iter().any(|given| read.contains(given)) {
            read.extend(task.cluster.reads());
            kept.push(task);
        }
    }
    kept.reverse();
    *tasks = kept;
}
