//! Gives products and convolutions the loops that take their results as epilogues.

use super::body::Body;
use super::contraction::Epilogue;
use super::epilogue_form::form;
use super::kind::{Cluster, Kind, only_readers};
use super::machine::Machine;
use super::operand::Operand;
use crate::graph::{Graph, NodeId, Op};
use crate::view::merged;

/// Moves every loop that alone takes the result of a product into the product's cluster.
pub(super) fn attach(
    graph: &Graph,
    clusters: &mut Vec<Cluster>,
    outputs: &[Operand],
    machine: Option<&dyn Machine>,
) {
    let reader = only_readers(clusters, outputs);
    let mut moved = vec![false; clusters.len()];
    for at in (0..clusters.len()).rev() {
        let (Kind::Dot(product) | Kind::Conv(product)) = &clusters[at].kind else { continue };
        let node = product.node;
        let Some(&to) = reader.get(&node).filter(|&&to| !moved[to]) else { continue };
        let Kind::Loop(body) = &clusters[to].kind else { continue };
        let Some(mut epilogue) = epilogue(graph, body, node, columns_of(graph, node)) else { continue };
        let slower = |machine: &dyn Machine| {
            machine.fuses_epilogue(graph, &clusters[at], &clusters[to]) == Some(false)
        };
        if machine.is_some_and(slower) {
            continue;
        }
        epilogue.form = form(graph, &epilogue, clusters[to].output);
        let mut product = product.clone();
        product.epilogue = Some(epilogue);
        let kind = match clusters[at].kind {
            Kind::Dot(_) => Kind::Dot(product),
            _ => Kind::Conv(product),
        };
        let nodes = clusters[at].nodes.iter().chain(&clusters[to].nodes).copied().collect();
        // The loop's other operands come before it, so the product waits until its place.
        clusters[to] = Cluster { kind, output: clusters[to].output, nodes };
        moved[to] = true;
        clusters[at].nodes.clear();
    }
    clusters.retain(|cluster| !cluster.nodes.is_empty());
}

/// The number of columns of a product's result.
pub(super) fn columns_of(graph: &Graph, node: NodeId) -> usize {
    let product = graph.node(node);
    match &product.op {
        Op::Dot(dot) => {
            let rhs = &graph.node(product.inputs[1]).dims;
            let free =
                (0..rhs.len()).filter(|at| !dot.rhs_batch.contains(at) && !dot.rhs_contract.contains(at));
            free.map(|at| rhs[at]).product()
        }
        _ => product.dims.last().copied().unwrap_or(1),
    }
}

/// A loop as the epilogue of a product: its domain in the order of the product's result.
pub(super) fn epilogue(graph: &Graph, body: &Body, node: NodeId, columns: usize) -> Option<Epilogue> {
    let mut tiles = body.loads.iter().enumerate().filter(|(_, load)| load.value == node);
    let (tile, _) = tiles.next()?;
    if tiles.next().is_some() || body.has_reductions() {
        return None;
    }
    in_order(graph, body, tile, columns).or_else(|| {
        let body = body.reshaped(&graph.node(node).dims)?;
        in_order(graph, &body, tile, columns)
    })
}

/// The loop with its dimensions ordered by how far apart the elements of a load lie, when that load is dense. Dimensions of one
/// element are rows, but for those that are reduced.
pub(super) fn in_order(graph: &Graph, body: &Body, tile: usize, columns: usize) -> Option<Epilogue> {
    let view = &body.loads[tile].view;
    let mut order: Vec<usize> = (0..body.dims.len()).collect();
    order.sort_by_key(|&at| {
        std::cmp::Reverse((view.dims[at] == 1 && !body.reduced[at], view.strides[at], view.dims[at] == 1))
    });
    let body = body.permuted(&order);
    let view = &body.loads[tile].view;
    let whole = graph.node(body.loads[tile].value).len();
    let dims = view.dims.iter().copied().zip(view.strides.iter().copied()).filter(|&(dim, _)| dim != 1);
    let dense = match merged(dims).as_slice() {
        [] => whole == 1,
        &[(len, stride)] => len == whole && stride == 1,
        _ => false,
    };
    if !dense || view.offset != 0 {
        return None;
    }
    let mut inner = 1;
    let mut rows = body.dims.len();
    while inner < columns {
        rows -= 1;
        inner *= body.dims[rows];
    }
    (inner == columns).then_some(Epilogue { body, tile, rows, form: None })
}
