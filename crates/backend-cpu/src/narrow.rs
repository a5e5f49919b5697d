//! Values that products and convolutions in bf16 read lie in memory as bf16: half the bytes, and no rounding where they are
//! read.
//!
//! A product rounds its operands to bf16 in any case, so results are the same bit for bit, wherever it is done. What
//! convolutions give is rounded even where sums of f32 read it, as in residual networks: images are what such models move
//! most.

use std::collections::{HashMap, HashSet};

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Cluster, Clusters, Kind, Load, Operand};
use warpforge_fusion::graph::ReduceKind;
use warpforge_fusion::{Graph, Node, NodeId, Op, View};
use warpforge_ir::OpKind;
use warpforge_kernels::gemm::{self, Gemm};
use warpforge_tensor::{ElementType, Shape, Tensor};

/// From so many products on that read a value which others want in f32, a copy in bf16 costs less than rounding it for
/// each.
const WORTH_A_COPY: usize = 2;

/// Makes the values of f32 that nothing but the operands of products reads values of bf16, and images that loops read too,
/// and copies in bf16 of those that several products read, where products in bf16 read such values as they lie.
pub(crate) fn narrow(graph: &mut Graph, clusters: &mut Clusters) {
    if Gemm::new(gemm::Kind::Bf16).reads() != ElementType::BF16 {
        return;
    }
    let mut plain: HashSet<NodeId> = clusters.outputs.iter().map(|output| output.value).collect();
    // What only loops read besides products can be read as bf16 too.
    let mut fixed = plain.clone();
    let mut products: HashMap<NodeId, usize> = HashMap::new();
    for cluster in &clusters.clusters {
        let rounded = rounded(graph, cluster);
        if extremes(graph, cluster).is_none() {
            fixed.extend(multiplied(cluster).into_iter().filter(|id| !rounded.contains(id)));
        }
        plain.extend(cluster.reads().into_iter().filter(|id| !rounded.contains(id)));
        plain.extend(loaded(cluster));
        for id in rounded {
            *products.entry(id).or_default() += 1;
        }
    }
    // The largest of some values can be of bf16 as they are, unless somebody wants it as it was.
    for cluster in clusters.clusters.iter().rev() {
        if let Some((input, _)) = extremes(graph, cluster)
            && fixed.contains(&cluster.output)
        {
            fixed.insert(input);
        }
    }
    let mut all = Vec::with_capacity(clusters.clusters.len());
    let mut copies: HashMap<NodeId, NodeId> = HashMap::new();
    for mut cluster in std::mem::take(&mut clusters.clusters) {
        let rounds = rounded(graph, &cluster);
        for operand in
            operands(graph, &mut cluster).into_iter().filter(|operand| rounds.contains(&operand.value))
        {
            operand.value = copies.get(&operand.value).copied().unwrap_or(operand.value);
        }
        let (value, wide) = (cluster.output, graph.node(cluster.output).element == ElementType::F32);
        let (plainly, often) = (plain.contains(&value), products.get(&value).copied().unwrap_or(0));
        let of_image = extremes(graph, &cluster)
            .filter(|(input, _)| wide && graph.node(*input).element == ElementType::BF16);
        if let Some((_, op)) = of_image {
            let node = &mut graph.nodes[value.index()];
            (node.op, node.element) = (op, ElementType::BF16);
            all.push(cluster);
            continue;
        }
        let is_image = matches!(cluster.kind, Kind::Conv(_)) && !fixed.contains(&value);
        let narrowed = wide && (!plainly || is_image) && converts(graph, &cluster);
        if narrowed {
            graph.nodes[value.index()].element = ElementType::BF16;
        }
        all.push(cluster);
        if wide && !narrowed && plainly && often >= WORTH_A_COPY {
            let copy = copy(graph, value);
            copies.insert(value, copy.output);
            all.push(copy);
        }
    }
    clusters.clusters = all;
}

/// The value whose windows' largest or least elements of f32 a cluster gives, and the same operation on bf16.
fn extremes(graph: &Graph, cluster: &Cluster) -> Option<(NodeId, Op)> {
    let (Kind::Unfused(operands), node) = (&cluster.kind, graph.node(cluster.output)) else { return None };
    let (Op::ReduceWindow(fold @ (ReduceKind::Max | ReduceKind::Min), window, init), [operand]) =
        (&node.op, operands.as_slice())
    else {
        return None;
    };
    let bits = init.as_slice::<f32>().ok()?.first()?.to_bits();
    let narrow = u16::try_from(bits >> 16).ok().filter(|_| bits & 0xffff == 0)?;
    let init = Tensor::from_bytes(ElementType::BF16, Shape::scalar(), &narrow.to_ne_bytes()).ok()?;
    Some((operand.value, Op::ReduceWindow(*fold, window.clone(), init)))
}

/// The loop that makes a copy in bf16 of a value.
fn copy(graph: &mut Graph, value: NodeId) -> Cluster {
    let (dims, origin) = (graph.node(value).dims.clone(), graph.node(value).origin);
    let view = View::dense(&dims);
    let load = BodyStep { op: BodyOp::Load(0), inputs: Vec::new(), element: ElementType::F32 };
    let convert = OpKind::Convert;
    let rounded = BodyStep { op: BodyOp::Elementwise(convert), inputs: vec![0], element: ElementType::BF16 };
    let body = Body {
        reduced: vec![false; dims.len()],
        dims: dims.clone(),
        loads: vec![Load { value, view: view.clone() }],
        steps: vec![load, rounded],
        output: view,
    };
    let output = NodeId(graph.nodes.len() as u32);
    let op = Op::Elementwise(convert);
    graph.nodes.push(Node { op, inputs: vec![value], element: ElementType::BF16, dims, origin });
    Cluster { kind: Kind::Loop(body), output, nodes: vec![output] }
}

/// The operands in memory of a cluster's products.
fn operands<'a>(graph: &Graph, cluster: &'a mut Cluster) -> Vec<&'a mut Operand> {
    match &mut cluster.kind {
        Kind::Dot(product) => product.operands.iter_mut().collect(),
        Kind::Attention(attention) => {
            attention.scores.operands.iter_mut().chain(&mut attention.values.operands[1..]).collect()
        }
        // Channels each on their own are multiplied as they are.
        Kind::Conv(product) => match &graph.node(product.node).op {
            Op::Conv(conv) if conv.groups == 1 => product.operands.iter_mut().take(1).collect(),
            _ => Vec::new(),
        },
        Kind::Loop(_) | Kind::Unfused(_) | Kind::AttentionGradient(_) | Kind::Library(..) => Vec::new(),
    }
}

/// The values that a cluster's kernel reads otherwise than in a loop.
fn multiplied(cluster: &Cluster) -> Vec<NodeId> {
    let operands: Vec<&Operand> = match &cluster.kind {
        Kind::Dot(product) | Kind::Conv(product) => product.operands.iter().collect(),
        Kind::Attention(attention) => {
            attention.scores.operands.iter().chain(&attention.values.operands[1..]).collect()
        }
        Kind::Unfused(operands) | Kind::Library(operands, _) => operands.iter().collect(),
        Kind::Loop(_) | Kind::AttentionGradient(_) => Vec::new(),
    };
    operands.iter().map(|operand| operand.value).collect()
}

/// The values that a cluster's kernel rounds to bf16 before it does anything else with them.
fn rounded(graph: &Graph, cluster: &Cluster) -> Vec<NodeId> {
    let values: Vec<NodeId> =
        operands(graph, &mut cluster.clone()).iter().map(|operand| operand.value).collect();
    // Operands of f64, of f16 or of integers are multiplied as they are.
    let known = |id: &NodeId| matches!(graph.node(*id).element, ElementType::F32 | ElementType::BF16);
    if values.iter().all(known) { values } else { Vec::new() }
}

/// The values that loops inside a cluster read.
fn loaded(cluster: &Cluster) -> Vec<NodeId> {
    let epilogues = match &cluster.kind {
        Kind::Dot(product) | Kind::Conv(product) => vec![product.epilogue.as_ref()],
        Kind::Attention(attention) => vec![Some(&attention.weights), attention.values.epilogue.as_ref()],
        Kind::Loop(_) | Kind::Unfused(_) | Kind::AttentionGradient(_) | Kind::Library(..) => Vec::new(),
    };
    epilogues.into_iter().flatten().flat_map(|epilogue| &epilogue.body.loads).map(|load| load.value).collect()
}

/// Whether a cluster's kernel can give its result as another type, and at no cost.
fn converts(graph: &Graph, cluster: &Cluster) -> bool {
    match &cluster.kind {
        // Elements that only move do so faster as they are.
        Kind::Loop(body) if body.steps.len() == 1 => {
            body.loads.iter().all(|load| graph.node(load.value).element == ElementType::BF16)
        }
        Kind::Loop(_) | Kind::Dot(_) | Kind::Attention(_) => true,
        Kind::Conv(product) => product.epilogue.is_some(),
        Kind::Unfused(_) | Kind::AttentionGradient(_) | Kind::Library(..) => false,
    }
}
