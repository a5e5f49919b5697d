//! Graphs of modules that tests write as text.

use warpforge_diag::Source;
use warpforge_ir::Module;
use warpforge_ir::nodes::Nodes;
use warpforge_snakeburger::text;
use warpforge_tensor::Tensor;

use crate::cluster::{Clusters, DeviceKernels, clusters};
use crate::graph::{Graph, Op, evaluate, import};
use crate::pipeline::Plan;

/// A module.
pub(crate) fn module(module: &str) -> Module {
    text::parse(&Source::new("m.mlir", module), &text::Options::default()).unwrap()
}

/// The graph of a module's function `@main`, not simplified.
pub(crate) fn graph(text: &str) -> Graph {
    import(module(text).function("main").unwrap(), &|_| None).unwrap()
}

/// The outputs of a graph by the reference, node by node.
pub(crate) fn evaluated(graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let (mut values, mut left): (Vec<Tensor>, _) = (Vec::new(), inputs.iter());
    for id in graph.ids() {
        let node = graph.node(id);
        let value = match &node.op {
            Op::Argument(_) => left.next().unwrap().clone(),
            Op::Constant(tensor) => tensor.clone(),
            op => {
                let inputs: Vec<Tensor> =
                    node.inputs.iter().map(|input| values[input.index()].clone()).collect();
                evaluate(op, &inputs, node.element, &node.dims)
                    .unwrap_or_else(|| panic!("{} of {:?}", op.name(), node.inputs))
            }
        };
        values.push(value);
    }
    graph.outputs.iter().map(|id| values[id.index()].clone()).collect()
}

/// The clusters of a graph on a device that has every kernel.
pub(crate) fn grouped(graph: &Graph) -> Clusters {
    clusters(
        graph,
        DeviceKernels {
            convert_operands: false,
            quantized_weights: false,
            compute: &|_| true,
            strided_image: &|_| false,
            shortest_row: 1,
            machine: None,
        },
    )
}

/// The plan of a graph on a device that has every kernel.
pub(crate) fn planned(graph: Graph) -> Plan {
    let clusters = grouped(&graph);
    let (once, patterns, fallbacks) = (Vec::new(), Vec::new(), Vec::new());
    Plan { graph, once, clusters, spans: None, patterns, fallbacks, traced: Nodes::default() }
}
