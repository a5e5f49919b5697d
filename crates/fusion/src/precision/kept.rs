//! The values of a training step that are rounded where they are produced, for all their readers.
//!
//! They are the values that PyTorch's autocast has in the narrow type as well: the results of linear layers that the backward pass reads again
//! (the input of an activation), and gradients that nothing but contractions and the sums of biases read. What residual additions
//! carry on keeps f32.

use std::collections::HashSet;

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::graph::{Depths, Graph, NodeId, Op, ReduceKind, below_layouts};
use crate::view::View;

/// A bias has so many times fewer elements than what it is added to.
const SMALL: usize = 16;

/// The values that are rounded, where the contractions of `narrow` read narrow operands.
pub(super) fn rounded_in_training(
    graph: &Graph,
    users: &[Vec<NodeId>],
    narrow: &HashSet<NodeId>,
) -> HashSet<NodeId> {
    let (direct, depths) = (graph.users(), Depths::new(graph));
    let outputs: HashSet<NodeId> =
        graph.outputs.iter().map(|&output| below_layouts(graph, output).0).collect();
    let is_rounded = |id: &NodeId| {
        let (node, readers) = (graph.node(*id), &users[id.index()]);
        if node.element != ElementType::F32 || matches!(node.op, Op::Layout(_)) || outputs.contains(id) {
            return false;
        }
        let is_contraction = |reader: &NodeId| narrow.contains(reader);
        let sums = |reader: &NodeId| matches!(graph.node(*reader).op, Op::Reduce(ReduceKind::Add, _));
        let is_loop = |reader: &NodeId| {
            matches!(graph.node(*reader).op, Op::Elementwise(_) | Op::Compare(..) | Op::Reduce(..))
        };
        let is_summed_gradient = readers.iter().any(is_contraction)
            && readers.iter().any(sums)
            && readers.iter().all(|reader| is_contraction(reader) || sums(reader));
        let is_kept = || {
            let is_beyond = |reader: &NodeId| depths.is_beyond(*reader, *id);
            is_linear(graph, users, narrow, *id)
                && readers.iter().any(is_beyond)
                && readers
                    .iter()
                    .any(|reader| !is_beyond(reader) && leads_to_contraction(graph, &direct, narrow, *reader))
                && readers.iter().all(|reader| is_contraction(reader) || is_loop(reader))
        };
        (is_summed_gradient && !graph.is_known(*id)) || is_kept()
    };
    graph.ids().filter(is_rounded).map(|id| above_layouts(graph, &direct, id)).collect()
}

/// Whether elementwise operations lead from one to a contraction, as an activation does. Gradients of weights lead to updates alone.
fn leads_to_contraction(
    graph: &Graph,
    direct: &[Vec<NodeId>],
    narrow: &HashSet<NodeId>,
    from: NodeId,
) -> bool {
    let (mut seen, mut pending) = (HashSet::new(), vec![from]);
    while let Some(id) = pending.pop() {
        let is_between = matches!(graph.node(id).op, Op::Elementwise(_) | Op::Compare(..) | Op::Layout(_));
        if !is_between || !seen.insert(id) {
            continue;
        }
        if direct[id.index()].iter().any(|user| narrow.contains(user)) {
            return true;
        }
        pending.extend(&direct[id.index()]);
    }
    false
}

/// Whether a value is the result of a linear layer, with its bias where it has one.
fn is_linear(graph: &Graph, users: &[Vec<NodeId>], narrow: &HashSet<NodeId>, id: NodeId) -> bool {
    let node = graph.node(id);
    match (&node.op, node.inputs.as_slice()) {
        (Op::Dot(_), _) => narrow.contains(&id),
        (Op::Elementwise(Function::Add), &[one, other]) => {
            let [one, other] = [one, other].map(|input| below_layouts(graph, input).0);
            let adds_bias = |product: NodeId, bias: NodeId| {
                narrow.contains(&product)
                    && matches!(graph.node(product).op, Op::Dot(_))
                    && users[product.index()] == [id]
                    && graph.node(bias).len() * SMALL <= node.len()
            };
            adds_bias(one, other) || adds_bias(other, one)
        }
        _ => false,
    }
}

/// The layout of a value that all its readers read it in, as far as they agree and one loop can store it.
fn above_layouts(graph: &Graph, direct: &[Vec<NodeId>], source: NodeId) -> NodeId {
    let dense = View::dense(&graph.node(source).dims);
    let (mut id, mut path) = (source, Vec::new());
    while let &[only] = direct[id.index()].as_slice() {
        let Op::Layout(step) = &graph.node(only).op else { break };
        path.push(step.clone());
        if graph.node(only).len() != graph.node(id).len() || dense.after_all(&path).is_none() {
            break;
        }
        id = only;
    }
    id
}
