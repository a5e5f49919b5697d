//! Codes of a few bits: looking one up in a small table becomes a chain of selections, and values that lie between each other a selection by
//! place. Both are parts of loops then, where gathers and concatenations are kernels of their own that write wide indices to memory.

use std::collections::HashMap;

use warpforge_fusion::graph::Builder;
use warpforge_fusion::view::LayoutOp;
use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_ir::attr::{ComparisonDirection, ComparisonType, GatherDims};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar};

/// Most entries of a table that selections replace: those of codes of 4 bits.
const MOST_ENTRIES: usize = 16;

/// Most values that lie between each other.
const MOST_INTERLEAVED: usize = 4;

/// The graph with selections.
pub(super) fn select(graph: Graph) -> Graph {
    let users = graph.users();
    let fits = |id: NodeId| entries(&graph, id).is_some() || is_interleaved(&graph, &users, id);
    if !graph.ids().any(fits) {
        return graph;
    }
    let mut builder = Builder::default();
    let mut made: HashMap<NodeId, NodeId> = HashMap::new();
    for id in graph.ids() {
        let Node { op, inputs, element, dims, origin } = graph.node(id).clone();
        let inputs: Vec<NodeId> = inputs.iter().map(|input| made[input]).collect();
        builder.origin = origin;
        let selected = match entries(&graph, id) {
            Some(entries) => looked_up(&mut builder, &inputs, entries, &dims),
            None if is_interleaved(&graph, &users, id) => interleaved(&mut builder, &inputs, &dims),
            None => None,
        };
        let new = selected.unwrap_or_else(|| builder.add(op, inputs, element, dims));
        made.insert(id, new);
    }
    builder.set_values(graph.moved_values(|id| made.get(&id).copied()));
    let moved = |ids: &[NodeId]| ids.iter().map(|id| made[id]).collect::<Vec<NodeId>>();
    builder.finish(moved(&graph.outputs), moved(&graph.effects))
}

/// The entries of the small table that a gather looks single elements up in.
fn entries(graph: &Graph, id: NodeId) -> Option<usize> {
    let node = graph.node(id);
    let (Op::Gather(dims, sizes), &[table, places]) = (&node.op, node.inputs.as_slice()) else { return None };
    let GatherDims { offset_dims, operand_batching_dims, index_vector_dim, .. } = dims;
    let &[entries] = graph.node(table).dims.as_slice() else { return None };
    let places = graph.node(places);
    let is_vector = usize::try_from(*index_vector_dim) == Ok(node.dims.len());
    let single = sizes.as_slice() == [1]
        && offset_dims.is_empty()
        && operand_batching_dims.is_empty()
        && is_vector
        && places.len() == node.len();
    let is_integer = matches!(places.element, ElementType::Int(_));
    (single && is_integer && (1..=MOST_ENTRIES).contains(&entries) && node.len() > entries).then_some(entries)
}

/// The entry of each place. Places outside mean the first or the last entry, as those of a gather do.
fn looked_up(builder: &mut Builder, inputs: &[NodeId], entries: usize, dims: &[usize]) -> Option<NodeId> {
    let &[table, places] = inputs else { return None };
    let places = builder.reshape(places, dims.to_vec());
    let index = builder.node(places).element;
    let order = match index {
        ElementType::Int(int) if int.is_signed() => ComparisonType::Signed,
        _ => ComparisonType::Unsigned,
    };
    let entry = |builder: &mut Builder, at: usize| {
        let slice = LayoutOp::Slice { starts: vec![at], steps: vec![1], dims: vec![1] };
        let one = builder.layout(slice, table);
        let scalar = builder.reshape(one, Vec::new());
        builder.broadcast(scalar, dims.to_vec(), &[])
    };
    let mut value = entry(builder, 0);
    for at in 1..entries {
        let number = builder.splat(index, Scalar::Int(at as i128), dims.to_vec())?;
        let reaches = builder.compare(ComparisonDirection::Ge, order, places, number);
        let here = entry(builder, at);
        value = builder.map(Function::Select, vec![reaches, here, value]);
    }
    Some(value)
}

/// Whether a node puts computed values between each other.
fn is_interleaved(graph: &Graph, users: &[Vec<NodeId>], id: NodeId) -> bool {
    let node = graph.node(id);
    let Op::Concat(axis) = node.op else { return false };
    let is_single = |input: &NodeId| {
        let mut at = *input;
        while let (Op::Layout(_), [below]) = (&graph.node(at).op, graph.node(at).inputs.as_slice()) {
            if users[at.index()].len() > 1 {
                return false;
            }
            at = *below;
        }
        graph.node(*input).dims[axis] == 1 && matches!(graph.node(at).op, Op::Elementwise(_))
    };
    axis + 1 == node.dims.len() && node.inputs.len() <= MOST_INTERLEAVED && node.inputs.iter().all(is_single)
}

fn interleaved(builder: &mut Builder, inputs: &[NodeId], dims: &[usize]) -> Option<NodeId> {
    let axis = dims.len().checked_sub(1)?;
    let map: Vec<usize> = (0..dims.len()).collect();
    let place = builder.add(Op::Iota(axis), Vec::new(), ElementType::I32, dims.to_vec());
    let mut all = inputs.iter().enumerate();
    let mut value = builder.broadcast(*all.next()?.1, dims.to_vec(), &map);
    for (at, &input) in all {
        let number = builder.splat(ElementType::I32, Scalar::Int(at as i128), dims.to_vec())?;
        let is_here = builder.compare(ComparisonDirection::Eq, ComparisonType::Signed, place, number);
        let here = builder.broadcast(input, dims.to_vec(), &map);
        value = builder.map(Function::Select, vec![is_here, here, value]);
    }
    Some(value)
}
