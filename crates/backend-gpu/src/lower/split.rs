//! Splits clusters that no single kernel computes.

use warpforge_fusion::cluster::{Attention, Body, BodyOp, BodyStep, Cluster, Contraction, Epilogue, Kind};
use warpforge_fusion::{Graph, NodeId, View};
use warpforge_tensor::{Shape, Tensor};

/// The parts of a cluster, in order; none where it cannot be split.
pub(super) fn parts(cluster: &Cluster) -> Option<Vec<Cluster>> {
    match &cluster.kind {
        Kind::Dot(contraction) => {
            Some(contraction_parts(contraction, Kind::Dot, &cluster.nodes, cluster.output))
        }
        Kind::Conv(contraction) => {
            Some(contraction_parts(contraction, Kind::Conv, &cluster.nodes, cluster.output))
        }
        Kind::Attention(attention) => Some(attention_parts(attention, cluster)),
        Kind::Loop(_) | Kind::AttentionGradient(_) | Kind::Unfused(_) | Kind::Library(..) => None,
    }
    .filter(|parts| parts.len() > 1)
}

/// The result of a contraction over an empty K: zeros.
pub(super) fn zeros(graph: &Graph, node: NodeId) -> Cluster {
    let (element, dims) = (graph.node(node).element, graph.node(node).dims.clone());
    let zero = Tensor::zeros(element, Shape::scalar());
    let steps =
        zero.into_iter().map(|zero| BodyStep { op: BodyOp::Constant(zero), inputs: Vec::new(), element });
    let body = Body {
        reduced: vec![false; dims.len()],
        loads: Vec::new(),
        steps: steps.collect(),
        output: View::dense(&dims),
        dims,
        also: Vec::new(),
    };
    Cluster { kind: Kind::Loop(body), output: node, nodes: vec![node] }
}

fn contraction_parts(
    contraction: &Contraction,
    kind: fn(Contraction) -> Kind,
    nodes: &[NodeId],
    output: NodeId,
) -> Vec<Cluster> {
    let alone = Contraction { epilogue: None, ..contraction.clone() };
    let mut parts =
        vec![Cluster { kind: kind(alone), output: contraction.node, nodes: vec![contraction.node] }];
    if let Some(epilogue) = &contraction.epilogue {
        let rest = nodes.iter().copied().filter(|&id| id != contraction.node).collect();
        parts.push(as_loop(epilogue, rest, output));
    }
    parts
}

fn as_loop(epilogue: &Epilogue, nodes: Vec<NodeId>, output: NodeId) -> Cluster {
    Cluster { kind: Kind::Loop(in_order_of_output(&epilogue.body)), output, nodes }
}

/// A loop with its dimensions in the order of the output's memory layout, so that stores are coalesced.
fn in_order_of_output(body: &Body) -> Body {
    if body.has_reductions() {
        return body.clone();
    }
    let view = &body.output;
    let mut order: Vec<usize> = (0..body.dims.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse((view.strides[at], view.dims[at] == 1)));
    body.permuted(&order)
}

fn attention_parts(attention: &Attention, cluster: &Cluster) -> Vec<Cluster> {
    let Attention { scores, weights, values, .. } = attention;
    let between = values.operands[0].value;
    let at = |id: NodeId| cluster.nodes.iter().position(|&node| node == id);
    let (first, last) = (at(scores.node), at(between));
    let (first, last) = (first.map_or(0, |at| at + 1), last.map_or(0, |at| at + 1));
    let inner = cluster.nodes.get(first..last).unwrap_or_default().to_vec();
    let rest = cluster.nodes.get(last..).unwrap_or_default();
    let mut parts = contraction_parts(scores, Kind::Dot, &[scores.node], scores.node);
    parts.push(as_loop(weights, inner, between));
    // Kept together: the GEMM may fuse its epilogue.
    parts.push(Cluster { kind: Kind::Dot(values.clone()), output: cluster.output, nodes: rest.to_vec() });
    parts
}
