//! Joins two products with a loop over whole rows between them.

use super::{Attention, Describer};
use crate::cluster::attach::{columns_of, in_order};
use crate::cluster::contraction::Contraction;
use crate::cluster::kind::{Cluster, Kind, only_readers, owners};
use crate::cluster::machine::Machine;
use crate::cluster::operand::{Operand, single_stride};
use crate::graph::{Graph, NodeId, Op};

/// Moves products whose result only a loop over its rows takes, and that loop, into the product that takes its result.
pub(crate) fn join(
    graph: &Graph,
    clusters: &mut Vec<Cluster>,
    outputs: &[Operand],
    machine: Option<&dyn Machine>,
) {
    let (owner, reader) = (owners(clusters), only_readers(clusters, outputs));
    let mut describer = Describer::new(graph);
    for at in 0..clusters.len() {
        let Kind::Dot(values) = &clusters[at].kind else { continue };
        let values = values.clone();
        let alone = |id: NodeId, by: usize| reader.get(&id) == Some(&by);
        let weights = &values.operands[0];
        let Some(&between) = owner.get(&weights.value).filter(|&&place| place != at) else { continue };
        let Kind::Loop(body) = &clusters[between].kind else { continue };
        if !weights.view.is_dense() || !alone(clusters[between].output, at) || !body.has_reductions() {
            continue;
        }
        let scores = body.loads.iter().enumerate().find_map(|(tile, load)| {
            let place = *owner.get(&load.value)?;
            let Kind::Dot(product) = &clusters[place].kind else { return None };
            (product.node == load.value && product.epilogue.is_none() && alone(load.value, between))
                .then_some((tile, place, product.clone()))
        });
        let Some((tile, place, scores)) = scores else { continue };
        if body.loads.iter().filter(|load| load.value == scores.node).count() != 1 {
            continue;
        }
        let Some(joined) = in_order(graph, body, tile, columns_of(graph, scores.node)) else { continue };
        let rows_first =
            joined.body.reduced.iter().enumerate().all(|(dim, &reduced)| reduced == (dim >= joined.rows));
        if !rows_first || !joined.body.output.is_dense() || !same_rows(graph, scores.node, values.node) {
            continue;
        }
        // Weights are packed once, for a product of its own.
        if [&scores, &values].iter().any(|product| graph.is_known(product.operands[1].value)) {
            continue;
        }
        // Attention is of floats; products of integers have their own kernels.
        if ![scores.node, values.node].iter().all(|&node| graph.node(node).element.is_float()) {
            continue;
        }
        // One kernel multiplies in one type: that of the weights, which may be rounded more than queries and keys.
        let multiplied = |product: &Contraction| graph.node(graph.node(product.node).inputs[0]).element;
        if multiplied(&scores) != multiplied(&values) {
            continue;
        }
        let [first, middle, last] = [place, between, at].map(|part| &clusters[part]);
        let slower =
            |machine: &dyn Machine| machine.fuses_attention(graph, first, middle, last) == Some(false);
        if machine.is_some_and(slower) {
            continue;
        }
        let attention = Attention::new(&mut describer, scores, joined, values);
        let nodes: Vec<NodeId> =
            [place, between, at].iter().flat_map(|&part| clusters[part].nodes.clone()).collect();
        clusters[at].kind = Kind::Attention(Box::new(attention));
        clusters[at].nodes = nodes;
        clusters[place].nodes.clear();
        clusters[between].nodes.clear();
    }
    clusters.retain(|cluster| !cluster.nodes.is_empty());
}

/// Whether the second product takes, batch by batch and row by row, what the first gives.
pub(crate) fn same_rows(graph: &Graph, scores: NodeId, values: NodeId) -> bool {
    let (first, second) = (graph.node(scores), graph.node(values));
    let (Op::Dot(one), Op::Dot(two)) = (&first.op, &second.op) else { return false };
    let batch =
        |id: NodeId, dims: &[usize]| -> usize { dims.iter().map(|&at| graph.node(id).dims[at]).product() };
    let batches = batch(first.inputs[0], &one.lhs_batch);
    let weights = graph.node(second.inputs[0]);
    let leading = (0..two.lhs_batch.len()).collect::<Vec<_>>() == two.lhs_batch;
    let trailing: Vec<usize> = (weights.dims.len() - two.lhs_contract.len()..weights.dims.len()).collect();
    let columns: usize = two.lhs_contract.iter().map(|&at| weights.dims[at]).product();
    leading
        && trailing == two.lhs_contract
        && columns == columns_of(graph, scores)
        && batch(second.inputs[0], &two.lhs_batch) == batches
        && single_stride(&crate::view::View::dense(&weights.dims), &two.lhs_contract).is_some()
}

#[cfg(test)]
mod tests {
    use warpforge_tensor::Tensor;

    use crate::cluster::Kind;
    use crate::graph::import;
    use crate::testing::{grouped, module};

    /// Two layers with a softmax of whole rows between them, their weights converted first; the second argument of each
    /// product is a weight or an input.
    fn attentions(weights: bool) -> usize {
        const SIZE: usize = 512;
        let text = format!(
            "func.func @main(%x: tensor<8x{SIZE}xbf16>, %a: tensor<{SIZE}x{SIZE}xf32>, %b: tensor<{SIZE}x{SIZE}xf32>)
               -> tensor<8x{SIZE}xf32> {{
             %c = stablehlo.convert %a : (tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xbf16>
             %d = stablehlo.convert %b : (tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xbf16>
             %0 = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0]
               : (tensor<8x{SIZE}xbf16>, tensor<{SIZE}x{SIZE}xbf16>) -> tensor<8x{SIZE}xf32>
             %zero = stablehlo.constant dense<0.0> : tensor<f32>
             %1 = stablehlo.exponential %0 : tensor<8x{SIZE}xf32>
             %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
               : (tensor<8x{SIZE}xf32>, tensor<f32>) -> tensor<8xf32>
             %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<8xf32>) -> tensor<8x{SIZE}xf32>
             %4 = stablehlo.divide %1, %3 : tensor<8x{SIZE}xf32>
             %5 = stablehlo.convert %4 : (tensor<8x{SIZE}xf32>) -> tensor<8x{SIZE}xbf16>
             %6 = stablehlo.dot_general %5, %d, contracting_dims = [1] x [0]
               : (tensor<8x{SIZE}xbf16>, tensor<{SIZE}x{SIZE}xbf16>) -> tensor<8x{SIZE}xf32>
             func.return %6 : tensor<8x{SIZE}xf32> }}"
        );
        let module = module(&text);
        // Larger than what is folded while building the graph.
        let values: Vec<f32> = (0..SIZE * SIZE).map(|at| at as f32).collect();
        let weight = Tensor::from_slice(&[SIZE, SIZE], &values).unwrap();
        let known = |argument: usize| (weights && argument > 0).then(|| weight.clone());
        let graph = import(module.function("main").unwrap(), &known).unwrap();
        let clusters = grouped(&graph).clusters;
        clusters.iter().filter(|cluster| matches!(cluster.kind, Kind::Attention(_))).count()
    }

    #[test]
    fn layers_whose_weights_are_converted_are_no_attention() {
        assert_eq!(attentions(false), 1);
        assert_eq!(attentions(true), 0);
    }
}
