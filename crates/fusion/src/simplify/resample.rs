//! Weighted sums of gathers along a dimension as one operation: interpolation, as PyTorch's is imported.

use std::collections::{HashMap, HashSet};

use warpforge_ir::attr::GatherDims;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, IntType};

use super::rewrite::Rewrite;
use crate::graph::{Graph, Node, NodeId, Op, inverse};
use crate::view::LayoutOp;

/// Fewest elements that follow each other for which another order pays: rows that are shorter than a vector are summed one by one.
const SHORTEST_ROW: usize = 16;

/// A value that is one tap or the sum of several.
struct Found {
    source: NodeId,
    axis: usize,
    taps: Vec<Tap>,
}

#[derive(Clone, Copy)]
struct Tap {
    gather: NodeId,
    indices: NodeId,
    weights: NodeId,
}

/// The graph with resampling in the place of weighted sums of gathers. Where only another order of the dimensions is used, it is done in that order.
pub(crate) fn resampled(graph: &Graph) -> Graph {
    let found = sums(graph);
    if found.is_empty() {
        return graph.clone();
    }
    let orders = orders(graph, &found);
    let mut rewrite = Rewrite::new(graph);
    for id in graph.ids() {
        match found.get(&id) {
            Some(sum) => make(&mut rewrite, id, sum, orders.get(&id)),
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

/// The sums of two or more taps that are no part of another sum.
fn sums(graph: &Graph) -> HashMap<NodeId, Found> {
    let users = graph.users();
    let mut partial: HashMap<NodeId, Found> = HashMap::new();
    for id in graph.ids() {
        let node = graph.node(id);
        let is_inner = |id: NodeId| users[id.index()].len() == 1 && !graph.outputs.contains(&id);
        let (Op::Elementwise(function), &[a, b]) = (&node.op, node.inputs.as_slice()) else { continue };
        let sum = match function {
            Function::Multiply => [(a, b), (b, a)].into_iter().find_map(|(gather, weights)| {
                is_inner(gather).then(|| tap(graph, gather, weights)).flatten()
            }),
            Function::Add => match (partial.get(&a), partial.get(&b)) {
                // Sums are from the first tap on.
                (Some(sum), Some(last)) if last.taps.len() == 1 && is_inner(a) && is_inner(b) => {
                    let same = (sum.source, sum.axis) == (last.source, last.axis);
                    let taps = [&sum.taps[..], &last.taps[..]].concat();
                    same.then_some(Found { source: sum.source, axis: sum.axis, taps })
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(sum) = sum {
            if sum.taps.len() > 1 {
                partial.remove(&a);
                partial.remove(&b);
            }
            partial.insert(id, sum);
        }
    }
    partial.retain(|_, sum| sum.taps.len() > 1);
    partial
}

/// Elements of a dimension, each times its weight.
fn tap(graph: &Graph, gather: NodeId, weights: NodeId) -> Option<Found> {
    let node = graph.node(gather);
    let (Op::Gather(dims, slice), &[source, indices]) = (&node.op, node.inputs.as_slice()) else {
        return None;
    };
    let Op::Layout(LayoutOp::Broadcast { map, .. }) = &graph.node(weights).op else { return None };
    let (&[axis], &[weights]) = (map.as_slice(), graph.node(weights).inputs.as_slice()) else { return None };
    let (sizes, places) = (&graph.node(source).dims, graph.node(indices));
    let is_axis = |dims: &[i64]| matches!(dims, [dim] if usize::try_from(*dim) == Ok(axis));
    let others: Vec<i64> = (0..sizes.len() as i64).filter(|&dim| dim != axis as i64).collect();
    let GatherDims { offset_dims, collapsed_slice_dims, operand_batching_dims, start_index_map, .. } = dims;
    let single = slice
        .iter()
        .zip(sizes)
        .enumerate()
        .all(|(at, (&slice, &size))| if at == axis { slice == 1 && size > 0 } else { slice == size });
    let vector = places.dims.first() == Some(&places.len()) && dims.index_vector_dim == 1;
    let takes = is_axis(start_index_map) && is_axis(collapsed_slice_dims) && operand_batching_dims.is_empty();
    let computed = matches!(node.element, ElementType::F32 | ElementType::F64);
    let read = matches!(places.element, ElementType::Int(IntType::I32 | IntType::I64));
    (single && vector && takes && *offset_dims == others && computed && read).then(|| Found {
        source,
        axis,
        taps: vec![Tap { gather, indices, weights }],
    })
}

/// For sums all of whose users want their dimensions in one other order, that order, where its rows are long enough.
fn orders<'g>(graph: &'g Graph, found: &HashMap<NodeId, Found>) -> HashMap<NodeId, &'g [usize]> {
    let users = graph.users();
    let mut reads: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (&id, sum) in found {
        reads.entry(sum.source).or_default().push(id);
    }
    let gathers: HashSet<NodeId> = found.values().flat_map(|sum| &sum.taps).map(|tap| tap.gather).collect();
    let mut orders: HashMap<NodeId, &'g [usize]> = HashMap::new();
    for id in graph.ids().rev().filter(|id| found.contains_key(id) && !graph.outputs.contains(id)) {
        let others = users[id.index()].iter().filter(|user| !gathers.contains(user));
        let direct = others.map(|&user| match &graph.node(user).op {
            Op::Layout(LayoutOp::Transpose(order)) => Some(order.as_slice()),
            _ => None,
        });
        let through = reads.get(&id).into_iter().flatten().map(|sum| orders.get(sum).copied());
        let mut wanted = direct.chain(through);
        let Some(Some(first)) = wanted.next() else { continue };
        let row = first.last().map_or(1, |&dim| graph.node(id).dims[dim]);
        if row >= SHORTEST_ROW && wanted.all(|order| order == Some(first)) {
            orders.insert(id, first);
        }
    }
    orders
}

fn make(rewrite: &mut Rewrite<'_>, id: NodeId, sum: &Found, order: Option<&&[usize]>) {
    let Node { element, dims, origin, .. } = rewrite.old.node(id).clone();
    let given: Vec<NodeId> = sum.taps.iter().flat_map(|tap| [tap.indices, tap.weights]).collect();
    let mut inputs = vec![rewrite.made[&sum.source]];
    inputs.extend(given.iter().map(|id| rewrite.made[id]));
    let builder = &mut rewrite.builder;
    builder.origin = origin;
    let result = match order {
        None => builder.add(Op::Resample(sum.axis), inputs, element, dims),
        Some(order) => {
            inputs[0] = builder.transpose(inputs[0], order.to_vec());
            let axis = order.iter().position(|&dim| dim == sum.axis).unwrap_or(sum.axis);
            let dims = order.iter().map(|&dim| dims[dim]).collect();
            let result = builder.add(Op::Resample(axis), inputs, element, dims);
            builder.transpose(result, inverse(order))
        }
    };
    rewrite.made.insert(id, result);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    /// Two taps along dimension 2 of `tensor<1x16x4x5xf32>`, to 8 elements, with what is done to their sum.
    fn interpolation(second: &str, after: &str, result: &str) -> Graph {
        let take = "<{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 3], collapsed_slice_dims = [2], start_index_map = [2], \
            index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 1, 5>}> : (tensor<1x16x4x5xf32>, tensor<8xi64>) -> tensor<1x16x8x5xf32>";
        let repeat = "dims = [2] : (tensor<8xf32>) -> tensor<1x16x8x5xf32>";
        graph(&format!(
            "func.func @main(%x: tensor<1x16x4x5xf32>, %y: tensor<1x16x4x5xf32>, %i: tensor<8xi64>, %j: tensor<8xi64>, %v: tensor<8xf32>, \
             %w: tensor<8xf32>) -> {result} {{
            %0 = \"stablehlo.gather\"(%x, %i) {take}
            %1 = stablehlo.broadcast_in_dim %v, {repeat}
            %2 = stablehlo.multiply %0, %1 : tensor<1x16x8x5xf32>
            %3 = \"stablehlo.gather\"({second}, %j) {take}
            %4 = stablehlo.broadcast_in_dim %w, {repeat}
            %5 = stablehlo.multiply %4, %3 : tensor<1x16x8x5xf32>
            %6 = stablehlo.add %2, %5 : tensor<1x16x8x5xf32>
            {after}
            return %r : {result} }}"
        ))
    }

    fn operations(graph: &Graph) -> Vec<(String, Vec<usize>)> {
        let graph = resampled(graph).pruned();
        let computed = graph.nodes.iter().filter(|node| !matches!(node.op, Op::Argument(_)));
        computed.map(|node| (node.op.name(), node.dims.clone())).collect()
    }

    #[test]
    fn sums_of_taps_are_one_operation() {
        let negated = "%r = stablehlo.negate %6 : tensor<1x16x8x5xf32>";
        let found = operations(&interpolation("%x", negated, "tensor<1x16x8x5xf32>"));
        assert_eq!(
            found,
            [("resample".to_owned(), vec![1, 16, 8, 5]), ("negate".to_owned(), vec![1, 16, 8, 5])]
        );
    }

    #[test]
    fn the_order_that_all_users_want_is_taken() {
        let moved = "%r = stablehlo.transpose %6, dims = [0, 2, 3, 1] : (tensor<1x16x8x5xf32>) -> tensor<1x8x5x16xf32>";
        let found = operations(&interpolation("%x", moved, "tensor<1x8x5x16xf32>"));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["transpose", "resample"]);
        assert_eq!(found[1].1, [1, 8, 5, 16]);
    }

    #[test]
    fn short_rows_stay_in_their_order() {
        let moved = "%r = stablehlo.transpose %6, dims = [0, 1, 3, 2] : (tensor<1x16x8x5xf32>) -> tensor<1x16x5x8xf32>";
        let found = operations(&interpolation("%x", moved, "tensor<1x16x5x8xf32>"));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["resample", "transpose"]);
    }

    #[test]
    fn taps_of_two_sources_stay_apart() {
        let negated = "%r = stablehlo.negate %6 : tensor<1x16x8x5xf32>";
        let found = operations(&interpolation("%y", negated, "tensor<1x16x8x5xf32>"));
        assert!(found.iter().all(|(name, _)| name != "resample"));
    }

    #[test]
    fn what_others_read_stays() {
        let both = "%r = stablehlo.add %6, %0 : tensor<1x16x8x5xf32>";
        let found = operations(&interpolation("%x", both, "tensor<1x16x8x5xf32>"));
        assert!(found.iter().all(|(name, _)| name != "resample"));
    }
}
