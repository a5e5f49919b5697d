//! Graphs of modules that tests write as text.

use warpforge_diag::Source;
use warpforge_snakeburger::text;

use crate::cluster::{Clusters, DeviceKernels, clusters};
use crate::graph::{Graph, import};

/// The graph of a module's function `@main`, not simplified.
pub(crate) fn graph(module: &str) -> Graph {
    let module = text::parse(&Source::new("m.mlir", module), &text::Options::default()).unwrap();
    import(module.function("main").unwrap(), &|_| None).unwrap()
}

/// The clusters of a graph on a device that has every kernel.
pub(crate) fn grouped(graph: &Graph) -> Clusters {
    clusters(graph, DeviceKernels { convert_operands: false, compute: &|_| true })
}
