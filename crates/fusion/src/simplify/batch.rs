//! Matrix products whose batch is several dimensions reshaped into one: over those dimensions again.
//!
//! `torch.bmm` has one batch dimension, so what PyTorch exports merges batch and heads before a product and splits them after it. An operand
//! that is transposed before the merge would be copied; with several batch dimensions it is a view.

use super::rewrite::Rewrite;
use crate::graph::{Dot, Graph, Node, NodeId, Op};
use crate::view::{LayoutOp, View};

/// The graph with such products over the dimensions that were merged.
pub(super) fn unmerge(graph: &Graph) -> Graph {
    let found: Vec<Option<Vec<usize>>> = graph.ids().map(|id| merged_sizes(graph, id)).collect();
    if found.iter().all(Option::is_none) {
        return graph.clone();
    }
    let mut rewrite = Rewrite::new(graph);
    for (id, sizes) in graph.ids().zip(found) {
        match sizes {
            Some(sizes) => unmerged(&mut rewrite, id, &sizes),
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

/// The sizes of the dimensions that the batch dimension of a product was merged from, where an operand had to be copied for it.
fn merged_sizes(graph: &Graph, id: NodeId) -> Option<Vec<usize>> {
    let node = graph.node(id);
    let Op::Dot(Dot { lhs_batch, rhs_batch, .. }) = &node.op else { return None };
    let (&[lhs], &[rhs]) = (lhs_batch.as_slice(), rhs_batch.as_slice()) else { return None };
    let operands = node.inputs.iter().copied().zip([lhs, rhs]);
    operands
        .filter(|&(operand, _)| is_copied(graph, operand))
        .find_map(|(operand, at)| merged(graph, operand, at))
}

/// Whether no view of a value in memory describes a node.
fn is_copied(graph: &Graph, mut id: NodeId) -> bool {
    let mut steps = Vec::new();
    while let Op::Layout(step) = &graph.node(id).op {
        steps.push(step);
        id = graph.node(id).inputs[0];
    }
    View::dense(&graph.node(id).dims).after_all(steps.into_iter().rev()).is_none()
}

/// The sizes of the dimensions that a dimension was merged from.
fn merged(graph: &Graph, id: NodeId, at: usize) -> Option<Vec<usize>> {
    let node = graph.node(id);
    match &node.op {
        Op::Layout(LayoutOp::Transpose(permutation)) => merged(graph, node.inputs[0], permutation[at]),
        Op::Layout(LayoutOp::Reshape(dims)) => {
            let from = &graph.node(node.inputs[0]).dims;
            let behind = dims.len() - at - 1;
            let middle = from.get(at..from.len().checked_sub(behind)?)?;
            let is_kept = from[..at] == dims[..at] && from[from.len() - behind..] == dims[at + 1..];
            (is_kept && middle.len() > 1).then(|| middle.to_vec())
        }
        _ => None,
    }
}

/// Puts a product over several batch dimensions in the place of one over their product.
fn unmerged(rewrite: &mut Rewrite<'_>, id: NodeId, sizes: &[usize]) {
    let Node { op, inputs, element, dims, origin } = rewrite.old.node(id).clone();
    let (Op::Dot(dot), &[lhs, rhs]) = (op, inputs.as_slice()) else { return };
    rewrite.builder.origin = origin;
    let (left, right) = (dot.lhs_batch[0], dot.rhs_batch[0]);
    let inputs = vec![split(rewrite, lhs, left, sizes), split(rewrite, rhs, right, sizes)];
    let batch = |at: usize| (at..at + sizes.len()).collect();
    let moved =
        |contract: &[usize], at: usize| contract.iter().map(|&dim| shifted(dim, at, sizes.len())).collect();
    let several = Dot {
        lhs_batch: batch(left),
        rhs_batch: batch(right),
        lhs_contract: moved(&dot.lhs_contract, left),
        rhs_contract: moved(&dot.rhs_contract, right),
        keeps_precision: dot.keeps_precision,
        imprecise_sums: dot.imprecise_sums,
    };
    let result = rewrite.builder.add(Op::Dot(several), inputs, element, replaced(&dims, 0, sizes));
    let result = rewrite.builder.reshape(result, dims);
    rewrite.made.insert(id, result);
}

/// A node of the old graph with a dimension as several.
fn split(rewrite: &mut Rewrite<'_>, id: NodeId, at: usize, sizes: &[usize]) -> NodeId {
    let node = rewrite.old.node(id);
    match &node.op {
        Op::Layout(LayoutOp::Transpose(permutation)) => {
            let from = permutation[at];
            let inner = split(rewrite, node.inputs[0], from, sizes);
            let order = permutation.iter().flat_map(|&dim| {
                let first = shifted(dim, from, sizes.len());
                first..first + if dim == from { sizes.len() } else { 1 }
            });
            rewrite.builder.transpose(inner, order.collect())
        }
        _ => rewrite.builder.reshape(rewrite.made[&id], replaced(&node.dims, at, sizes)),
    }
}

/// Where a dimension is when the one at `at` has become `count`.
fn shifted(dim: usize, at: usize, count: usize) -> usize {
    if dim > at { dim + count - 1 } else { dim }
}

/// Sizes with those of several dimensions in the place of one.
fn replaced(dims: &[usize], at: usize, sizes: &[usize]) -> Vec<usize> {
    [&dims[..at], sizes, &dims[at + 1..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    /// The batch dimensions of the one product of a function of `%x`, and whether its operands are read where they are.
    fn product(body: &str, operands: &str, to: &str) -> (usize, bool) {
        let text = format!(
            "func.func @main(%x: tensor<2x5x3x4xf32>, %y: tensor<6x4x5xf32>) -> tensor<{to}xf32> {{\n{body}\n
                %p = stablehlo.dot_general {operands}\n
                return %p : tensor<{to}xf32>\n}}"
        );
        let graph = unmerge(&graph(&text));
        let found = |node: &&Node| matches!(node.op, Op::Dot(_));
        let node = graph.nodes.iter().find(found).expect("a product");
        let Op::Dot(dot) = &node.op else { unreachable!("found as a product") };
        (dot.lhs_batch.len(), node.inputs.iter().all(|&input| !is_copied(&graph, input)))
    }

    const HEADS: &str =
        "%t = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<2x5x3x4xf32>) -> tensor<2x3x5x4xf32>
        %m = stablehlo.reshape %t : (tensor<2x3x5x4xf32>) -> tensor<6x5x4xf32>";

    #[test]
    fn heads_that_were_merged_are_read_where_they_are() {
        let operands = "%m, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x5x4xf32>, tensor<6x4x5xf32>) -> tensor<6x5x5xf32>";
        assert_eq!(product(HEADS, operands, "6x5x5"), (2, true));
    }

    #[test]
    fn a_transpose_behind_the_merge_moves_before_it() {
        let body = format!(
            "{HEADS}\n%n = stablehlo.transpose %m, dims = [0, 2, 1] : (tensor<6x5x4xf32>) -> tensor<6x4x5xf32>"
        );
        let operands = "%n, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<6x4x5xf32>, tensor<6x4x5xf32>) -> tensor<6x4x4xf32>";
        assert_eq!(product(&body, operands, "6x4x4"), (2, true));
    }

    #[test]
    fn a_batch_that_is_a_view_stays() {
        let body = "%m = stablehlo.reshape %x : (tensor<2x5x3x4xf32>) -> tensor<10x3x4xf32>";
        let operands = "%m, %m, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<10x3x4xf32>, tensor<10x3x4xf32>) -> tensor<10x3x3xf32>";
        assert_eq!(product(body, operands, "10x3x3"), (1, true));
    }

    #[test]
    fn a_merge_of_other_dimensions_stays() {
        let body =
            "%t = stablehlo.transpose %x, dims = [2, 1, 0, 3] : (tensor<2x5x3x4xf32>) -> tensor<3x5x2x4xf32>
            %m = stablehlo.reshape %t : (tensor<3x5x2x4xf32>) -> tensor<6x5x4xf32>";
        let operands = "%m, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x5x4xf32>, tensor<6x4x5xf32>) -> tensor<6x5x5xf32>";
        assert_eq!(product(body, operands, "6x5x5"), (1, false));
    }
}
