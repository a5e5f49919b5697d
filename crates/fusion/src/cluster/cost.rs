//! What a cluster costs: arithmetic and memory traffic.

use warpforge_ir::calls::KnownCall;

use super::{Attention, Body, Cluster, Clusters, Contraction, Epilogue, Kind};
use crate::graph::{Combiner, Graph, NodeId, Op};
use crate::view::LayoutOp;

/// Arithmetic and memory traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    /// Floating-point operations, a multiply-add counted as two.
    pub flops: u64,
    /// Bytes read from memory and written to it, each value once.
    pub bytes: u64,
}

impl Cluster {
    /// The values that the cluster reads from memory.
    #[must_use]
    pub fn reads(&self) -> Vec<NodeId> {
        let mut reads: Vec<NodeId> = Vec::new();
        let loads = |body: &Body, tile: Option<usize>| -> Vec<NodeId> {
            let all = body.loads.iter().enumerate();
            all.filter(|(at, _)| Some(*at) != tile).map(|(_, load)| load.value).collect()
        };
        let of_epilogue = |epilogue: &Option<Epilogue>, reads: &mut Vec<NodeId>| {
            if let Some(epilogue) = epilogue {
                reads.extend(loads(&epilogue.body, Some(epilogue.tile)));
            }
        };
        let product = |product: &Contraction, reads: &mut Vec<NodeId>| {
            reads.extend(product.operands.iter().map(|operand| operand.value));
            of_epilogue(&product.epilogue, reads);
        };
        match &self.kind {
            Kind::Loop(body) => reads = loads(body, None),
            Kind::Dot(of) | Kind::Conv(of) => product(of, &mut reads),
            Kind::Attention(attention) => {
                let Attention { scores, weights, values, .. } = &**attention;
                product(scores, &mut reads);
                reads.extend(loads(&weights.body, Some(weights.tile)));
                reads.push(values.operands[1].value);
                of_epilogue(&values.epilogue, &mut reads);
            }
            Kind::AttentionGradient(backward) => {
                reads.extend(backward.operands().map(|operand| operand.value));
                reads.extend(loads(&backward.weights.body, Some(backward.weights.tile)));
                let shares = backward.by_scores.body.loads[backward.shares].value;
                let others = loads(&backward.by_scores.body, Some(backward.by_scores.tile));
                reads.extend(others.into_iter().filter(|&id| id != shares));
                for gradient in backward.gradients() {
                    of_epilogue(&gradient.product.epilogue, &mut reads);
                }
            }
            Kind::Unfused(operands) | Kind::Library(operands, _) => {
                reads.extend(operands.iter().map(|operand| operand.value));
            }
        }
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    /// What the cluster costs when everything it reads and gives goes through memory once.
    #[must_use]
    pub fn cost(&self, graph: &Graph) -> Cost {
        let alone = matches!(self.kind, Kind::Unfused(_)).then_some(self.output);
        let read: usize = self.reads().iter().map(|&value| bytes_read(graph, value, alone)).sum();
        let given = self.results().into_iter().flat_map(|id| graph.results(id));
        let given: usize = given.map(|value| graph.node(value).bytes()).sum();
        let bytes = (read + given) as u64;
        Cost { flops: self.nodes.iter().map(|&id| flops(graph, id)).sum(), bytes }
    }
}

impl Clusters {
    /// What all clusters cost.
    #[must_use]
    pub fn cost(&self, graph: &Graph) -> Cost {
        sum(self.clusters.iter().map(|cluster| cluster.cost(graph)))
    }
}

/// What the graph costs with a kernel for each node and every value in memory.
#[must_use]
pub(crate) fn unfused(graph: &Graph) -> (usize, Cost) {
    let runs = |id: &NodeId| !matches!(graph.node(*id).op, Op::Argument(_) | Op::Constant(_) | Op::Result(_));
    let costs: Vec<Cost> = graph
        .ids()
        .filter(runs)
        .map(|id| {
            let node = graph.node(id);
            let read: usize = node.inputs.iter().map(|&input| bytes_read(graph, input, Some(id))).sum();
            let given: usize = graph.results(id).into_iter().map(|value| graph.node(value).bytes()).sum();
            Cost { flops: flops(graph, id), bytes: (read + given) as u64 }
        })
        .collect();
    (costs.len(), sum(costs))
}

/// The bytes of a value that its reader reads: of what it picks elements from, no more than it gives.
fn bytes_read(graph: &Graph, value: NodeId, reader: Option<NodeId>) -> usize {
    let whole = graph.node(value).bytes();
    let Some(reader) = reader.map(|id| graph.node(id)) else { return whole };
    let picks = matches!(reader.op, Op::Gather(..) | Op::DynamicSlice | Op::Layout(LayoutOp::Slice { .. }));
    if picks && reader.inputs.first() == Some(&value) { whole.min(reader.bytes()) } else { whole }
}

fn sum(costs: impl IntoIterator<Item = Cost>) -> Cost {
    costs.into_iter().fold(Cost::default(), |sum, cost| Cost {
        flops: sum.flops + cost.flops,
        bytes: sum.bytes + cost.bytes,
    })
}

/// The floating-point operations of a node.
fn flops(graph: &Graph, id: NodeId) -> u64 {
    let node = graph.node(id);
    let len = node.len() as u64;
    match &node.op {
        Op::Elementwise(_) | Op::Compare(..) => len,
        Op::Reduce(..) => graph.node(node.inputs[0]).len() as u64,
        // Four products and sums of each sample; a bin whose samples depend on its size has about four.
        Op::Call(KnownCall::RoiAlign(align) | KnownCall::RoiAlignBackward(align)) => {
            let samples = align.sampling_ratio.map_or(4, |ratio| u64::from(ratio).pow(2));
            let bins = if matches!(node.op, Op::Call(KnownCall::RoiAlign(_))) {
                len
            } else {
                graph.node(node.inputs[0]).len() as u64
            };
            8 * samples * bins
        }
        // At most each box with each better one.
        Op::Call(KnownCall::Nms { .. }) => len.saturating_mul(len) * 8,
        Op::VariadicReduce(function, _) => {
            graph.node(node.inputs[0]).len() as u64 * function.steps.len() as u64
        }
        Op::SelectAndScatter { window, .. } => {
            graph.node(node.inputs[1]).len() as u64 * window.dims.iter().product::<usize>() as u64
        }
        Op::Scatter(_, Combiner::Reduce(_) | Combiner::Function(_)) => {
            graph.node(node.inputs[2]).len() as u64
        }
        // The input, and for each tap its vector of indices and its weights.
        Op::Resample(_) => len * (node.inputs.len() - 2) as u64,
        Op::ReduceWindow(_, window, _) => len * window.dims.iter().product::<usize>() as u64,
        Op::Dot(dot) => {
            let lhs = graph.node(node.inputs[0]);
            2 * len * dot.lhs_contract.iter().map(|&at| lhs.dims[at] as u64).product::<u64>()
        }
        Op::Conv(_) => {
            let weights = &graph.node(node.inputs[1]).dims;
            2 * len * weights[..weights.len() - 1].iter().map(|&dim| dim as u64).product::<u64>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::unfused;
    use crate::testing::{graph, grouped};

    #[test]
    fn of_a_table_only_the_rows_that_are_picked_are_read() {
        let module = "func.func @main(%table: tensor<1000x16xf32>, %rows: tensor<4xi64>) -> tensor<4x16xf32> {
            %0 = \"stablehlo.gather\"(%table, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
                collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false,
                slice_sizes = array<i64: 1, 16>}> : (tensor<1000x16xf32>, tensor<4xi64>) -> tensor<4x16xf32>
            return %0 : tensor<4x16xf32>
        }";
        let graph = graph(module);
        let (indices, rows) = (4 * 8, 4 * 16 * 4);
        assert_eq!(grouped(&graph).cost(&graph).bytes, indices + 2 * rows);
        assert_eq!(unfused(&graph).1.bytes, indices + 2 * rows);
    }
}
