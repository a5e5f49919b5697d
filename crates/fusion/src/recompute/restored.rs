//! Operands of contractions that are restored from fewer bytes, such as weights from their codes.
//!
//! A backward pass multiplies by the weights of the forward pass. Where these are restored from codes, each contraction restores them for
//! itself: between the two only the codes are in memory.

use std::collections::HashMap;

use crate::graph::{Depths, Graph, NodeId, Op, Rewrite, below_layouts};

/// How many times fewer bytes a value is restored from.
const FEWER: usize = 2;

/// Most operations between a value and what it is restored from: looking a code of 4 bits up by selections is more than a hundred.
const MOST_OPERATIONS: usize = 256;

/// The graph whose contractions each restore their operands.
pub(super) fn restore_for_each_reader(graph: Graph) -> Graph {
    let copies = copies(&graph);
    if copies.is_empty() {
        return graph;
    }
    let mut rewrite = Rewrite::new(&graph);
    let mut made = HashMap::new();
    for id in graph.ids() {
        let mut node = rewrite.next(id);
        for (at, &input) in graph.node(id).inputs.iter().enumerate() {
            let (source, layouts) = below_layouts(&graph, input);
            if let Some(&depth) = copies.get(&(id, source)) {
                let copy = again(&mut rewrite, &mut made, source, depth);
                node.inputs[at] = rewrite.relayout(&layouts, copy);
            }
        }
        let new = rewrite.push(node);
        rewrite.end(new);
    }
    rewrite.finish(None).pruned()
}

/// The depth of each contraction that restores an operand again, by the contraction and the operand.
fn copies(graph: &Graph) -> HashMap<(NodeId, NodeId), usize> {
    let depths = Depths::new(graph);
    let mut first: HashMap<NodeId, usize> = HashMap::new();
    let mut copies = HashMap::new();
    for id in graph.ids() {
        if !matches!(graph.node(id).op, Op::Dot(_) | Op::Conv(_)) {
            continue;
        }
        for &input in &graph.node(id).inputs {
            let (source, _) = below_layouts(graph, input);
            let depth = depths.reads_at(id);
            let of_first = match first.get(&source) {
                Some(&of_first) => of_first,
                None if is_restored(graph, source) => *first.entry(source).or_insert(depth),
                None => continue,
            };
            if depth != of_first {
                copies.insert((id, source), depth);
            }
        }
    }
    copies
}

/// Whether a value is computed from so many times fewer bytes of arguments and constants alone.
fn is_restored(graph: &Graph, of: NodeId) -> bool {
    let (mut leaves, mut seen, mut next) = (0, vec![of], 0);
    while let Some(&id) = seen.get(next) {
        next += 1;
        let node = graph.node(id);
        match node.op {
            Op::Argument(_) | Op::Constant(_) => leaves += node.bytes(),
            _ if !is_repeatable(&node.op) => return false,
            _ => {
                let inputs = node.inputs.iter().copied();
                let fresh: Vec<NodeId> = inputs.filter(|input| !seen.contains(input)).collect();
                seen.extend(fresh);
            }
        }
        if seen.len() > MOST_OPERATIONS {
            return false;
        }
    }
    seen.len() > 1 && leaves * FEWER <= graph.node(of).bytes()
}

/// Operations that take no longer than to write what they give.
fn is_repeatable(op: &Op) -> bool {
    matches!(
        op,
        Op::Elementwise(_)
            | Op::Compare(..)
            | Op::Iota(_)
            | Op::Layout(_)
            | Op::Pad { .. }
            | Op::Concat(_)
            | Op::Gather(..)
    )
}

/// A value restored once more, for the contractions at a depth.
fn again(
    rewrite: &mut Rewrite<'_>,
    made: &mut HashMap<(NodeId, usize), NodeId>,
    id: NodeId,
    depth: usize,
) -> NodeId {
    let graph = rewrite.old;
    if matches!(graph.node(id).op, Op::Argument(_) | Op::Constant(_)) {
        return rewrite.moved(id);
    }
    if let Some(&copy) = made.get(&(id, depth)) {
        return copy;
    }
    let mut node = graph.node(id).clone();
    for input in &mut node.inputs {
        *input = again(rewrite, made, *input, depth);
    }
    let copy = rewrite.push(node);
    made.insert((id, depth), copy);
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    /// A weight of bytes, or of a type that is as wide as the operand, that two contractions multiply by one after the other.
    fn twice(weight: &str) -> Graph {
        let restored = match weight {
            "i8" => "%f = stablehlo.convert %w : (tensor<8x8xi8>) -> tensor<8x8xf32>",
            _ => "%f = stablehlo.negate %w : tensor<8x8xf32>",
        };
        let dot = "contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>";
        graph(&format!(
            "func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8x{weight}>) -> tensor<8x8xf32> {{
                {restored}
                %y = stablehlo.dot_general %x, %f, {dot}
                %t = stablehlo.transpose %f, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
                %z = stablehlo.dot_general %y, %t, {dot}
                return %z : tensor<8x8xf32>
            }}"
        ))
    }

    fn elementwise(graph: &Graph) -> usize {
        graph.nodes.iter().filter(|node| matches!(node.op, Op::Elementwise(_))).count()
    }

    #[test]
    fn each_contraction_restores_a_weight_from_its_codes() {
        let before = twice("i8");
        assert_eq!(elementwise(&before), 1);
        let after = restore_for_each_reader(before);
        assert_eq!(elementwise(&after), 2);
        let dots: Vec<&crate::graph::Node> =
            after.nodes.iter().filter(|node| matches!(node.op, Op::Dot(_))).collect();
        let operand = |at: usize| below_layouts(&after, dots[at].inputs[1]).0;
        assert_ne!(operand(0), operand(1));
        // The second is restored after the first product.
        assert!(operand(1) > dots[1].inputs[0]);
    }

    #[test]
    fn a_value_that_takes_as_much_as_its_source_is_kept() {
        assert_eq!(elementwise(&restore_for_each_reader(twice("f32"))), 1);
    }
}
