//! Values that only products in bf16 read lie in memory as bf16: half the bytes, and no rounding where they are read.
//!
//! A product rounds its operands to bf16 in any case, so results are the same bit for bit, wherever it is done.

use std::collections::HashSet;

use warpforge_fusion::cluster::{Cluster, Clusters, Kind};
use warpforge_fusion::{Graph, Id};
use warpforge_kernels::gemm::{self, Gemm};
use warpforge_tensor::ElementType;

/// Makes the values of f32 that nothing but the operands of products reads values of bf16, where products in bf16 read
/// such values as they lie.
pub(crate) fn narrow(graph: &mut Graph, clusters: &Clusters) {
    if Gemm::new(gemm::Kind::Bf16).reads() != ElementType::BF16 {
        return;
    }
    let mut plain: HashSet<Id> = clusters.outputs.iter().map(|output| output.value).collect();
    for cluster in &clusters.clusters {
        let rounded = rounded(graph, cluster);
        plain.extend(cluster.reads().into_iter().filter(|id| !rounded.contains(id)));
        plain.extend(loaded(cluster));
    }
    for cluster in clusters.clusters.iter().filter(|cluster| converts(cluster)) {
        let node = &mut graph.nodes[cluster.output.index()];
        if node.element == ElementType::F32 && !plain.contains(&cluster.output) {
            node.element = ElementType::BF16;
        }
    }
}

/// The values that a cluster's kernel rounds to bf16 before it does anything else with them.
fn rounded(graph: &Graph, cluster: &Cluster) -> Vec<Id> {
    let operands: Vec<Id> = match &cluster.kind {
        Kind::Dot(product) => product.operands.iter().map(|operand| operand.value).collect(),
        Kind::Attention(attention) => {
            let operands = attention.scores.operands.iter().chain(&attention.values.operands[1..]);
            operands.map(|operand| operand.value).collect()
        }
        Kind::Loop(_) | Kind::Conv(_) | Kind::Single(_) => Vec::new(),
    };
    // Operands of f64, of f16 or of integers are multiplied as they are.
    let all = operands.iter().all(|&id| graph.node(id).element == ElementType::F32);
    if all { operands } else { Vec::new() }
}

/// The values that loops inside a cluster read.
fn loaded(cluster: &Cluster) -> Vec<Id> {
    let epilogues = match &cluster.kind {
        Kind::Dot(product) | Kind::Conv(product) => vec![product.epilogue.as_ref()],
        Kind::Attention(attention) => vec![Some(&attention.weights), attention.values.epilogue.as_ref()],
        Kind::Loop(_) | Kind::Single(_) => Vec::new(),
    };
    epilogues.into_iter().flatten().flat_map(|epilogue| &epilogue.body.loads).map(|load| load.value).collect()
}

/// Whether a cluster's kernel can give its result as another type.
fn converts(cluster: &Cluster) -> bool {
    match &cluster.kind {
        Kind::Loop(_) | Kind::Dot(_) | Kind::Attention(_) => true,
        Kind::Conv(product) => product.epilogue.is_some(),
        Kind::Single(_) => false,
    }
}
