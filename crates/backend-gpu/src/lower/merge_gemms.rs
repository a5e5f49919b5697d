//! Merges GEMMs of one value with several constant weights, such as Q, K and V projections: one wide GEMM occupies
//! the device better than several narrow ones.

use std::collections::{HashMap, HashSet};

use warpforge_fusion::graph::Dot;
use warpforge_fusion::view::LayoutOp;
use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Shape, Tensor};

/// Most columns of a merged GEMM; wider ones occupy the device alone.
const MAX_COLUMNS: usize = 4096;

/// An operation after a GEMM; equal for all merged ones.
#[derive(Debug, Clone)]
enum PostOp {
    /// A bias per column.
    Bias(Tensor),
    Convert(ElementType),
}

impl PostOp {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (PostOp::Bias(_), PostOp::Bias(_)) => true,
            (PostOp::Convert(one), PostOp::Convert(other)) => one == other,
            _ => false,
        }
    }
}

/// A GEMM with constant weights and its following operations.
struct Member {
    dot: NodeId,
    weights: NodeId,
    columns: usize,
    post_ops: Vec<PostOp>,
    /// The last operation.
    end: NodeId,
}

/// The graph with merged GEMMs.
pub(super) fn merge_gemms(graph: &Graph) -> Graph {
    let groups = groups(graph);
    if groups.is_empty() {
        return graph.clone();
    }
    let mut nodes: Vec<Node> = Vec::with_capacity(graph.nodes.len());
    let mut made: Vec<NodeId> = Vec::with_capacity(graph.nodes.len());
    let mut slices: HashMap<NodeId, NodeId> = HashMap::new();
    for id in graph.ids() {
        if let Some(group) = groups.get(&id) {
            slices.extend(merged(graph, group, &made, &mut nodes));
        }
        if let Some(&slice) = slices.get(&id) {
            made.push(slice);
            continue;
        }
        let mut node = graph.node(id).clone();
        node.inputs = node.inputs.iter().map(|input| made[input.index()]).collect();
        made.push(push(&mut nodes, node));
    }
    let moved = |ids: &[NodeId]| ids.iter().map(|id| made[id.index()]).collect::<Vec<NodeId>>();
    let (outputs, effects) = (moved(&graph.outputs), moved(&graph.effects));
    let values = graph.moved_values(|id| Some(made[id.index()]));
    Graph { nodes, outputs, effects, values }.pruned()
}

fn push(nodes: &mut Vec<Node>, node: Node) -> NodeId {
    nodes.push(node);
    NodeId((nodes.len() - 1) as u32)
}

/// Groups of mergeable GEMMs, by the first of each.
fn groups(graph: &Graph) -> HashMap<NodeId, Vec<Member>> {
    let users = graph.users();
    let outputs: HashSet<NodeId> = graph.outputs.iter().chain(&graph.effects).copied().collect();
    let mut all: Vec<Vec<Member>> = Vec::new();
    for id in graph.ids() {
        let Some(member) = member(graph, id, &users, &outputs) else { continue };
        let same = |group: &&mut Vec<Member>| {
            let first = &group[0];
            let (one, other) = (graph.node(first.dot), graph.node(id));
            one.inputs[0] == other.inputs[0]
                && matches!((&one.op, &other.op), (Op::Dot(one), Op::Dot(other)) if one == other)
                && one.element == other.element
                && graph.node(first.weights).element == graph.node(member.weights).element
                && first.post_ops.len() == member.post_ops.len()
                && first.post_ops.iter().zip(&member.post_ops).all(|(one, other)| one.is_like(other))
        };
        match all.iter_mut().find(same) {
            Some(group) => group.push(member),
            None => all.push(vec![member]),
        }
    }
    let fits = |group: &Vec<Member>| {
        group.len() > 1 && group.iter().map(|member| member.columns).sum::<usize>() <= MAX_COLUMNS
    };
    all.into_iter().filter(fits).map(|group| (group[0].dot, group)).collect()
}

fn member(graph: &Graph, id: NodeId, users: &[Vec<NodeId>], outputs: &HashSet<NodeId>) -> Option<Member> {
    let node = graph.node(id);
    let Op::Dot(Dot { lhs_batch, rhs_contract, .. }) = &node.op else { return None };
    let &[_, weights] = node.inputs.as_slice() else { return None };
    let constant = graph.constant(weights)?;
    // Products of integers and of 8-bit floats have other kernels, or none.
    let wide = constant.element_type().is_float() && constant.element_type().byte_width() > 1;
    let &[rows, columns] = graph.node(weights).dims.as_slice() else { return None };
    let &[contract] = rhs_contract.as_slice() else { return None };
    let columns = if contract == 1 { rows } else { columns };
    if !wide || !lhs_batch.is_empty() || constant.is_empty() || node.dims.last() != Some(&columns) {
        return None;
    }
    let mut member = Member { dot: id, weights, columns, post_ops: Vec::new(), end: id };
    while let &[user] = users[member.end.index()].as_slice()
        && !outputs.contains(&member.end)
        && let Some(post_op) = post_op(graph, member.end, user, columns)
    {
        member.post_ops.push(post_op);
        member.end = user;
    }
    Some(member)
}

/// The operation of a node, where it can be merged.
fn post_op(graph: &Graph, from: NodeId, user: NodeId, columns: usize) -> Option<PostOp> {
    let node = graph.node(user);
    match (&node.op, node.inputs.as_slice()) {
        (Op::Elementwise(Function::Convert), _) => Some(PostOp::Convert(node.element)),
        (Op::Elementwise(Function::Add), &[one, other]) if one != other => {
            let added = graph.node(if one == from { other } else { one });
            let (Op::Layout(LayoutOp::Broadcast { map, .. }), &[source]) =
                (&added.op, added.inputs.as_slice())
            else {
                return None;
            };
            let bias = graph.constant(source)?;
            let last = node.dims.len() - 1;
            let by_column = map.as_slice() == [last] && bias.len() == columns;
            let bias = if by_column {
                bias.clone()
            } else if bias.len() == 1 {
                repeated(bias, columns)?
            } else {
                return None;
            };
            Some(PostOp::Bias(bias))
        }
        _ => None,
    }
}

fn repeated(number: &Tensor, columns: usize) -> Option<Tensor> {
    let bytes = number.bytes().repeat(columns);
    Tensor::from_bytes(number.element_type(), Shape::new([columns]).ok()?, &bytes).ok()
}

/// Adds a merged GEMM; returns the slices that replace the members.
fn merged(
    graph: &Graph,
    group: &[Member],
    made: &[NodeId],
    nodes: &mut Vec<Node>,
) -> HashMap<NodeId, NodeId> {
    try_merged(graph, group, made, nodes).unwrap_or_default()
}

fn try_merged(
    graph: &Graph,
    group: &[Member],
    made: &[NodeId],
    nodes: &mut Vec<Node>,
) -> Option<HashMap<NodeId, NodeId>> {
    let first = graph.node(group[0].dot);
    let Op::Dot(dot) = &first.op else { return None };
    let origin = first.origin;
    let columns: usize = group.iter().map(|member| member.columns).sum();
    let constants: Vec<&Tensor> =
        group.iter().map(|member| graph.constant(member.weights)).collect::<Option<_>>()?;
    let weights = concatenated(&constants, usize::from(dot.rhs_contract == [0]))?;
    let constant = |nodes: &mut Vec<Node>, tensor: Tensor| {
        let (element, dims) = (tensor.element_type(), tensor.dims().to_vec());
        push(nodes, Node { op: Op::Constant(tensor), inputs: Vec::new(), element, dims, origin })
    };
    let biases: Vec<Option<Tensor>> = (0..group[0].post_ops.len())
        .map(|at| match group[0].post_ops[at] {
            PostOp::Convert(_) => Some(None),
            PostOp::Bias(_) => {
                let all: Vec<&Tensor> = group
                    .iter()
                    .filter_map(|member| match &member.post_ops[at] {
                        PostOp::Bias(bias) => Some(bias),
                        PostOp::Convert(_) => None,
                    })
                    .collect();
                concatenated(&all, 0).map(Some)
            }
        })
        .collect::<Option<_>>()?;
    let mut dims = first.dims.clone();
    *dims.last_mut()? = columns;
    let weights = constant(nodes, weights);
    let inputs = vec![made[first.inputs[0].index()], weights];
    let node = Node { op: first.op.clone(), inputs, element: first.element, dims: dims.clone(), origin };
    let mut at = push(nodes, node);
    let mut element = first.element;
    for (post_op, bias) in group[0].post_ops.iter().zip(biases) {
        let (op, inputs) = match (post_op, bias) {
            (PostOp::Convert(to), _) => {
                element = *to;
                (Function::Convert, vec![at])
            }
            (PostOp::Bias(_), bias) => {
                let source = constant(nodes, bias?);
                let step = LayoutOp::Broadcast { dims: dims.clone(), map: vec![dims.len() - 1] };
                let (op, inputs) = (Op::Layout(step), vec![source]);
                let wide = push(nodes, Node { op, inputs, element, dims: dims.clone(), origin });
                (Function::Add, vec![at, wide])
            }
        };
        at = push(nodes, Node { op: Op::Elementwise(op), inputs, element, dims: dims.clone(), origin });
    }
    let mut slices = HashMap::new();
    let mut start = 0;
    for member in group {
        let mut starts = vec![0; dims.len()];
        *starts.last_mut()? = start;
        let mut sizes = dims.clone();
        *sizes.last_mut()? = member.columns;
        let op = Op::Layout(LayoutOp::Slice { starts, steps: vec![1; dims.len()], dims: sizes.clone() });
        let slice = push(nodes, Node { op, inputs: vec![at], element, dims: sizes, origin });
        slices.insert(member.end, slice);
        start += member.columns;
    }
    Some(slices)
}

/// Concatenates constants along a dimension.
pub(super) fn concatenated(all: &[&Tensor], axis: usize) -> Option<Tensor> {
    let first = all.first()?;
    let mut dims = first.dims().to_vec();
    *dims.get_mut(axis)? = all.iter().map(|tensor| tensor.dims()[axis]).sum();
    let rows: usize = dims[..axis].iter().product();
    let mut bytes = Vec::with_capacity(all.iter().map(|tensor| tensor.bytes().len()).sum());
    for row in 0..rows {
        for tensor in all {
            let width = tensor.bytes().len() / rows.max(1);
            bytes.extend_from_slice(&tensor.bytes()[row * width..(row + 1) * width]);
        }
    }
    Tensor::from_bytes(first.element_type(), Shape::new(dims).ok()?, &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_concatenated_along_either_dimension() {
        let one = Tensor::from_slice(&[2, 1], &[1i32, 2]).unwrap();
        let other = Tensor::from_slice(&[2, 2], &[3i32, 4, 5, 6]).unwrap();
        let wide = concatenated(&[&one, &other], 1).unwrap();
        assert_eq!((wide.dims(), wide.as_slice::<i32>().unwrap()), (&[2, 3][..], &[1, 3, 4, 2, 5, 6][..]));
        let high = concatenated(&[&other, &other], 0).unwrap();
        assert_eq!(
            (high.dims(), high.as_slice::<i32>().unwrap()),
            (&[4, 2][..], &[3, 4, 5, 6, 3, 4, 5, 6][..])
        );
    }
}
