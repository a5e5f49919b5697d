//! Reductions of many elements to one: to partial results first, so that more than one block or thread takes part.

use warpforge_tensor::ElementType;

use super::rewrite::Rewrite;
use crate::graph::{Graph, Node, NodeId, Op, ReduceKind};

/// From how many elements on a reduction is split.
const MANY: usize = 1 << 15;

/// The fewest partial results that are worth a second reduction, and the most that one block reduces at once.
const PARTS: std::ops::RangeInclusive<usize> = 128..=1 << 15;

/// The graph with each large reduction to one element as two.
pub(super) fn split(graph: &Graph) -> Graph {
    let users = graph.users();
    let found: Vec<Option<Split>> = graph.ids().map(|id| Split::of(graph, &users, id)).collect();
    if found.iter().all(Option::is_none) {
        return graph.clone();
    }
    let mut rewrite = Rewrite::new(graph);
    for (id, found) in graph.ids().zip(found) {
        match found {
            Some(split) => split.make(&mut rewrite, id),
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

/// A reduction as two.
struct Split {
    kind: ReduceKind,
    /// The sizes of what is reduced, perhaps with one dimension as two.
    dims: Vec<usize>,
    /// How many of them the partial results have.
    outer: usize,
}

impl Split {
    /// A value that has other readers is not split off: a softmax or a norm reads it again, and is one kernel. Partial results
    /// would round a sum of a narrow float more than once.
    fn of(graph: &Graph, users: &[Vec<NodeId>], id: NodeId) -> Option<Self> {
        let node = graph.node(id);
        let (Op::Reduce(kind, _), &[input]) = (&node.op, node.inputs.as_slice()) else { return None };
        let from = graph.node(input);
        let is_alone = users[input.index()].len() == 1 && !graph.outputs.contains(&input);
        let is_wide = matches!(node.element, ElementType::F32 | ElementType::F64);
        if node.len() != 1 || from.len() < MANY || !is_alone || !is_wide {
            return None;
        }
        let (dims, outer) = halves(&from.dims)?;
        Some(Self { kind: *kind, dims, outer })
    }

    fn make(self, rewrite: &mut Rewrite<'_>, id: NodeId) {
        let Self { kind, dims, outer } = self;
        let Node { inputs, element, dims: result, origin, .. } = rewrite.old.node(id).clone();
        let mut value = rewrite.made[&inputs[0]];
        let builder = &mut rewrite.builder;
        builder.origin = origin;
        if rewrite.old.node(inputs[0]).dims != dims {
            value = builder.reshape(value, dims.clone());
        }
        let inner = (outer..dims.len()).collect();
        let partial = builder.add(Op::Reduce(kind, inner), vec![value], element, dims[..outer].to_vec());
        let whole = builder.add(Op::Reduce(kind, (0..outer).collect()), vec![partial], element, Vec::new());
        let whole = if result.is_empty() { whole } else { builder.reshape(whole, result) };
        rewrite.made.insert(id, whole);
    }
}

/// Sizes with one dimension as two where that is needed, and how many of the leading ones have about the square root of all elements.
fn halves(dims: &[usize]) -> Option<(Vec<usize>, usize)> {
    let elements: usize = dims.iter().product();
    let wanted = elements.isqrt().clamp(*PARTS.start(), *PARTS.end());
    let mut best: Option<(usize, usize, usize)> = None;
    let mut before = 1;
    for (at, &dim) in dims.iter().enumerate() {
        for factor in divisors(dim) {
            let parts = before * factor;
            let is_nearer = best.is_none_or(|(known, ..)| parts.abs_diff(wanted) < known.abs_diff(wanted));
            if PARTS.contains(&parts) && parts < elements && is_nearer {
                best = Some((parts, at, factor));
            }
        }
        before *= dim;
    }
    let (_, at, factor) = best?;
    let mut split = dims.to_vec();
    if factor < dims[at] {
        split[at] = factor;
        split.insert(at + 1, dims[at] / factor);
    }
    Some((split, at + 1))
}

/// The divisors of a size that can be numbers of parts.
fn divisors(size: usize) -> impl Iterator<Item = usize> {
    (1..=size.min(*PARTS.end())).filter(move |divisor| size.is_multiple_of(*divisor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    fn reductions(of: &str, more: &str) -> Vec<(Vec<usize>, Vec<usize>)> {
        let text = format!(
            "func.func @main(%x: tensor<{of}xf32>) -> (tensor<f32>{more}) {{
                %zero = stablehlo.constant dense<0.0> : tensor<f32>
                %y = stablehlo.multiply %x, %x : tensor<{of}xf32>
                %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [{}] : (tensor<{of}xf32>, tensor<f32>) -> tensor<f32>
                return %sum{} : tensor<f32>{more}\n}}",
            (0..of.split('x').count()).map(|at| at.to_string()).collect::<Vec<_>>().join(", "),
            if more.is_empty() { "" } else { ", %y" },
        );
        let graph = split(&graph(&text));
        let reduced = |node: &Node| match &node.op {
            Op::Reduce(_, dims) => Some((graph.node(node.inputs[0]).dims.clone(), dims.clone())),
            _ => None,
        };
        graph.nodes.iter().filter_map(reduced).collect()
    }

    #[test]
    fn a_matrix_is_reduced_by_rows_first() {
        let (rows, last) = ((vec![1024, 1024], vec![1]), (vec![1024], vec![0]));
        assert_eq!(reductions("1024x1024", ""), [rows, last]);
    }

    #[test]
    fn a_long_dimension_is_cut() {
        assert_eq!(reductions("1000000", ""), [(vec![1000, 1000], vec![1]), (vec![1000], vec![0])]);
        let kernel = [(vec![512, 2, 256, 3, 3], vec![2, 3, 4]), (vec![512, 2], vec![0, 1])];
        assert_eq!(reductions("512x512x3x3", ""), kernel);
    }

    #[test]
    fn what_is_small_prime_or_read_again_stays_whole() {
        assert_eq!(reductions("100x100", ""), [(vec![100, 100], vec![0, 1])]);
        assert_eq!(reductions("65537", ""), [(vec![65537], vec![0])]);
        let more = ", tensor<1024x1024xf32>";
        assert_eq!(reductions("1024x1024", more), [(vec![1024, 1024], vec![0, 1])]);
    }
}
