//! Sums of a product's operand along what the product sums over: gradients of biases, beside those of weights, which the
//! vendors' libraries give in one call.

use std::collections::HashMap;

use warpforge_fusion::cluster::{Body, BodyOp, Cluster, Contraction, Kind, Operand, single_stride};
use warpforge_fusion::graph::ReduceKind;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::converted;
use super::{Asked, Setting};
use crate::products::Side;

/// The sums of a product's operand.
pub(super) struct Sum {
    /// Which operand.
    pub(super) side: Side,
    /// Its value.
    pub(super) of: NodeId,
    /// The cluster that computes them by itself.
    pub(super) cluster: Cluster,
}

/// Sums that products may give too, by the outputs of the products' clusters.
pub(super) fn of_operands(
    graph: &Graph,
    clusters: &[Cluster],
    setting: &Setting<'_>,
) -> HashMap<NodeId, Sum> {
    let mut readers: HashMap<NodeId, Vec<(usize, Side)>> = HashMap::new();
    for (place, cluster) in clusters.iter().enumerate() {
        if let Kind::Dot(product) = &cluster.kind {
            for (operand, side) in product.operands.iter().zip([Side::Left, Side::Right]) {
                readers.entry(operand.value).or_default().push((place, side));
            }
        }
    }
    let mut found: HashMap<NodeId, Sum> = HashMap::new();
    for (at, cluster) in clusters.iter().enumerate() {
        let Kind::Loop(body) = &cluster.kind else { continue };
        let Some(load) = summed(body).filter(|_| !setting.refused.contains(&Asked::More(cluster.output)))
        else {
            continue;
        };
        let fits = |&&(place, side): &&(usize, Side)| {
            let Kind::Dot(product) = &clusters[place].kind else { return false };
            let element = graph.node(cluster.output).element;
            // Where the product comes later, nobody may need the sums before it.
            let waits = clusters.get(at..place).into_iter().flatten();
            !found.contains_key(&clusters[place].output)
                && element == graph.node(clusters[place].output).element
                && runs_along(graph, product, side, body, load)
                && !waits.into_iter().any(|between| between.reads().contains(&cluster.output))
        };
        let Some(&(place, side)) = readers.get(&load.value).and_then(|all| all.iter().find(fits)) else {
            continue;
        };
        found.insert(clusters[place].output, Sum { side, of: load.value, cluster: cluster.clone() });
    }
    found
}

/// What a loop sums, when it does nothing else.
fn summed(body: &Body) -> Option<&Operand> {
    let last = converted(body, body.steps.len().checked_sub(1)?)?;
    let (BodyOp::Reduce(ReduceKind::Add), &[input]) =
        (&body.steps[last].op, body.steps[last].inputs.as_slice())
    else {
        return None;
    };
    // The libraries sum in f32.
    let in_f32 = body.steps[last].element == ElementType::F32;
    match body.steps[converted(body, input)?].op {
        BodyOp::Load(load) if in_f32 => body.loads.get(load),
        _ => None,
    }
}

/// Whether a loop over an operand of a product sums it along what the product sums over, and gives the rest in order.
fn runs_along(graph: &Graph, product: &Contraction, side: Side, body: &Body, load: &Operand) -> bool {
    let Op::Dot(dot) = &graph.node(product.node).op else { return false };
    let (operand, contract) = match side {
        Side::Left => (&product.operands[0], &dot.lhs_contract),
        Side::Right => (&product.operands[1], &dot.rhs_contract),
    };
    let (view, seen) = (&operand.view, &load.view);
    let free: Vec<usize> = (0..view.dims.len()).filter(|at| !contract.contains(at)).collect();
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..body.dims.len()).partition(|&at| body.reduced[at]);
    let size = |dims: &[usize], of: &[usize]| -> usize { of.iter().map(|&at| dims[at]).product() };
    let floats = [FloatType::F32, FloatType::Bf16, FloatType::F16].map(ElementType::Float);
    dot.lhs_batch.is_empty()
        && floats.contains(&graph.node(operand.value).element)
        && view.offset == seen.offset
        && size(&view.dims, contract) == size(&body.dims, &reduced)
        && size(&view.dims, &free) == size(&body.dims, &kept)
        && size(&body.dims, &kept) > 1
        && single_stride(view, contract).is_some_and(|stride| single_stride(seen, &reduced) == Some(stride))
        && single_stride(view, &free).is_some_and(|stride| single_stride(seen, &kept) == Some(stride))
        && single_stride(&body.output, &kept) == Some(1)
        && body.output.offset == 0
}
