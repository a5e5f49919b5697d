//! Dimensions of a loop's domain, split where a value on the way repeats along a part of one.
//!
//! A scale for each 64 weights of a row is repeated in a shape that has those 64 as a dimension, and the result takes the shape of the
//! weights. Along a whole row no stride describes it. In a domain that has the 64 as a dimension of its own one does, and the
//! repeated scales need not be in memory.

use std::collections::{BTreeSet, HashSet};

use super::state::State;
use crate::graph::{NodeId, Op};
use crate::view::{LayoutOp, View};

/// Most nodes that are looked at.
const MOST_NODES: usize = 160;

/// The dimensions for a loop that gives a value, where those of the value do not do: for every repeated value that reaches it
/// element by element a stride for each.
pub(super) fn split_dims(state: &State<'_>, root: NodeId) -> Option<Vec<usize>> {
    let graph = state.graph;
    let dims = &graph.node(root).dims;
    let len = graph.node(root).len();
    let mut ends = ends_of(dims);
    let whole = ends.len();
    let (mut seen, mut pending) = (HashSet::new(), vec![root]);
    while let Some(id) = pending.pop() {
        let node = graph.node(id);
        if node.len() != len || !seen.insert(id) || seen.len() > MOST_NODES {
            continue;
        }
        let own = id == root || !state.needed[id.index()];
        let repeated = match &node.op {
            Op::Elementwise(_) | Op::Compare(..) if own => {
                pending.extend(&node.inputs);
                continue;
            }
            Op::Layout(LayoutOp::Reshape(_)) => {
                pending.extend(&node.inputs);
                continue;
            }
            Op::Layout(step @ LayoutOp::Broadcast { .. }) => {
                View::dense(&graph.node(node.inputs[0]).dims).after(step)?
            }
            Op::Iota(axis) => {
                let mut strides = vec![0; node.dims.len()];
                strides[*axis] = 1;
                View { offset: 0, dims: node.dims.clone(), strides }
            }
            _ => continue,
        };
        if repeated.after(&LayoutOp::Reshape(dims.clone())).is_none() {
            ends.extend(ends_of(&node.dims));
        }
    }
    if ends.len() == whole {
        return None;
    }
    let split = between(&ends)?;
    (split.last()? >= &state.kernels.shortest_row).then_some(split)
}

/// How many elements lie within each dimension's step and all dimensions behind it.
fn ends_of(dims: &[usize]) -> BTreeSet<usize> {
    let behind = dims.iter().rev().scan(1, |behind, &dim| {
        *behind *= dim;
        Some(*behind)
    });
    behind.filter(|&end| end > 1).collect()
}

/// The dimensions with such ends; nothing where one divides no other.
fn between(ends: &BTreeSet<usize>) -> Option<Vec<usize>> {
    let mut behind = 1;
    let mut dims = Vec::new();
    for &end in ends {
        if end % behind != 0 {
            return None;
        }
        dims.push(end / behind);
        behind = end;
    }
    dims.reverse();
    Some(dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Kind;
    use crate::testing::{graph, grouped};

    /// A weight of 8 rows from codes, with a scale for each `block` of them.
    fn restored(block: usize) -> String {
        let blocks = 8 * 48 / block;
        format!(
            "func.func @main(%c: tensor<8x48xf32>, %s: tensor<{blocks}xf32>) -> tensor<8x48xf32> {{
                %v = stablehlo.reshape %c : (tensor<8x48xf32>) -> tensor<{blocks}x{block}xf32>
                %m = stablehlo.multiply %s, %s : tensor<{blocks}xf32>
                %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<{blocks}xf32>) -> tensor<{blocks}x{block}xf32>
                %p = stablehlo.multiply %v, %b : tensor<{blocks}x{block}xf32>
                %r = stablehlo.reshape %p : (tensor<{blocks}x{block}xf32>) -> tensor<8x48xf32>
                %e = stablehlo.exponential %r : tensor<8x48xf32>
                return %e : tensor<8x48xf32>
            }}"
        )
    }

    fn domains(text: &str) -> Vec<Vec<usize>> {
        let clusters = grouped(&graph(text)).clusters;
        let domain = |kind: &Kind| match kind {
            Kind::Loop(body) => body.dims.clone(),
            other => panic!("{other:?}"),
        };
        clusters.iter().map(|cluster| domain(&cluster.kind)).collect()
    }

    #[test]
    fn scales_of_blocks_are_part_of_the_loop_that_has_the_weights() {
        assert_eq!(domains(&restored(16)), [[8, 3, 16]]);
        // Whole rows need no dimension of their own, and a block that goes over the end of a row has none.
        assert_eq!(domains(&restored(48)), [vec![8, 48]]);
        assert_eq!(domains(&restored(96)), [vec![4, 2, 48]]);
        assert_eq!(domains(&restored(32)).len(), 2);
    }

    #[test]
    fn rows_that_are_reduced_stay_whole() {
        let softmax = restored(16).replace(
            "return %e : tensor<8x48xf32>",
            "%zero = stablehlo.constant dense<0.0> : tensor<f32>
                %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x48xf32>, tensor<f32>) -> tensor<8xf32>
                %w = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<8xf32>) -> tensor<8x48xf32>
                %d = stablehlo.divide %e, %w : tensor<8x48xf32>
                return %d : tensor<8x48xf32>",
        );
        assert_eq!(domains(&softmax).last().unwrap(), &[8, 48]);
    }

    #[test]
    fn ends_that_divide_each_other_are_dimensions() {
        assert_eq!(ends_of(&[4, 1, 6, 1]), BTreeSet::from([6, 24]));
        assert_eq!(between(&BTreeSet::from([2, 64, 4096])), Some(vec![64, 32, 2]));
        assert_eq!(between(&BTreeSet::from([4, 6, 24])), None);
    }
}
