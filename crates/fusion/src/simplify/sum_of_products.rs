//! Sums of matrix products with small contracted dimensions: one product over all of them, one after the other.
//!
//! The gradient of a weight that is used in many places, such as that of an unrolled recurrent layer, is a sum of products, each as large as the
//! weight. Over the operands one after the other it is written once.

use std::collections::{HashMap, HashSet};

use warpforge_tensor::elementwise::Function;

use super::rewrite::Rewrite;
use crate::graph::{Dot, Graph, Node, NodeId, Op};

/// The most products that one replaces: kernels have a parameter for each operand of the concatenation.
const MOST: usize = 128;

/// The graph with such sums as one product each.
pub(super) fn join(graph: &Graph) -> Graph {
    let sums = Sums::find(graph);
    if sums.joined.is_empty() {
        return graph.clone();
    }
    let mut rewrite = Rewrite::new(graph);
    for id in graph.ids() {
        match sums.joined.get(&id) {
            Some(sum) => joined(&mut rewrite, id, sum),
            None if sums.within.contains(&id) => {}
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

/// The sums whose products are joined.
#[derive(Default)]
struct Sums {
    /// By the addition that gives the sum.
    joined: HashMap<NodeId, Sum>,
    /// Additions and products that are not there any more.
    within: HashSet<NodeId>,
}

/// The terms of a sum.
struct Sum {
    /// The products that become one, several times where they are of several sizes.
    products: Vec<Vec<NodeId>>,
    /// What else is in it.
    others: Vec<NodeId>,
}

impl Sums {
    fn find(graph: &Graph) -> Self {
        let mut uses: HashMap<NodeId, usize> = HashMap::new();
        let inputs = graph.nodes.iter().flat_map(|node| node.inputs.iter());
        for &id in inputs.chain(&graph.outputs).chain(&graph.effects) {
            *uses.entry(id).or_default() += 1;
        }
        let is_used_once = |id: NodeId| uses.get(&id) == Some(&1);
        let mut sums = Self::default();
        // Sums of more before the sums in them.
        for root in graph.ids().collect::<Vec<_>>().into_iter().rev() {
            if !is_sum(graph, root) || sums.within.contains(&root) {
                continue;
            }
            let (mut terms, mut additions, mut left) = (Vec::new(), Vec::new(), vec![root]);
            while let Some(id) = left.pop() {
                if id == root || (is_sum(graph, id) && is_used_once(id)) {
                    additions.push(id);
                    left.extend(graph.node(id).inputs.iter().rev());
                } else {
                    terms.push(id);
                }
            }
            let sum = grouped(graph, &terms, &is_used_once);
            if !sum.products.is_empty() {
                sums.within.extend(additions.iter().filter(|&&id| id != root));
                sums.within.extend(sum.products.iter().flatten());
                sums.joined.insert(root, sum);
            }
        }
        sums
    }
}

fn is_sum(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    matches!(node.op, Op::Elementwise(Function::Add)) && node.element.is_float()
}

/// The groups of products among the terms of a sum that one product replaces, and the other terms.
fn grouped(graph: &Graph, terms: &[NodeId], is_used_once: &dyn Fn(NodeId) -> bool) -> Sum {
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for &id in terms {
        let group = groups
            .iter_mut()
            .find(|group| group.len() < MOST && is_used_once(id) && are_alike(graph, group[0], id));
        match group {
            Some(group) => group.push(id),
            None => groups.push(vec![id]),
        }
    }
    let (products, alone): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| is_used_once(group[0]) && pays(graph, group));
    Sum { products, others: alone.into_iter().flatten().collect() }
}

/// The contracted size of a product with one contracted dimension.
fn contracted_size(graph: &Graph, id: NodeId) -> Option<usize> {
    let node = graph.node(id);
    let Op::Dot(dot) = &node.op else { return None };
    let &[contract] = dot.lhs_contract.as_slice() else { return None };
    Some(graph.node(node.inputs[0]).dims[contract])
}

/// Whether two products differ in the contracted dimension's size at most.
fn are_alike(graph: &Graph, one: NodeId, other: NodeId) -> bool {
    if contracted_size(graph, one).is_none() || contracted_size(graph, other).is_none() {
        return false;
    }
    let (one, other) = (graph.node(one), graph.node(other));
    let (Op::Dot(first), Op::Dot(second)) = (&one.op, &other.op) else { return false };
    let operands_are_alike = one.inputs.iter().zip(&other.inputs).enumerate().all(|(side, (&a, &b))| {
        let (a, b) = (graph.node(a), graph.node(b));
        let contract = contracted(first, side);
        let free = |node: &Node| {
            node.dims
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != contract)
                .map(|(_, &size)| size)
                .collect::<Vec<_>>()
        };
        a.element == b.element && a.dims.len() == b.dims.len() && free(a) == free(b)
    });
    first == second && one.element == other.element && one.dims == other.dims && operands_are_alike
}

/// The dimension of an operand that is summed over, where there is one.
fn contracted(dot: &Dot, side: usize) -> usize {
    let contract = if side == 0 { &dot.lhs_contract } else { &dot.rhs_contract };
    contract.first().copied().unwrap_or(0)
}

/// Whether writing all results moves more than copying all operands.
fn pays(graph: &Graph, group: &[NodeId]) -> bool {
    let results: usize = group.iter().map(|&id| graph.node(id).len()).sum();
    let operands = group.iter().flat_map(|&id| graph.node(id).inputs.iter());
    group.len() > 1 && operands.map(|&id| graph.node(id).len()).sum::<usize>() < results
}

/// Puts a sum of fewer terms in the place of a sum.
fn joined(rewrite: &mut Rewrite<'_>, root: NodeId, sum: &Sum) {
    let Node { element, dims, origin, .. } = rewrite.old.node(root).clone();
    rewrite.builder.origin = origin;
    let mut terms: Vec<NodeId> = sum.products.iter().filter_map(|group| product_of(rewrite, group)).collect();
    terms.extend(sum.others.iter().map(|id| rewrite.made[id]));
    let mut terms = terms.into_iter();
    let Some(mut sum) = terms.next() else { return };
    for term in terms {
        sum = rewrite.builder.add(Op::Elementwise(Function::Add), vec![sum, term], element, dims.clone());
    }
    rewrite.made.insert(root, sum);
}

/// One product over the operands of several, one after the other.
fn product_of(rewrite: &mut Rewrite<'_>, group: &[NodeId]) -> Option<NodeId> {
    let Node { op, element, dims, .. } = rewrite.old.node(*group.first()?).clone();
    let Op::Dot(dot) = op else { return None };
    let operands = [0, 1].map(|side| {
        let axis = contracted(&dot, side);
        let old: Vec<NodeId> = group.iter().map(|&id| rewrite.old.node(id).inputs[side]).collect();
        let mut dims = rewrite.old.node(old[0]).dims.clone();
        dims[axis] = old.iter().map(|&id| rewrite.old.node(id).dims[axis]).sum();
        let element = rewrite.old.node(old[0]).element;
        let inputs = old.iter().map(|id| rewrite.made[id]).collect();
        rewrite.builder.add(Op::Concat(axis), inputs, element, dims)
    });
    Some(rewrite.builder.add(Op::Dot(dot), operands.to_vec(), element, dims))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    /// The contracted sizes of the products and the number of additions of a function that has the products `%p` and `%q` and goes on with `body`.
    fn after(body: &str) -> (Vec<usize>, usize) {
        let text = format!(
            "func.func @main(%a: tensor<4x64xf32>, %b: tensor<4x32xf32>, %c: tensor<6x64xf32>, %d: tensor<6x32xf32>,
                            %z: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {{
                %p = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<4x64xf32>, tensor<4x32xf32>) -> tensor<64x32xf32>
                %q = stablehlo.dot_general %c, %d, contracting_dims = [0] x [0] : (tensor<6x64xf32>, tensor<6x32xf32>) -> tensor<64x32xf32>
                {body}
            }}"
        );
        let graph = join(&graph(&text));
        let products = graph.ids().filter_map(|id| contracted_size(&graph, id)).collect();
        (products, graph.ids().filter(|&id| is_sum(&graph, id)).count())
    }

    #[test]
    fn products_that_are_only_added_are_one() {
        let body = "%s = stablehlo.add %p, %q : tensor<64x32xf32>
            %t = stablehlo.add %s, %z : tensor<64x32xf32>
            return %t, %z : tensor<64x32xf32>, tensor<64x32xf32>";
        assert_eq!(after(body), (vec![10], 1));
    }

    #[test]
    fn a_product_that_is_used_elsewhere_stays() {
        let product = "%s = stablehlo.add %p, %q : tensor<64x32xf32>
            return %s, %p : tensor<64x32xf32>, tensor<64x32xf32>";
        assert_eq!(after(product), (vec![4, 6], 1));
        let sum = "%s = stablehlo.add %p, %q : tensor<64x32xf32>
            %t = stablehlo.add %s, %z : tensor<64x32xf32>
            return %t, %s : tensor<64x32xf32>, tensor<64x32xf32>";
        assert_eq!(after(sum), (vec![10], 1));
    }

    #[test]
    fn operands_of_both_sides_follow_each_other_in_one_order() {
        let text = "func.func @main(%a: tensor<2x8xf32>, %b: tensor<2x8xf32>, %c: tensor<1x8xf32>) -> tensor<8x8xf32> {
                %p = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
                %q = stablehlo.dot_general %c, %c, contracting_dims = [0] x [0] : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
                %s = stablehlo.add %p, %q : tensor<8x8xf32>
                return %s : tensor<8x8xf32>
            }";
        let joined = join(&graph(text));
        let product = joined.ids().find(|&id| contracted_size(&joined, id).is_some()).expect("a product");
        let parts = |side: usize| {
            let operand = joined.node(joined.node(product).inputs[side]);
            operand.inputs.iter().map(|&id| joined.node(id).op.name()).collect::<Vec<_>>()
        };
        assert_eq!(parts(0), ["argument 0", "argument 2"]);
        assert_eq!(parts(1), ["argument 1", "argument 2"]);
    }

    #[test]
    fn products_of_long_sums_stay() {
        let text = "func.func @main(%a: tensor<64x8xf32>, %b: tensor<64x4xf32>, %c: tensor<64x8xf32>) -> tensor<8x4xf32> {
                %p = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<64x8xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
                %q = stablehlo.dot_general %c, %b, contracting_dims = [0] x [0] : (tensor<64x8xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
                %s = stablehlo.add %p, %q : tensor<8x4xf32>
                return %s : tensor<8x4xf32>
            }";
        let graph = join(&graph(text));
        assert_eq!(graph.ids().filter(|&id| contracted_size(&graph, id).is_some()).count(), 2);
    }
}
