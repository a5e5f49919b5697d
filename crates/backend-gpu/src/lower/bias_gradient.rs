//! Bias gradients: sums of a GEMM operand over K, which the BLAS libraries compute together with the weight gradient.

use std::collections::HashMap;

use warpforge_fusion::cluster::{Body, BodyOp, Cluster, Contraction, Kind, Operand, single_stride};
use warpforge_fusion::graph::ReduceKind;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_tensor::{ElementType, FloatType};

use super::task::{LibraryQuery, LoweringContext};
use crate::blas::OperandSide;

/// A bias gradient.
pub(super) struct BiasGradient {
    /// The summed operand.
    pub(super) side: OperandSide,
    /// Its value.
    pub(super) of: NodeId,
    /// The cluster that computes it separately.
    pub(super) cluster: Cluster,
}

/// Bias gradients that GEMMs may compute, by the output of the GEMM's cluster.
pub(super) fn find(
    graph: &Graph,
    clusters: &[Cluster],
    context: &LoweringContext<'_>,
) -> HashMap<NodeId, BiasGradient> {
    let mut readers: HashMap<NodeId, Vec<(usize, OperandSide)>> = HashMap::new();
    for (position, cluster) in clusters.iter().enumerate() {
        if let Kind::Dot(contraction) = &cluster.kind {
            for (operand, side) in contraction.operands.iter().zip([OperandSide::Left, OperandSide::Right]) {
                readers.entry(operand.value).or_default().push((position, side));
            }
        }
    }
    let mut found: HashMap<NodeId, BiasGradient> = HashMap::new();
    for (at, cluster) in clusters.iter().enumerate() {
        let Kind::Loop(body) = &cluster.kind else { continue };
        let Some(load) =
            summed(body).filter(|_| !context.refused.contains(&LibraryQuery::Extra(cluster.output)))
        else {
            continue;
        };
        let fits = |&&(position, side): &&(usize, OperandSide)| {
            let Kind::Dot(contraction) = &clusters[position].kind else { return false };
            let element = graph.node(cluster.output).element;
            // Where the GEMM comes later, no cluster in between may use the gradient.
            let waits = clusters.get(at..position).into_iter().flatten();
            !found.contains_key(&clusters[position].output)
                && element == graph.node(clusters[position].output).element
                && reduces_contracted(graph, contraction, side, body, load)
                && !waits.into_iter().any(|between| between.reads().contains(&cluster.output))
        };
        let Some(&(position, side)) = readers.get(&load.value).and_then(|all| all.iter().find(fits)) else {
            continue;
        };
        found.insert(
            clusters[position].output,
            BiasGradient { side, of: load.value, cluster: cluster.clone() },
        );
    }
    found
}

/// The operand of a loop that only sums.
fn summed(body: &Body) -> Option<&Operand> {
    let last = body.before_conversions(body.steps.len().checked_sub(1)?)?;
    let (BodyOp::Reduce(ReduceKind::Add), &[input]) =
        (&body.steps[last].op, body.steps[last].inputs.as_slice())
    else {
        return None;
    };
    // The libraries accumulate in f32.
    let in_f32 = body.steps[last].element == ElementType::F32;
    match body.steps[body.before_conversions(input)?].op {
        BodyOp::Load(load) if in_f32 => body.loads.get(load),
        _ => None,
    }
}

/// Whether a loop reduces a GEMM operand over K and keeps the rest in order.
fn reduces_contracted(
    graph: &Graph,
    contraction: &Contraction,
    side: OperandSide,
    body: &Body,
    load: &Operand,
) -> bool {
    let Op::Dot(dot) = &graph.node(contraction.node).op else { return false };
    let (operand, contract) = match side {
        OperandSide::Left => (&contraction.operands[0], &dot.lhs_contract),
        OperandSide::Right => (&contraction.operands[1], &dot.rhs_contract),
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
