//! Graphs of modules that tests write as text.

use warpforge_diag::Source;
use warpforge_ir::Module;
use warpforge_ir::nodes::Nodes;
use warpforge_snakeburger::text;

use crate::cluster::{Clusters, DeviceKernels, clusters};
use crate::graph::{Graph, import};
use crate::pipeline::Plan;

/// A module.
pub(crate) fn module(module: &str) -> Module {
    text::parse(&Source::new("m.mlir", module), &text::Options::default()).unwrap()
}

/// The graph of a module's function `@main`, not simplified.
pub(crate) fn graph(text: &str) -> Graph {
    import(module(text).function("main").unwrap(), &|_| None).unwrap()
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
